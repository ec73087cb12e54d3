"""Pages in flight that many crawlers share on a server: they passed, and their items are still in a pipeline.

Methods append operations to a ``Program``, which the server runs at once; answers come in their order. Heads are the
index keys of a page: the hash of its URL and its keys.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.server.layout import lease_name, pending_name
from scrapy_neardup.server.program import Program
from scrapy_neardup.state import layout
from scrapy_neardup.state.record import Record

_PLACE = struct.Struct(">QQ")


class PendingPlace(NamedTuple):
    """The address of a page in flight: its id, and the id of its crawl."""

    id: int
    crawl: int

    def add_reads(self, program: Program) -> None:
        """Read the page, and how many milliseconds its crawl counts as alive. Two answers."""
        program.get_field(pending_name(self.crawl), layout.pack_id(self.id))
        program.milliseconds_left(lease_name(self.crawl))


@dataclass(slots=True)
class PendingPage:
    """A page in flight: its record with all keys, filed before it is judged, so that other crawlers see it in time."""

    record: Record
    crawl: int

    @property
    def place(self) -> PendingPlace:
        return PendingPlace(self.record.id, self.crawl)

    def heads(self, hashes: Keyed) -> tuple[bytes, ...]:
        """Return its index keys, 8 bytes each: the hash of its URL, and its keys."""
        return layout.url_key(self.record.url, hashes)[1:], *heads_of(self.record.keys)

    def register(self, program: Program, hashes: Keyed) -> None:
        """Add the page."""
        program.set_field(pending_name(self.crawl), layout.pack_id(self.record.id), self.record.pack())
        program.register(_PLACE.pack(*self.place), self.heads(hashes))

    def unregister(self, program: Program, hashes: Keyed) -> None:
        """Remove the page."""
        program.delete_field(pending_name(self.crawl), layout.pack_id(self.record.id))
        program.unregister(_PLACE.pack(*self.place), self.heads(hashes))

    def expect_in_flight(self, program: Program, row: bytes, value: bytes) -> None:
        """Abort the program unless the page is still in flight, or this row was written by an earlier try."""
        program.expect_in_flight(pending_name(self.crawl), layout.pack_id(self.record.id), row, value)

    def unregister_abandoned(self, program: Program, hashes: Keyed) -> None:
        """Remove the page; abort the program if its crawl is alive."""
        program.expect_no_lease(lease_name(self.crawl))
        self.unregister(program, hashes)


def heads_of(keys: Collection[int]) -> list[bytes]:
    """Return keys as heads."""
    return [key.to_bytes(8, "big") for key in keys]


def places_in(answer: list[bytes], besides: PendingPlace) -> list[PendingPlace]:
    """Return the addresses of the pages in flight in an answer, each once and without ``besides``."""
    places = dict.fromkeys(PendingPlace(*_PLACE.unpack(member[-_PLACE.size :])) for member in answer)
    return [place for place in places if place != besides]
