"""Pages in flight on a server, where all crawlers see them."""

from __future__ import annotations

import struct
from collections.abc import Collection
from dataclasses import dataclass, field

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.server.layout import lease_name, pending_name
from scrapy_neardup.server.program import Program
from scrapy_neardup.state import layout
from scrapy_neardup.state.record import Record

_PLACE = struct.Struct(">QQ")


@dataclass(frozen=True, slots=True)
class PendingPlace:
    """Which page of which crawl is on its way."""

    id: int
    crawl: int

    @property
    def packed(self) -> bytes:
        return _PLACE.pack(self.id, self.crawl)


@dataclass(slots=True)
class PendingPage:
    """A page on its way: a record with all its keys, of which it is not known yet what it will be."""

    record: Record
    crawl: int
    _heads: bytes = field(default=b"", init=False, repr=False, compare=False)

    @property
    def place(self) -> PendingPlace:
        return PendingPlace(self.record.id, self.crawl)

    def found_by(self, hashes: Keyed) -> bytes:
        """By what it is found, 8 bytes for each: the hash of its URL, and its keys."""
        if not self._heads:
            self._heads = layout.url_key(self.record.url, hashes)[1:] + heads_of(self.record.keys)
        return self._heads

    def file(self, program: Program, hashes: Keyed, *, looks: bool = False) -> None:
        """Have a program put it there. If it ``looks``, there is one answer: who else is found so."""
        place = self.place.packed
        program.note(pending_name(self.crawl), place[:8], self.record.pack())
        program.enter(place, self.found_by(hashes), answers=looks)

    def remove(self, program: Program, hashes: Keyed) -> None:
        """Have a program remove it."""
        place = self.place.packed
        program.strike(pending_name(self.crawl), place[:8])
        program.leave(place, self.found_by(hashes))

    def expect_here(self, program: Program, row: bytes, value: bytes) -> None:
        """Have a program done only if the page is still on its way, or is written already, by the same program."""
        program.expect_either(pending_name(self.crawl), self.place.packed[:8], row, value)

    def take_away(self, program: Program, hashes: Keyed) -> None:
        """Have a program remove it if nobody is at work on its crawl."""
        program.expect_ended(lease_name(self.crawl))
        self.remove(program, hashes)


def heads_of(keys: Collection[int]) -> bytes:
    """By what pages with these keys are found."""
    return struct.pack(f">{len(keys)}Q", *keys)


def seen(found: bytes, besides: PendingPlace) -> list[PendingPlace]:
    """The pages that were found, each once; not ``besides``, which is the one that looks."""
    places = dict.fromkeys(PendingPlace(*place) for place in _PLACE.iter_unpack(found))
    return [place for place in places if place != besides]


def ask(program: Program, place: PendingPlace) -> None:
    """Have a program read a page on its way, and how long the lease of its crawl lasts: two answers."""
    program.field(pending_name(place.crawl), place.packed[:8])
    program.lasts(lease_name(place.crawl))
