"""The list of dropped pages that a state keeps."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import islice
from weakref import WeakKeyDictionary

from scrapy_neardup.kv.base import Changes, Row
from scrapy_neardup.model import Likeness, Verdict
from scrapy_neardup.state.layout import drop_key, generation_of, last_id, url_key
from scrapy_neardup.state.pages import PageStore

#: Drops that a state keeps, and how many more there may be before the oldest are removed.
_MOST, _STEP = 100_000, 1000
_HEAD = struct.Struct(">QQH")
_KEY = 17


@dataclass(frozen=True, slots=True)
class Drop:
    """One drop. ``id``: its time in nanoseconds since 1970, larger than the id of every drop before it.

    ``page``, ``original``: hashes of their URLs. ``likeness``: the name of the kind, or empty.
    """

    generation: int
    id: int
    page: int
    original: int
    similarity: float
    likeness: str

    def row(self) -> Row:
        """Q page · Q original · H similarity in 65535ths · the kind."""
        head = _HEAD.pack(self.page, self.original, round(self.similarity * 65535))
        return drop_key(self.generation, self.id), head + self.likeness.encode()

    @classmethod
    def of_row(cls, key: bytes, packed: bytes) -> Drop:
        """Read a row that ``row`` made; raises ValueError for another one."""
        try:
            page, original, similarity = _HEAD.unpack_from(packed)
            likeness = packed[_HEAD.size :].decode()
            if len(key) != _KEY or (likeness and likeness not in Likeness._value2member_map_):
                raise ValueError
        except (struct.error, ValueError):
            raise ValueError(f"{key!r} and {packed[:60]!r} are no drop") from None
        return cls(generation_of(key), last_id(key), page, original, similarity / 65535, likeness)


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
    return Drop(generation, id, page, original, match.similarity, verdict.kind_of_likeness or "").row()
