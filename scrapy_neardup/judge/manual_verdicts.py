"""Manual verdicts: a person said that a page is a copy, or none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.model import Comparison, Likeness
from scrapy_neardup.state.kv import Changes
from scrapy_neardup.state.layout import judgement_key
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record

#: A copy has some similarity, or it would be taken for a page that could not be judged.
_LEAST = 1 / 65535
#: What a copy by hand is if the method does not say that it is one of these.
_COPIES = (Likeness.IDENTICAL, Likeness.NEAR, Likeness.RETITLED)


class ManualVerdict(str, Enum):
    """What was said of a page; the value is the name of the command."""

    KEEP = "keep"
    COPY = "copy"


@dataclass(frozen=True, slots=True)
class Opinion:
    """What was said of the page at a URL, and when, in seconds since 1970.

    ``other``: the original that it is no copy of, empty where that is not known; or the page that it is a copy of.
    """

    url: str
    said: ManualVerdict
    other: str
    when: int

    def pack(self) -> bytes:
        """As JSON, which takes lone surrogates too."""
        return json.dumps([self.url, self.said.value, self.other, self.when]).encode()

    @classmethod
    def of_row(cls, key: bytes, packed: bytes, hashes: Keyed) -> Opinion:
        """What was written under a key; raises ValueError for another row."""
        try:
            url, said, other, when = json.loads(packed)
            found = cls(str(url), ManualVerdict(said), str(other), int(when))
        except (ValueError, TypeError):
            raise ValueError(f"a manual verdict cannot be read ({packed[:60]!r})") from None
        if key != judgement_key(found.url, hashes):
            raise ValueError(f"the manual verdict on {found.url} is stored under another page")
        return found


class ManualVerdicts:
    """Those that a crawl finds when it begins; where there are none, and nobody can add one, nothing is looked up."""

    def __init__(self, store: PageStore) -> None:
        self._store = store
        self._any = store.is_shared or next(store.rows(b"n"), None) is not None

    def of(self, url: str) -> Opinion | None:
        """What was said of the page at a URL."""
        return judgement_of(self._store, url) if self._any else None


def judgement_of(store: PageStore, url: str) -> Opinion | None:
    """What was said of the page at a URL; raises StoreDamaged if that cannot be read."""
    key = judgement_key(url, store.hashes)
    packed = store.value(key)
    try:
        return None if packed is None else Opinion.of_row(key, packed, store.hashes)
    except ValueError as error:
        raise store.damaged(str(error)) from None


def judgements(store: PageStore) -> Iterator[Opinion]:
    """All judgements in a state, in no order; raises StoreDamaged for a row that is none."""
    return store.unpacked(b"n", lambda key, packed: Opinion.of_row(key, packed, store.hashes))


def write_judgements(store: PageStore, *said: Opinion) -> None:
    """Write judgements down, each in the place of an earlier one of its URL, and wait for the disk."""
    store.write(Changes({judgement_key(one.url, store.hashes): one.pack() for one in said}))


def remove_judgements(store: PageStore, *urls: str) -> None:
    """Take back what was said of the pages at these URLs."""
    store.write(Changes(deletes={judgement_key(url, store.hashes) for url in urls}))


def original_at(store: PageStore, url: str, of: str) -> Record | None:
    """The page at a URL as the original of the page ``of``, or else its own original; None if it can be neither."""
    record = store.find(url)
    if record is not None and record.original != record.id:
        record = store.record(record.original)
    return record if record is not None and record.is_original and record.url != of else None


def by_hand(comparison: Comparison) -> Comparison:
    """What a method says of two pages, made to say that they are copies."""
    likeness = comparison.likeness if comparison.likeness in _COPIES else Likeness.NEAR
    return replace(comparison, duplicate=True, likeness=likeness, similarity=max(comparison.similarity, _LEAST))
