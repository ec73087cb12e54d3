"""The rows of a state on a server: read in order, or fetched ahead for one transaction."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from heapq import merge
from itertools import groupby
from typing import TYPE_CHECKING, Any

from scrapy_neardup.kv.base import Changes, Row
from scrapy_neardup.server.layout import DIRECTORY, first_bits, names_between, rows_of, spot
from scrapy_neardup.server.notes import Note
from scrapy_neardup.state import layout

if TYPE_CHECKING:
    from scrapy_neardup.server.connection import Link

#: Fields, or names of keys, to fetch at a time; and if the caller needs few.
_CHUNK, _FEW = 500, 16
#: Keys to measure for an estimate of the size.
_MEASURED = 5000
#: First letters of rows in hashes that the directory lists.
_LISTED = (b"d", b"e", b"j", b"o", b"r")


class ServerRows:
    """Reads rows while others write. Every method waits for the server and may raise StoreError."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a row."""
        program = self._link.program()
        program.get(key)
        value: bytes | None = self._link.run(program)[1]
        return value

    def postings(self, key: bytes, limit: int) -> list[int]:
        """Return the newest ids, up to ``limit``, that are filed under a key."""
        program = self._link.program()
        program.newest([key], limit)
        return newest_of(self._link.run(program)[1], limit).get(key, [])

    def pages(self) -> int:
        """Return the number of pages."""
        program = self._link.program()
        program.count()
        return int(self._link.run(program)[1] or 0)

    def scan(self, prefix: bytes, *, reverse: bool) -> Iterator[Row]:
        """Yield the rows that begin with ``prefix``, in byte order; postings in the order of their names here."""
        if not prefix:
            for letter in sorted(self._letters(), reverse=reverse):
                yield from self.scan(letter, reverse=reverse)
            return
        first, last, others = names_between(prefix)
        rest = self._rows_in(others, prefix, prefix, reverse=reverse)
        if prefix[:1] in b"uk":
            rows = self._on_levels(prefix, reverse=reverse)
        else:
            rows = self._listed(first, last, prefix, prefix, reverse=reverse)
        yield from merge(rest, rows, key=lambda row: row[0], reverse=reverse)

    def count(self, prefix: bytes) -> int:
        """Return the number of rows of a listed kind (``_LISTED``), without fetching them."""

        def lengths(client: Any) -> list[int]:
            pipe = client.pipeline(transaction=False)
            for name in self._names_of(client, prefix):
                pipe.hlen(self._key(name))
            return list(pipe.execute())

        return sum(self._link.call(lengths))

    def rows_from(self, low: bytes, prefix: bytes) -> Iterator[Row]:
        """Yield the rows of a listed kind from ``low`` on, a few at a time."""
        first, last, _ = names_between(prefix)
        return self._listed(max(first, names_between(low)[0]), last, max(low, prefix), prefix, chunk=_FEW)

    def size(self) -> int:
        """Estimate the memory in bytes from some of the keys."""
        return self._link.call(self._estimate_size)

    def _estimate_size(self, client: Any) -> int:
        from redis.exceptions import ResponseError

        cursor = measured = visited = total = 0
        while True:
            cursor, keys = client.scan(cursor, match=self._pattern(b"*"), count=1000)
            visited += 1000
            pipe = client.pipeline(transaction=False)
            for key in keys:
                pipe.memory_usage(key)
            try:
                total += sum(size or 0 for size in pipe.execute())
            except ResponseError:  # Kvrocks has no such command
                return int(str(client.info().get("used_db_size", 0)))
            measured += len(keys)
            if not cursor:
                return total
            if measured >= _MEASURED:
                return round(total * max(1.0, int(client.dbsize()) / visited))

    def _key(self, name: bytes) -> bytes:
        return self._link.prefix + name

    def _pattern(self, more: bytes) -> bytes:
        return re.sub(rb"([*?\[\]\\])", rb"\\\1", self._link.prefix) + more

    def _names_of(self, client: Any, prefix: bytes, *limits: int) -> list[bytes]:
        after = b"(" + prefix[:-1] + bytes([prefix[-1] + 1])
        return list(client.zrangebylex(self._key(DIRECTORY), b"[" + prefix, after, *limits))

    def _letters(self) -> set[bytes]:
        def listed(client: Any) -> set[bytes]:
            found = {name[1:] for name in self._names_of(client, b"*")}
            return found | {letter for letter in _LISTED if self._names_of(client, letter, 0, 1)}

        on_levels = {letter for letter in (b"k", b"u") if next(self._on_levels(letter, reverse=False), None)}
        return self._link.call(listed) | on_levels

    def _listed(
        self, first: bytes, last: bytes, low: bytes, prefix: bytes, *, reverse: bool = False, chunk: int = _CHUNK
    ) -> Iterator[Row]:
        """Yield rows of the hashes that the directory lists from ``first`` to ``last``."""
        low_end, high_end = b"[" + first, b"[" + last
        while True:
            ends = (high_end, low_end) if reverse else (low_end, high_end)
            names = self._link.call(partial(_range, self._key(DIRECTORY), ends, reverse=reverse))
            for name in names:
                yield from self._rows_in(name, low, prefix, reverse=reverse, chunk=chunk)
            if len(names) < _CHUNK:
                return
            low_end, high_end = (low_end, b"(" + names[-1]) if reverse else (b"(" + names[-1], high_end)

    def _rows_in(self, name: bytes, low: bytes, prefix: bytes, *, reverse: bool, chunk: int = _CHUNK) -> Iterator[Row]:
        """Yield rows of one hash from ``low`` on that begin with ``prefix``, in order."""
        key = self._key(name)
        fields = self._link.call(lambda client: client.hkeys(key))
        rows = zip(rows_of(name, fields), fields, strict=True)
        wanted = sorted((one for one in rows if one[0].startswith(prefix) and one[0] >= low), reverse=reverse)
        for at in range(0, len(wanted), chunk):
            part = wanted[at : at + chunk]
            values = self._link.call(partial(_values, key, [field for _, field in part]))
            yield from ((row, value) for (row, _), value in zip(part, values, strict=True) if value is not None)

    def _on_levels(self, prefix: bytes, *, reverse: bool) -> Iterator[Row]:
        """Yield URLs or postings. The directory does not list their keys, so the server scans for them."""
        letter = prefix[:1]
        if letter == b"u" and len(prefix) >= 9:
            yield from self._rows_together(spot(prefix[:9]).names, prefix, reverse=reverse)
            return
        begin = len(self._link.prefix)
        found = self._link.scan(self._pattern(letter + b"*"))  # Kvrocks knows no other pattern
        by_bits = sorted({key[begin:] for key in found}, key=first_bits, reverse=reverse)
        for _, names in groupby(by_bits, key=first_bits):
            yield from self._rows_together(tuple(names), prefix, reverse=reverse)

    def _rows_together(self, names: tuple[bytes, ...], prefix: bytes, *, reverse: bool) -> Iterator[Row]:
        letter, found = prefix[:1], dict[bytes, bytes]()
        for at in range(0, len(names), _CHUNK):
            keys = [self._key(name) for name in names[at : at + _CHUNK]]
            for held in self._link.call(partial(_contents, keys, is_hash=letter == b"u")):
                rows = held.items() if letter == b"u" else ((member, b"") for member in held)
                found.update((letter + field, value) for field, value in rows)
        yield from sorted((row for row in found.items() if row[0].startswith(prefix)), reverse=reverse)


def _range(key: bytes, ends: tuple[bytes, bytes], client: Any, *, reverse: bool) -> list[bytes]:
    command = client.zrevrangebylex if reverse else client.zrangebylex
    return list(command(key, *ends, 0, _CHUNK))


def _values(key: bytes, fields: list[bytes], client: Any) -> list[bytes | None]:
    return list(client.hmget(key, fields))


def _contents(keys: list[bytes], client: Any, *, is_hash: bool) -> list[Any]:
    pipe = client.pipeline(transaction=False)
    for key in keys:
        pipe.hgetall(key) if is_hash else pipe.zrangebylex(key, b"-", b"+")
    return list(pipe.execute())


def newest_of(members: Iterable[bytes], limit: int) -> dict[bytes, list[int]]:
    """Return the newest ids, up to ``limit``, by key, from the postings of several keys and levels."""
    found: dict[bytes, list[int]] = {}
    for member in members:
        found.setdefault(member[:-8], []).append(layout.last_id(member))
    return {key: sorted(ids, reverse=True)[:limit] for key, ids in found.items()}


class NotFetched(BaseException):
    """Code asked for a row that was not fetched. Not an Exception, so that no handler takes it for a bad page."""

    def __init__(self, *, row: bytes = b"", scan: bytes = b"", postings: tuple[int, int] | None = None) -> None:
        super().__init__(row, scan, postings)
        self.row = row
        self.scan = scan
        self.postings = postings


@dataclass(slots=True)
class RemoteTransaction:
    """What was fetched for one page, and what its judgement writes.

    Synchronous code judges by it and never waits. If a row is missing, NotFetched ends the code, the row is fetched,
    and the code starts again: it has no effect outside this transaction.
    """

    #: Rows by key; None for one that does not exist.
    rows: dict[bytes, bytes | None] = field(default_factory=dict)
    #: Ids by key and limit, newest first.
    filed: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    scans: dict[bytes, list[Row]] = field(default_factory=dict)
    #: The rows read on which the write depends.
    read_set: dict[bytes, bytes | None] = field(default_factory=dict)
    changes: Changes = field(default_factory=Changes)
    #: Sentences to count once the changes are written.
    notes: list[Note] = field(default_factory=list)

    def row(self, key: bytes) -> bytes | None:
        """Return the value of a row; raises NotFetched."""
        if key in self.changes.deletes:
            return None
        if key in self.changes.puts:
            return self.changes.puts[key]
        try:
            return self.rows[key]
        except KeyError:
            raise NotFetched(row=key) from None

    def scan(self, prefix: bytes, *, reverse: bool) -> Iterator[Row]:
        """Yield the rows that begin with ``prefix``, without the changes; raises NotFetched."""
        if prefix not in self.scans:
            raise NotFetched(scan=prefix)
        return reversed(self.scans[prefix]) if reverse else iter(self.scans[prefix])

    def postings(self, key: int, limit: int) -> list[int]:
        """Return the newest ids, up to ``limit``, that are filed under a key; raises NotFetched."""
        try:
            return self.filed[key, limit]
        except KeyError:
            raise NotFetched(postings=(key, limit)) from None

    def write(self, changes: Changes) -> None:
        """Add to the changes."""
        for key in changes.deletes:
            self.changes.delete(key)
        for key, value in changes.puts.items():
            self.changes.put(key, value)
        self.changes.sights.update(changes.sights)

    def restart(self) -> None:
        """Discard what the code wrote: it starts again."""
        self.changes, self.read_set, self.notes = Changes(), {}, []

    def discard_read_set(self) -> None:
        """Discard the rows on which the write depended as well: others have changed them."""
        for row in self.read_set:
            self.rows.pop(row, None)
        self.restart()
