"""What is done on the server in one piece: conditions, then writes and reads, all of it or nothing.

A program is a list of steps for ``redis_script``, and the keys that they touch. It may be run twice with the same end,
so it may be sent again when nobody knows whether it was done. What is done to many keys alike is one step: a page has
ten of them, and each argument takes its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scrapy_neardup.stores.redis_layout import (
    COUNTER,
    DIRECTORY,
    GIVEN_UP,
    HIGHEST,
    PENDING,
    Spot,
    is_posting,
    is_url,
    level_of,
    names_on,
    spot,
)

#: The keys that each run of the script has first.
COMMON = (DIRECTORY, HIGHEST, COUNTER)

_Steps = list[bytes | int]


class _OnLevels(NamedTuple):
    """Keys that are on each level, and where in the steps it is said how many levels, and where the first key is."""

    steps: _Steps
    at: int
    letter: bytes
    keys: tuple[bytes, ...]


class Program:
    """The steps, for one state on the server; conditions first, then writes, then reads.

    ``levels``: how many of them are asked, as far as is known here; a server that knows more says so, and does nothing.
    """

    __slots__ = ("_conditions", "_names", "_on_levels", "_places", "_postings", "_reads", "_writes", "levels")

    def __init__(self, levels: int) -> None:
        self.levels = levels
        self._names: list[bytes] = []
        self._places: dict[bytes, int] = {}
        self._conditions: _Steps = []
        self._writes: _Steps = []
        self._reads: _Steps = []
        self._on_levels: list[_OnLevels] = []
        #: Keys under which a page is filed, by page and level: all in one step.
        self._postings: dict[tuple[bytes, int], list[bytes]] = {}

    def parts(self) -> tuple[list[bytes], _Steps]:
        """Names of its keys, and the arguments, as a run of the script takes them behind those in ``COMMON``."""
        names, writes, placed = self._names.copy(), self._writes, dict[tuple[bytes, tuple[bytes, ...]], int]()
        for steps, at, letter, keys in self._on_levels:
            first = placed.get((letter, keys))
            if first is None:
                first = placed[letter, keys] = len(names) + 1
                for level in range(self.levels):
                    names += names_on(letter, keys, level)
            steps[at : at + 2] = self.levels, first
        if self._postings:
            writes = writes.copy()
        for (id, level), filed in self._postings.items():
            writes += [b"k", level + 1, len(names) + 1, len(filed), b"".join(filed), id]
            names += names_on(b"k", filed, level)
        levels = self.levels if self._on_levels else 0
        many = len(self._conditions) + len(writes) + len(self._reads)
        return names, [many, len(names), levels, int(self.writes), *self._conditions, *writes, *self._reads]

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
        if value is None:
            self._row(self._conditions, b"!", row)
        elif row[:1] == b"u":
            self._row(self._conditions, b"^", row, value[:8])
        else:
            self._row(self._conditions, b"=", row, value)

    def expect_either(self, name: bytes, field: bytes, row: bytes, value: bytes) -> None:
        """Only if a hash has a field, or a row is what we are to write, for we have done so before."""
        self._conditions += [b"?", self._key(name)]
        self._row(self._conditions, field, row, value)

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
            self._postings.setdefault((row[-8:], level_of(pages)), []).append(row[1:-8])
        elif is_url(row):
            level = level_of(pages) + 1
            self.levels = max(self.levels, level)
            self._writes += [b"H", level]
            self._each_level(self._writes, b"u", (row[1:],))
            self._writes += [row[1:], value]
        else:
            where = spot(row)
            self._writes += [b"h", self._key(where.names[0]), where.field, value, *_about(row, where)]

    def delete(self, row: bytes) -> None:
        """Remove a row, if it is there."""
        if is_posting(row):
            self._writes.append(b"y")
            self._each_level(self._writes, b"k", (row[1:-8],))
            self._writes.append(row[1:])
        else:
            self._row(self._writes, b"d", row, *_about(row, spot(row)))

    def see(self, row: bytes, id: bytes, seconds: bytes) -> None:
        """Move on the time at which a URL was seen, if it still names this page."""
        self._row(self._writes, b"s", row, id, seconds)

    def enter(self, page: bytes, heads: bytes, *, answers: bool = False) -> None:
        """Have a page, by 16 bytes, found by whoever has one of these 8 bytes in common with it.

        If it ``answers``, with who has them already: 16 bytes for each, and the page itself if it was there before.
        """
        self._writes += [b"P" if answers else b"p", page, heads, self._key(PENDING)]

    def leave(self, page: bytes, heads: bytes) -> None:
        """It is there no more."""
        self._writes += [b"q", page, heads, self._key(PENDING)]

    def note(self, name: bytes, field: bytes, value: bytes) -> None:
        """Set a field of a hash that is no part of the state."""
        self._writes += [b"h", self._key(name), field, value, b"", b""]

    def strike(self, name: bytes, field: bytes) -> None:
        """Remove a field of such a hash."""
        self._writes += [b"d", 1, self._key(name), field, b"", b""]

    def append(self, name: bytes, most: int, value: bytes) -> None:
        """Add to a stream that holds so many entries at most."""
        self._writes += [b"a", self._key(name), most, value]

    def end_lease(self, name: bytes, token: bytes) -> None:
        """Give back a lease that is ours."""
        self._writes += [b"x", self._key(name), token]

    # Reads; each has one answer.

    def get(self, row: bytes) -> None:
        """The value of a row, or None."""
        self._row(self._reads, b"g", row)

    def field(self, name: bytes, field: bytes) -> None:
        """The value of a field of a hash that is no part of the state, or None."""
        self._reads += [b"g", 1, self._key(name), field]

    def newest(self, keys: Sequence[bytes], most: int) -> None:
        """Postings of keys by their bytes, all in one list: of each key and level so many, its newest first.

        All keys have one length.
        """
        self._reads.append(b"r")
        self._each_level(self._reads, b"k", tuple(keys))
        self._reads += [len(keys), b"".join(keys), most]

    def entered(self, heads: bytes) -> None:
        """Who is there by ``enter`` that has one of these 8 bytes: 16 bytes for each."""
        self._reads += [b"v", heads, self._key(PENDING)]

    def lasts(self, name: bytes) -> None:
        """For how many milliseconds a lease is held; less than 0 if nobody holds it."""
        self._reads += [b"e", self._key(name)]

    def count(self) -> None:
        """The number of pages, as digits; None for none."""
        self._reads.append(b"n")

    def _key(self, name: bytes) -> int:
        place = self._places.get(name)
        if place is None:
            self._names.append(name)
            place = self._places[name] = len(self._names)
        return place

    def _row(self, steps: _Steps, step: bytes, row: bytes, *more: bytes) -> None:
        """Add a step: how many keys a row may be in, where the first of them stands, the field there, and more."""
        steps.append(step)
        if is_url(row):
            self._each_level(steps, b"u", (row[1:],))
            steps += [row[1:], *more]
        else:
            where = spot(row)
            steps += [1, self._key(where.names[0]), where.field, *more]

    def _each_level(self, steps: _Steps, letter: bytes, keys: tuple[bytes, ...]) -> None:
        self._on_levels.append(_OnLevels(steps, len(steps), letter, keys))
        steps += [0, 0]


def _about(row: bytes, where: Spot) -> tuple[bytes, bytes]:
    """The name by which the directory knows the key of a row, and whether the row is a page that is counted."""
    return (where.names[0] if where.listed else b""), (b"1" if row[:1] == b"r" else b"")
