"""The rows of a state on a server, read in their order, whoever writes to them in the meantime."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import groupby

from scrapy_neardup.stores import layout
from scrapy_neardup.stores.changes import Row
from scrapy_neardup.stores.redis_layout import DIRECTORY, first_bits, names_between, rows_of, spot
from scrapy_neardup.stores.redis_link import Link

#: Fields, and names, that are fetched at a time; and where only a few may be asked for.
_CHUNK, _FEW = 500, 16
#: Keys that are weighed to estimate the size.
_WEIGHED = 5000
#: First letters of rows in hashes that the directory names.
_LISTED = (b"d", b"e", b"j", b"o", b"r")


class ServerRows:
    """Every method waits for the server; all may raise StoreError."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def get(self, key: bytes) -> bytes | None:
        """The value of a row."""
        program = self._link.program()
        program.get(key)
        value: bytes | None = self._link.run(program)[1]
        return value

    def postings(self, key: bytes, limit: int) -> list[int]:
        """Ids of up to ``limit`` pages that are filed under a key, by its bytes, newest first."""
        program = self._link.program()
        program.newest([key], limit)
        return newest_of(self._link.run(program)[1], limit).get(key, [])

    def pages(self) -> int:
        """How many there are."""
        program = self._link.program()
        program.count()
        return int(self._link.run(program)[1] or 0)

    def scan(self, prefix: bytes, *, reverse: bool) -> Iterator[Row]:
        """All rows that begin with ``prefix``, in byte order; postings of several keys in that of their names here."""
        if not prefix:
            for letter in sorted(self._letters(), reverse=reverse):
                yield from self.scan(letter, reverse=reverse)
            return
        begun, ended, others = names_between(prefix)
        rest = self._rows_in(others, prefix, prefix, reverse=reverse)
        if prefix[:1] in b"uk":
            rows = self._on_levels(prefix, reverse=reverse)
        else:
            rows = self._listed(begun, ended, prefix, prefix, reverse=reverse)
        yield from merge(rest, rows, key=lambda row: row[0], reverse=reverse)

    def count(self, prefix: bytes) -> int:
        """How many rows of a listed kind (``_LISTED``) there are. None of them is fetched."""
        name = self._link.prefix + DIRECTORY
        with self._link.used() as client:
            names = client.zrangebylex(name, b"[" + prefix, b"(" + bytes([prefix[0] + 1]))
            pipe = client.pipeline(transaction=False)
            for one in names:
                pipe.hlen(self._link.prefix + one)
            return sum(pipe.execute())

    def rows_from(self, low: bytes, prefix: bytes) -> Iterator[Row]:
        """The same from a row ``low`` on, few at a time: of pages, journals and drops alone."""
        begun, ended, _ = names_between(prefix)
        return self._listed(max(begun, names_between(low)[0]), ended, max(low, prefix), prefix, chunk=_FEW)

    def size(self) -> int:
        """About so many bytes of the server's memory: some keys are weighed, and stand for the others."""
        from redis.exceptions import ResponseError

        cursor = weighed = seen = total = 0
        with self._link.used() as client:
            while True:
                cursor, names = client.scan(cursor, match=self._pattern(b"*"), count=1000)
                seen += 1000
                pipe = client.pipeline(transaction=False)
                for name in names:
                    pipe.memory_usage(name)
                try:
                    total += sum(size or 0 for size in pipe.execute())
                except ResponseError:  # Kvrocks knows no such thing
                    return int(str(client.info().get("used_db_size", 0)))
                weighed += len(names)
                if not cursor:
                    return total
                if weighed >= _WEIGHED:
                    return round(total * max(1.0, int(client.dbsize()) / seen))

    def _pattern(self, more: bytes) -> bytes:
        return re.sub(rb"([*?\[\]\\])", rb"\\\1", self._link.prefix) + more

    def _letters(self) -> set[bytes]:
        name = self._link.prefix + DIRECTORY
        with self._link.used() as client:
            found = {one[1:] for one in client.zrangebylex(name, b"[*", b"(+")}
            for letter in _LISTED:
                if client.zrangebylex(name, b"[" + letter, b"(" + bytes([letter[0] + 1]), 0, 1):
                    found.add(letter)
        return found | {letter for letter in (b"k", b"u") if next(self._on_levels(letter, reverse=False), None)}

    def _listed(
        self, begun: bytes, ended: bytes, low: bytes, prefix: bytes, *, reverse: bool = False, chunk: int = _CHUNK
    ) -> Iterator[Row]:
        """Rows in the hashes that the directory names from one to another."""
        name, low_end, high_end = self._link.prefix + DIRECTORY, b"[" + begun, b"[" + ended
        while True:
            with self._link.used() as client:
                if reverse:
                    names = client.zrevrangebylex(name, high_end, low_end, 0, _CHUNK)
                else:
                    names = client.zrangebylex(name, low_end, high_end, 0, _CHUNK)
            for one in names:
                yield from self._rows_in(one, low, prefix, reverse=reverse, chunk=chunk)
            if len(names) < _CHUNK:
                return
            low_end, high_end = (low_end, b"(" + names[-1]) if reverse else (b"(" + names[-1], high_end)

    def _rows_in(self, name: bytes, low: bytes, prefix: bytes, *, reverse: bool, chunk: int = _CHUNK) -> Iterator[Row]:
        """Rows of one hash from ``low`` on that begin with ``prefix``, in their order."""
        with self._link.used() as client:
            fields = client.hkeys(self._link.prefix + name)
        rows = zip(rows_of(name, fields), fields, strict=True)
        wanted = sorted((one for one in rows if one[0].startswith(prefix) and one[0] >= low), reverse=reverse)
        for at in range(0, len(wanted), chunk):
            part = wanted[at : at + chunk]
            with self._link.used() as client:
                values = client.hmget(self._link.prefix + name, [field for _, field in part])
            yield from ((row, value) for (row, _), value in zip(part, values, strict=True) if value is not None)

    def _on_levels(self, prefix: bytes, *, reverse: bool) -> Iterator[Row]:
        """URLs or postings: the keys of which no directory tells are gathered by their first bits."""
        letter = prefix[:1]
        if letter == b"u" and len(prefix) >= 9:
            yield from self._rows_together(spot(prefix[:9]).names, prefix, reverse=reverse)
            return
        begin = len(self._link.prefix)
        found = self._link.scan(self._pattern(letter + b"*"))  # Kvrocks knows no other pattern
        by_bits = sorted({one[begin:] for one in found}, key=first_bits, reverse=reverse)
        for _, some in groupby(by_bits, key=first_bits):
            yield from self._rows_together(tuple(some), prefix, reverse=reverse)

    def _rows_together(self, names: tuple[bytes, ...], prefix: bytes, *, reverse: bool) -> Iterator[Row]:
        letter, is_of_urls, found = prefix[:1], prefix[:1] == b"u", dict[bytes, bytes]()
        for at in range(0, len(names), _CHUNK):
            with self._link.used() as client:
                pipe = client.pipeline(transaction=False)
                for name in names[at : at + _CHUNK]:
                    key = self._link.prefix + name
                    pipe.hgetall(key) if is_of_urls else pipe.zrangebylex(key, b"-", b"+")
                for held in pipe.execute():
                    rows = held.items() if is_of_urls else ((member, b"") for member in held)
                    found.update((letter + field, value) for field, value in rows)
        yield from sorted((row for row in found.items() if row[0].startswith(prefix)), reverse=reverse)


def newest_of(members: Iterable[bytes], limit: int) -> dict[bytes, list[int]]:
    """The ids of postings of several keys, from several levels, by the bytes of the key, newest first."""
    found: dict[bytes, list[int]] = {}
    for member in members:
        found.setdefault(member[:-8], []).append(layout.last_id(member))
    return {key: sorted(ids, reverse=True)[:limit] for key, ids in found.items()}
