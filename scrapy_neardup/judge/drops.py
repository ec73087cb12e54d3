"""The list of dropped pages that a state keeps."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import islice
from weakref import WeakKeyDictionary

from scrapy_neardup.model import Likeness, Match
from scrapy_neardup.state.kv import Changes, Row
from scrapy_neardup.state.layout import drop_key, generation_of, last_id, url_key
from scrapy_neardup.state.pages import PageStore

#: Drops that a state remembers, the last ones; and how many more there are before the oldest go, all at once.
_MOST, _STEP = 100_000, 1000
_HEAD = struct.Struct(">QQH")
_KEY = 17


@dataclass(frozen=True, slots=True)
class Drop:
    """One drop. ``id``: when it was, in nanoseconds since 1970, larger than that of every drop before it.

    ``page``, ``original``: the hashes of their URLs. ``likeness``: the name of the kind; empty if it has none.
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
        """What ``row`` made; raises ValueError for another row."""
        try:
            page, original, similarity = _HEAD.unpack_from(packed)
            likeness = packed[_HEAD.size :].decode()
            if len(key) != _KEY or (likeness and likeness not in Likeness._value2member_map_):
                raise ValueError
        except (struct.error, ValueError):
            raise ValueError(f"{key!r} and {packed[:60]!r} are no drop") from None
        return cls(generation_of(key), last_id(key), page, original, similarity / 65535, likeness)


#: How many each store holds, once that was counted; all crawls on it share that.
_MANY: WeakKeyDictionary[PageStore, int] = WeakKeyDictionary()


def trim(store: PageStore, many: int) -> int:
    """Remove the oldest drops if there are so ``many`` that it is worth while; returns how many are left."""
    surplus = many - _MOST if many >= _MOST + _STEP else 0
    while surplus and (oldest := {key for key, _ in islice(store.rows(b"d"), min(surplus, _STEP))}):
        store.write(Changes(deletes=oldest))
        many, surplus = many - len(oldest), surplus - len(oldest)
    return many


class Drops:
    """Notes the drops of one crawl: each as a row that is written with the page's own."""

    def __init__(self, store: PageStore, generation: int) -> None:
        self._store = store
        self._generation = generation

    def rows(self, id: int, url: str, match: Match, likeness: Likeness | None) -> tuple[Row, ...]:
        """The row of one more drop, to be written at once; now and then those of the oldest crawls go."""
        if not self._store.is_shared:  # else what is done here may be done again, and upkeep trims
            many = _MANY.get(self._store)
            _MANY[self._store] = trim(self._store, self._store.count_rows(b"d") if many is None else many) + 1
        hashes = self._store.hashes
        page, original = (last_id(url_key(one, hashes)) for one in (url, match.url))
        return (Drop(self._generation, id, page, original, match.similarity, likeness.value if likeness else "").row(),)
