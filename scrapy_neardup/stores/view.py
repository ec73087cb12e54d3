"""What was fetched of a state for one page: synchronous code judges by it, and never waits for a server.

The code asks as it would ask a store. If a row was not fetched, ``NotFetched`` goes up through it, the row is fetched,
and the code begins again: it has no effect outside before it has ended, as what it writes is held here until then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from scrapy_neardup.stores.changes import Changes, Row
from scrapy_neardup.stores.redis_notes import Note


class NotFetched(BaseException):
    """A row was asked for that is not here; no error, so that nobody on the way takes it for one of a page."""

    def __init__(self, *, row: bytes = b"", scan: bytes = b"", postings: tuple[int, int] | None = None) -> None:
        super().__init__(row, scan, postings)
        self.row = row
        self.scan = scan
        self.postings = postings


@dataclass(slots=True)
class PageView:
    """``rows``: None for one that is not there; ``postings`` by key and limit, newest first; ``scans`` by prefix.

    ``asked``: the rows that were read of those on which writes depend. ``changes``: what was written;
    ``notes``: what is to be counted.
    """

    rows: dict[bytes, bytes | None] = field(default_factory=dict)
    postings: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    scans: dict[bytes, list[Row]] = field(default_factory=dict)
    asked: dict[bytes, bytes | None] = field(default_factory=dict)
    changes: Changes = field(default_factory=Changes)
    notes: list[Note] = field(default_factory=list)

    def row(self, key: bytes) -> bytes | None:
        """The value of a row; raises NotFetched."""
        if key in self.changes.deletes:
            return None
        if key in self.changes.puts:
            return self.changes.puts[key]
        try:
            return self.rows[key]
        except KeyError:
            raise NotFetched(row=key) from None

    def scan(self, prefix: bytes, *, reverse: bool) -> Iterator[Row]:
        """The rows that begin with ``prefix``, as they were; raises NotFetched."""
        if prefix not in self.scans:
            raise NotFetched(scan=prefix)
        found = self.scans[prefix]
        return reversed(found) if reverse else iter(found)

    def filed(self, key: int, limit: int) -> list[int]:
        """Ids of up to ``limit`` pages that are filed under a key; raises NotFetched."""
        try:
            return self.postings[key, limit]
        except KeyError:
            raise NotFetched(postings=(key, limit)) from None

    def write(self, changes: Changes) -> None:
        """Hold what is to be written."""
        for key in changes.deletes:
            self.changes.delete(key)
        for key, value in changes.puts.items():
            self.changes.put(key, value)
        self.changes.sights.update(changes.sights)

    def again(self) -> None:
        """The code begins anew: what it wrote is void."""
        self.changes = Changes()
        self.asked = {}
        self.notes = []

    def forget(self) -> None:
        """What was read of that on which writes depend is old: it is to be fetched anew."""
        for row in self.asked:
            self.rows.pop(row, None)
        self.again()
