"""Pages that are on their way, on a server where all crawlers see them: how none of them keeps what another keeps.

No crawler holds a lock. Each files what it is about to judge, and looks in the same step what others have filed before:

* *file*: one script writes the page under its keys and its URL, and reads who is there already. It is the server that
  does one script after the other, so of two pages the later one sees the earlier, and the earlier does not see the
  later. Who came first is the order of these steps and nothing else: no clock has a say.
* A page that sees an earlier one of which it would be a copy waits for what becomes of it, and looks again. One that
  sees none passes, and waits for nobody.
* *commit*, *drop*, *release*: one script writes what became of the page and removes it from those on their way, so at
  any moment it is there as one or as the other. It does so only if the page is still on its way.
* *take away*: where the lease of a crawl has ended, one script removes its page if the lease has still ended then. From
  there on the crawl, should it wake up, cannot commit that page any more: one of the two happens, never both.

That the older *id* wins would not do where ids are times: a page whose id is older but that files later, as its clock
is behind or it was slow, would not be seen by the younger one, which has passed already; and it would pass as well.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.stores import layout
from scrapy_neardup.stores.layout import Record
from scrapy_neardup.stores.redis_layout import lease_name, pending_by, pending_name
from scrapy_neardup.stores.redis_program import Program

_PLACE = struct.Struct(">QQ")


@dataclass(frozen=True, slots=True)
class PendingPlace:
    """Which page of which crawl is on its way."""

    id: int
    crawl: int

    @property
    def packed(self) -> bytes:
        return _PLACE.pack(self.id, self.crawl)


@dataclass(frozen=True, slots=True)
class Found:
    """By what a page is found: names of sorted sets, and 8 bytes for each, the hash of its URL or a key."""

    names: tuple[bytes, ...]
    heads: bytes

    @classmethod
    def by(cls, keys: Iterable[int], url: bytes = b"") -> Found:
        """By these keys, and by the hash of a URL."""
        keys = tuple(keys)
        names = [pending_by(b"w", key >> 52) for key in keys]
        if url:
            names.insert(0, pending_by(b"v", int.from_bytes(url[:2], "big") >> 4))
        return cls(tuple(names), url + struct.pack(f">{len(keys)}Q", *keys))


@dataclass(slots=True)
class PendingPage:
    """A page on its way: a record with all its keys, of which it is not known yet what it will be."""

    record: Record
    crawl: int
    _found: Found | None = field(default=None, init=False, repr=False, compare=False)
    _place: PendingPlace | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def place(self) -> PendingPlace:
        if self._place is None:
            self._place = PendingPlace(self.record.id, self.crawl)
        return self._place

    def found_by(self, hashes: Keyed) -> Found:
        """By what it is found."""
        if self._found is None:
            self._found = Found.by(self.record.keys, layout.url_key(self.record.url, hashes)[1:])
        return self._found

    def file(self, program: Program, hashes: Keyed) -> None:
        """Have a program put it there."""
        found, place = self.found_by(hashes), self.place.packed
        program.note(pending_name(self.crawl), place[:8], self.record.pack())
        program.file(found.names, found.heads, place)

    def remove(self, program: Program, hashes: Keyed) -> None:
        """Have a program remove it."""
        found, place = self.found_by(hashes), self.place.packed
        program.strike(pending_name(self.crawl), place[:8])
        program.unfile(found.names, found.heads, place)

    def expect_here(self, program: Program, row: bytes, value: bytes) -> None:
        """Have a program done only if the page is still on its way, or is written already, by the same program."""
        program.expect_either(pending_name(self.crawl), self.place.packed[:8], row, value)

    def take_away(self, program: Program, hashes: Keyed) -> None:
        """Have a program remove it if nobody is at work on its crawl."""
        program.expect_ended(lease_name(self.crawl))
        self.remove(program, hashes)


def look(program: Program, found_by: Found) -> None:
    """Have a program read who else is found so: one answer."""
    program.members(found_by.names, found_by.heads)


def seen(members: Iterable[bytes], besides: PendingPlace) -> list[PendingPlace]:
    """The pages that ``look`` has found, each once; not ``besides``, which is the one that looks."""
    ours = besides.packed
    others = dict.fromkeys(place for member in members if (place := member[8:]) != ours)
    return [PendingPlace(*_PLACE.unpack(place)) for place in others]


def ask(program: Program, place: PendingPlace) -> None:
    """Have a program read a page on its way, and whether somebody is at work on its crawl: two answers."""
    program.field(pending_name(place.crawl), place.packed[:8])
    program.held(lease_name(place.crawl))
