"""Manual verdicts: a person said that a page is a copy, or none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from enum import Enum

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Fingerprint, Likeness
from scrapy_neardup.state.layout import judgement_key
from scrapy_neardup.state.pages import PageStore, representative_of
from scrapy_neardup.state.record import Record

#: The least similarity of a manual copy: similarity 0 marks a page that could not be judged.
_LEAST = 1 / 65535
_NOT_COMPARED = Comparison(0.0, 0.0, duplicate=True, certain=False, identical=False)
#: Kinds that a manual copy may have; it is ``near`` if the method names none of these.
_COPIES = (Likeness.IDENTICAL, Likeness.NEAR, Likeness.RETITLED)


class ManualKind(str, Enum):
    """The manual verdict on a page; the value is the name of the command."""

    KEEP = "keep"
    COPY = "copy"


@dataclass(frozen=True, slots=True)
class ManualVerdict:
    """The manual verdict on the page at a URL; ``when`` is in seconds since 1970.

    ``other``: the original that it is no copy of, empty if unknown; or the page that it is a copy of.
    """

    url: str
    kind: ManualKind
    other: str
    when: int

    def pack(self) -> bytes:
        """As JSON, which takes lone surrogates too."""
        return json.dumps([self.url, self.kind.value, self.other, self.when]).encode()

    @classmethod
    def of_row(cls, key: bytes, packed: bytes, hashes: Keyed) -> ManualVerdict:
        """Read a row that ``pack`` made; raises ValueError for another one."""
        try:
            url, kind, other, when = json.loads(packed)
            verdict = cls(str(url), ManualKind(kind), str(other), int(when))
        except (ValueError, TypeError):
            raise ValueError(f"a manual verdict cannot be read ({packed[:60]!r})") from None
        if key != judgement_key(verdict.url, hashes):
            raise ValueError(f"the manual verdict on {verdict.url} is stored under another page")
        return verdict


def may_have_manual_verdicts(store: PageStore) -> bool:
    """Whether somebody gave a verdict by hand, or another process may do so while the state is open here."""
    return store.is_shared or next(store.rows(b"n"), None) is not None


def find_manual_verdict(store: PageStore, url: str) -> ManualVerdict | None:
    """The manual verdict on the page at a URL; raises StoreDamaged if it cannot be read."""
    key = judgement_key(url, store.hashes)
    packed = store.kv.get(key)
    try:
        return None if packed is None else ManualVerdict.of_row(key, packed, store.hashes)
    except ValueError as error:
        raise store.kv.damaged(str(error)) from None


def manual_verdicts(store: PageStore) -> Iterator[ManualVerdict]:
    """All manual verdicts of a state, in no order; raises StoreDamaged for a row that cannot be read."""
    return store.unpacked(b"n", lambda key, packed: ManualVerdict.of_row(key, packed, store.hashes))


def write_manual_verdicts(store: PageStore, *verdicts: ManualVerdict) -> None:
    """Write manual verdicts, each in place of an earlier one on its URL, and wait for the disk."""
    store.write(Changes({judgement_key(one.url, store.hashes): one.pack() for one in verdicts}))


def remove_manual_verdicts(store: PageStore, *urls: str) -> None:
    """Remove the manual verdicts on these URLs."""
    store.write(Changes(deletes={judgement_key(url, store.hashes) for url in urls}))


def original_at(store: PageStore, url: str, except_url: str) -> Record | None:
    """The page that represents the group of the page at a URL.

    None if there is none, or if it is unjudged or the page at ``except_url``.
    """
    record = store.find(url)
    original = representative_of(store, record, except_url) if record is not None else None
    return original if original is not None and (original.is_original or original.has_led) else None


def compare_by_hand(method: Method, fingerprint: Fingerprint, original: Record, overused_keys: Set[int]) -> Comparison:
    """The comparison of two pages that a person called copies; a page of a former recipe cannot be compared."""
    comparison = _NOT_COMPARED if original.former else method.compare(fingerprint, original.sketch, overused_keys)
    likeness = comparison.likeness if comparison.likeness in _COPIES else Likeness.NEAR
    return replace(comparison, duplicate=True, likeness=likeness, similarity=max(comparison.similarity, _LEAST))
