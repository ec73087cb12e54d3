"""Two lists in a state: the verdicts that people gave, and the dropped pages."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from weakref import WeakKeyDictionary

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.kv.base import Changes, Row
from scrapy_neardup.model import Kind, Verdict
from scrapy_neardup.state.layout import drop_key, generation_of, judgement_key, last_id, url_key
from scrapy_neardup.state.pages import PageStore, representative_of
from scrapy_neardup.state.record import Record


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


def find_manual_verdict(store: PageStore, url: str) -> ManualVerdict | None:
    """The manual verdict on the page at a URL; raises StoreDamaged if it cannot be read."""
    key = judgement_key(url, store.hashes)
    packed = store.kv.get(key)
    try:
        return None if packed is None else ManualVerdict.of_row(key, packed, store.hashes)
    except ValueError as error:
        raise store.kv.damage_error(str(error)) from None


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


# Dropped pages.


#: Drops that a state keeps, and how many more there may be before the oldest are removed.
_MOST, _STEP = 100_000, 1000
_HEAD = struct.Struct(">QQH")
_KEY = 17


@dataclass(frozen=True, slots=True)
class Drop:
    """One drop. ``id``: its time in nanoseconds since 1970, larger than the id of every drop before it.

    ``page``, ``original``: hashes of their URLs. ``kind``: the name of the kind, or empty.
    """

    generation: int
    id: int
    page: int
    original: int
    similarity: float
    kind: str

    def row(self) -> Row:
        """Q page · Q original · H similarity in 65535ths · the kind."""
        head = _HEAD.pack(self.page, self.original, round(self.similarity * 65535))
        return drop_key(self.generation, self.id), head + self.kind.encode()

    @classmethod
    def of_row(cls, key: bytes, packed: bytes) -> Drop:
        """Read a row that ``row`` made; raises ValueError for another one."""
        try:
            page, original, similarity = _HEAD.unpack_from(packed)
            kind = packed[_HEAD.size :].decode()
            if len(key) != _KEY or (kind and kind not in Kind._value2member_map_):
                raise ValueError
        except (struct.error, ValueError):
            raise ValueError(f"{key!r} and {packed[:60]!r} are no drop") from None
        return cls(generation_of(key), last_id(key), page, original, similarity / 65535, kind)


#: The number of drops in each store, counted once; all crawls on a store share it.
_COUNTS: WeakKeyDictionary[PageStore, int] = WeakKeyDictionary()


def trim(store: PageStore, count: int) -> int:
    """Remove the oldest of ``count`` drops if there are clearly too many; returns how many are left."""
    surplus = count - _MOST if count >= _MOST + _STEP else 0
    while surplus and (oldest := {key for key, _ in islice(store.rows(b"d"), min(surplus, _STEP))}):
        store.write(Changes(deletes=oldest))
        count, surplus = count - len(oldest), surplus - len(oldest)
    return count


def drop_row(store: PageStore, generation: int, id: int, verdict: Verdict) -> Row:
    """The row of a drop, to be written with the page; now and then this removes the oldest rows."""
    if not store.is_shared:  # on a server this may run twice for one page, and maintenance trims the list
        count = _COUNTS.get(store)
        _COUNTS[store] = trim(store, store.kv.count(b"d") if count is None else count) + 1
    match = verdict.match
    assert match is not None
    page, original = (last_id(url_key(url, store.hashes)) for url in (verdict.url, match.url))
    return Drop(generation, id, page, original, match.similarity, verdict.kind_name or "").row()
