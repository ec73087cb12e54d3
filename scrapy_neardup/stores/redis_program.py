"""What is done on the server in one piece: conditions, then writes and reads, all of it or nothing.

A program is a list of steps for ``redis_script``, and the keys that they touch. It may be run twice with the same end,
so it may be sent again when nobody knows whether it was done. What is done to many keys alike is one step: a page has
ten of them, and each argument takes its time.
"""

from __future__ import annotations

from collections.abc import Sequence

from scrapy_neardup.stores.redis_layout import (
    COUNTER,
    DIRECTORY,
    GIVEN_UP,
    HIGHEST,
    Spot,
    is_posting,
    level_of,
    posting_names,
    spot,
)

#: The keys that each run of the script has first.
COMMON = (DIRECTORY, HIGHEST, COUNTER)


class Program:
    """The steps, for one state on the server by its prefix; conditions first, then writes, then reads."""

    __slots__ = ("_conditions", "_names", "_places", "_postings", "_prefix", "_reads", "_writes")

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        self._names: list[bytes] = []
        self._places: dict[tuple[bytes, ...] | bytes, int] = {}
        self._conditions: list[bytes | int] = []
        self._writes: list[bytes | int] = []
        self._reads: list[bytes | int] = []
        #: Keys by page and level, to be filed in one step.
        self._postings: dict[tuple[bytes, int], list[bytes]] = {}

    @property
    def names(self) -> list[bytes]:
        """Its own keys, without the prefix; to be asked for behind the arguments."""
        return self._names

    @property
    def keys(self) -> list[bytes]:
        """All keys of a run of this program alone; to be asked for behind the arguments."""
        return [self._prefix + name for name in (*COMMON, *self._names)]

    @property
    def arguments(self) -> list[bytes | int]:
        """Of a run, too."""
        for (id, level), keys in self._postings.items():
            names = tuple([posting_names(key)[level] for key in keys])
            self._writes += [b"k", level + 1, self._all(names), len(keys), b"".join(keys), id]
        self._postings = {}
        many = len(self._conditions) + len(self._writes) + len(self._reads)
        return [many, len(self._names), *self._conditions, *self._writes, *self._reads]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self._conditions or self._reads or self.writes)

    @property
    def writes(self) -> bool:
        """Whether it changes anything."""
        return bool(self._writes or self._postings)

    # Conditions.

    def expect(self, row: bytes, value: bytes | None) -> None:
        """Only if a row is still what it was; of a URL, if it still names the same page, whenever that was seen."""
        where = spot(row)
        if value is None:
            self._conditions += [b"!", *self._keys(where), where.field]
        elif row[:1] == b"u":
            self._conditions += [b"^", *self._keys(where), where.field, value[:8]]
        else:
            self._conditions += [b"=", *self._keys(where), where.field, value]

    def expect_either(self, name: bytes, field: bytes, row: bytes, value: bytes) -> None:
        """Only if a hash has a field, or a row is what we are to write, for we have done so before."""
        where = spot(row)
        self._conditions += [b"?", self._key(name), field, *self._keys(where), where.field, value]

    def expect_lease(self, name: bytes, token: bytes, milliseconds: int, crawl: Spot) -> None:
        """Only if we hold a lease, or nobody does and nobody has begun to take the crawl back: then we do again."""
        where = self._key(crawl.names[0]), crawl.field, self._key(GIVEN_UP)
        self._conditions += [b"L", self._key(name), token, milliseconds, *where]

    def expect_ended(self, name: bytes) -> None:
        """Only if nobody holds a lease."""
        self._conditions += [b"0", self._key(name)]

    def take_lease(self, name: bytes, token: bytes, milliseconds: int) -> None:
        """Only if nobody else holds a lease; then we do, for so long."""
        self._conditions += [b"l", self._key(name), token, milliseconds]

    # Writes.

    def put(self, row: bytes, value: bytes, pages: int) -> None:
        """Write a row, on the level for so many pages."""
        if is_posting(row):
            self._postings.setdefault((row[9:], level_of(pages)), []).append(row[1:9])
            return
        where = spot(row)
        if len(where.names) > 1:
            level = level_of(pages) + 1
            self._writes += [b"H", self._all(where.names), len(where.names), where.field, value, level]
            return
        self._writes += [b"h", self._key(where.names[0]), where.field, value, *_about(row, where)]

    def delete(self, row: bytes) -> None:
        """Remove a row, if it is there."""
        if is_posting(row):
            names = posting_names(row[1:9])
            self._writes += [b"Y", len(names), self._all(names), row[1:]]
            return
        where = spot(row)
        self._writes += [b"d", *self._keys(where), where.field, *_about(row, where)]

    def see(self, row: bytes, id: bytes, seconds: bytes) -> None:
        """Move on the time at which a URL was seen, if it still names this page."""
        where = spot(row)
        self._writes += [b"s", *self._keys(where), where.field, id, seconds]

    def file(self, names: tuple[bytes, ...], heads: bytes, tail: bytes) -> None:
        """Add to sorted sets: to each of them 8 bytes of ``heads``, with the same tail."""
        self._writes += [b"z", self._all(names), len(names), heads, tail]

    def unfile(self, names: tuple[bytes, ...], heads: bytes, tail: bytes) -> None:
        """Remove from them what ``file`` has added."""
        self._writes += [b"y", self._all(names), len(names), heads, tail]

    def note(self, name: bytes, field: bytes, value: bytes) -> None:
        """Set a field of a hash that is no part of the state."""
        self._writes += [b"h", self._key(name), field, value, b"", b""]

    def strike(self, name: bytes, field: bytes) -> None:
        """Remove a field of such a hash."""
        self._writes += [b"d", 1, self._key(name), field, b"", b""]

    def append(self, name: bytes, most: int, value: bytes) -> None:
        """Add to a stream that holds about so many entries."""
        self._writes += [b"a", self._key(name), most, value]

    def end_lease(self, name: bytes, token: bytes) -> None:
        """Give back a lease that is ours."""
        self._writes += [b"x", self._key(name), token]

    # Reads; each has one answer.

    def get(self, row: bytes) -> None:
        """The value of a row, or None."""
        where = spot(row)
        self._reads += [b"g", *self._keys(where), where.field]

    def field(self, name: bytes, field: bytes) -> None:
        """The value of a field of a hash that is no part of the state, or None."""
        self._reads += [b"g", 1, self._key(name), field]

    def newest(self, keys: Sequence[bytes], most: int) -> None:
        """Postings of keys by their 8 bytes, all in one list: so many of each key and level, the newest of each first."""
        on_levels = [posting_names(key) for key in keys]
        names = tuple([name for level in zip(*on_levels, strict=True) for name in level])
        self._reads += [b"r", self._all(names), len(keys), len(on_levels[0]), b"".join(keys), most]

    def members(self, names: tuple[bytes, ...], heads: bytes) -> None:
        """Members of sorted sets that begin with their 8 bytes of ``heads``, all in one list."""
        self._reads += [b"r", self._all(names), len(names), 1, heads, -1]

    def held(self, name: bytes) -> None:
        """Whether somebody holds a lease: 1 or 0."""
        self._reads += [b"e", self._key(name)]

    def count(self) -> None:
        """The number of pages, as digits; None for none."""
        self._reads += [b"n"]

    def _key(self, name: bytes) -> int:
        place = self._places.get(name)
        if place is None:
            self._names.append(name)
            place = self._places[name] = len(self._names)
        return place

    def _all(self, names: tuple[bytes, ...]) -> int:
        """Where the first of some keys stands that stand one behind the other."""
        place = self._places.get(names)
        if place is None:
            place = self._places[names] = len(self._names) + 1
            self._names += names
        return place

    def _keys(self, where: Spot) -> tuple[int, int]:
        """How many keys, and where the first of them stands."""
        names = where.names
        return len(names), self._key(names[0]) if len(names) == 1 else self._all(names)


def _about(row: bytes, where: Spot) -> tuple[bytes, bytes]:
    """The name by which the directory knows the key of a row, and whether the row is a page that is counted."""
    return (where.names[0] if where.listed else b""), (b"1" if row[:1] == b"r" else b"")
