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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.stores import layout
from scrapy_neardup.stores.layout import Record
from scrapy_neardup.stores.redis_layout import lease_name, pending_by, pending_name
from scrapy_neardup.stores.redis_script import Program


@dataclass(frozen=True, slots=True)
class PendingPlace:
    """Which page of which crawl is on its way."""

    id: int
    crawl: int

    @property
    def packed(self) -> bytes:
        return self.id.to_bytes(8, "big") + self.crawl.to_bytes(8, "big")


@dataclass(frozen=True, slots=True)
class PendingPage:
    """A page on its way: a record with all its keys, of which it is not known yet what it will be."""

    record: Record
    crawl: int

    @property
    def place(self) -> PendingPlace:
        return PendingPlace(self.record.id, self.crawl)

    def members(self, hashes: Keyed) -> Iterator[tuple[bytes, bytes]]:
        """Names of the sorted sets in which it is found, and what stands there."""
        for letter, key in self.found_by(hashes):
            yield pending_by(letter, key), key + self.place.packed

    def found_by(self, hashes: Keyed) -> Iterator[tuple[bytes, bytes]]:
        """Its keys and the hash of its URL, each with the letter of its kind."""
        yield b"v", layout.url_key(self.record.url, hashes)[1:]
        yield from ((b"w", key.to_bytes(8, "big")) for key in self.record.keys)

    def file(self, program: Program, hashes: Keyed) -> None:
        """Have a program put it there."""
        program.note(pending_name(self.crawl), self.place.packed[:8], self.record.pack())
        for name, member in self.members(hashes):
            program.file(name, member)

    def remove(self, program: Program, hashes: Keyed) -> None:
        """Have a program remove it."""
        program.strike(pending_name(self.crawl), self.place.packed[:8])
        for name, member in self.members(hashes):
            program.unfile(name, member)

    def expect_here(self, program: Program, row: bytes, value: bytes) -> None:
        """Have a program done only if the page is still on its way, or is written already, by the same program."""
        program.expect_either(pending_name(self.crawl), self.place.packed[:8], row, value)

    def take_away(self, program: Program, hashes: Keyed) -> None:
        """Have a program remove it if nobody is at work on its crawl."""
        program.expect_ended(lease_name(self.crawl))
        self.remove(program, hashes)


def look(program: Program, found_by: Iterable[tuple[bytes, bytes]]) -> None:
    """Have a program read who is on the way under these keys: an answer for each."""
    for letter, key in found_by:
        program.members(pending_by(letter, key), key)


def seen(answers: Iterable[list[bytes]], besides: PendingPlace | None = None) -> list[PendingPlace]:
    """The pages that ``look`` has found, each once; not ``besides``, which is the one that looks."""
    places = (
        PendingPlace(int.from_bytes(member[8:16], "big"), int.from_bytes(member[16:24], "big"))
        for answer in answers
        for member in answer
    )
    return [place for place in dict.fromkeys(places) if place != besides]


def ask(program: Program, place: PendingPlace) -> None:
    """Have a program read a page on its way, and whether somebody is at work on its crawl: two answers."""
    program.field(pending_name(place.crawl), place.packed[:8])
    program.held(lease_name(place.crawl))
