"""The rows of a state on a Redis server as a key-value store, shared by many crawlers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import merge
from itertools import groupby
from operator import methodcaller
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from urllib.parse import SplitResult

from scrapy_neardup.hashing.keys import pack_key
from scrapy_neardup.kv.base import SETTING, Changes, Engine, Row
from scrapy_neardup.server.claims import LEASE, Leases, PageLost
from scrapy_neardup.server.layout import DIRECTORY, GIVEN_UP, OnLevels, first_bits, names_between, rows_of
from scrapy_neardup.server.location import need_redis, read_url
from scrapy_neardup.server.program import Program
from scrapy_neardup.server.transaction import (
    TRIES,
    OvertakenError,
    RemoteTransaction,
    newest_of,
    overtaken_too_often,
)
from scrapy_neardup.state import layout

if TYPE_CHECKING:
    from scrapy_neardup.server.connection import Link

T = TypeVar("T")
#: First letters of the rows on which writes depend.
_READ_SET = b"ujm"
#: Fields, or names of keys, to fetch at a time; and if the caller needs few.
_CHUNK, _FEW = 500, 16
#: Keys to measure for an estimate of the size.
_MEASURED = 5000
#: First letters of rows in hashes that the directory lists.
_LISTED = (b"d", b"e", b"j", b"o", b"r")


class Redis(Engine):
    """Rows on Redis, Valkey or Kvrocks.

    Every write names the rows that it read, and the server applies it only if they have not changed. Crawls hold
    leases.
    """

    scheme = "redis"
    form = "//host:6379/0?state=name"
    is_shared = True
    #: Seconds after which a silent crawl may lose its unsealed pages.
    lease: ClassVar[float] = LEASE
    #: The transaction that answers synchronous code while it runs; None: the server answers.
    transaction: RemoteTransaction | None = None
    #: The rows read since a write began on which it depends; None outside a write.
    read_set: dict[bytes, bytes | None] | None = None

    def __init__(self, location: str, named_by: str = SETTING) -> None:
        super().__init__(location, named_by)
        self.scheme = location.partition(":")[0]
        self.link = _open_link(location, named_by)
        self.leases = Leases(self.link, location, self.lease)
        self._pages = 0
        try:
            self.link.refuse_eviction()
        except BaseException:
            self.link.close()
            raise

    @classmethod
    def read_url(cls, parts: SplitResult) -> str:
        return read_url(parts)

    @classmethod
    def url(cls, location: str) -> str:
        return location

    @classmethod
    def exists(cls, location: str) -> bool:
        """Raises StoreError if the server does not answer."""
        link = _open_link(location, SETTING)
        try:
            return bool(link.call(lambda client: client.exists(link.prefix + DIRECTORY)))
        finally:
            link.close()

    def close(self, last: Changes | None = None) -> None:
        try:
            self.leases.close()
        finally:
            self.link.close()

    # Single rows.

    def get(self, key: bytes) -> bytes | None:
        one = self.transaction
        value = self.fetch(key) if one is None else one.row(key)
        read_set = self.read_set if one is None else one.read_set
        if read_set is not None and key[0] in _READ_SET and not (one and key in one.changes.puts):
            read_set.setdefault(key, value)
        return value

    def fetch(self, key: bytes) -> bytes | None:
        """Return the value of a row on the server, even during a transaction."""
        value: bytes | None = self.link.ask(Program.get, key)
        return value

    def newest_postings(self, key: int, limit: int) -> list[int]:
        """Return the newest ids, up to ``limit``, that are filed under a key."""
        if self.transaction is not None:
            return self.transaction.postings(key, limit)
        packed = pack_key(key)
        return newest_of(self.link.ask(Program.newest, [packed], limit), limit).get(packed, [])

    def pages(self) -> int:
        """Return the number of pages; within a transaction, the last known one."""
        if self.transaction is None:
            self._pages = int(self.link.ask(Program.count) or 0)
        return self._pages

    # Rows in order, while others write.

    def scan(self, prefix: bytes, *, reverse: bool = False) -> Iterator[Row]:
        """Yield the rows that begin with ``prefix``, in byte order; postings in the order of their names here."""
        return (self.transaction.scan if self.transaction else self.fetch_all)(prefix, reverse=reverse)

    def fetch_all(self, prefix: bytes, *, reverse: bool = False) -> Iterator[Row]:
        """Like ``scan``, but from the server even during a transaction."""
        if not prefix:
            for letter in sorted(self._letters(), reverse=reverse):
                yield from self.fetch_all(letter, reverse=reverse)
            return
        first, last, others = names_between(prefix)
        rest = self._rows_in(others, prefix, prefix, reverse=reverse)
        if prefix[:1] in b"uk":
            rows = self._on_levels(prefix, reverse=reverse)
        else:
            rows = self._listed(first, last, prefix, prefix, reverse=reverse)
        yield from merge(rest, rows, key=lambda row: row[0], reverse=reverse)

    def scan_from(self, low: bytes, prefix: bytes) -> Iterator[Row]:
        """Yield the rows of a listed kind from ``low`` on, a few at a time."""
        first, last, _ = names_between(prefix)
        return self._listed(max(first, names_between(low)[0]), last, max(low, prefix), prefix, chunk=_FEW)

    def count(self, prefix: bytes) -> int:
        """Return the number of rows of a listed kind (``_LISTED``), without fetching them."""
        names = self.link.call(lambda client: self._names_of(client, prefix))
        return sum(self._each(names, lambda pipe, name: pipe.hlen(name)))

    def size(self) -> int:
        """Estimate the memory in bytes from some of the keys."""
        return self.link.call(self._estimate_size)

    def compact(self) -> None:
        """Do nothing: the server reuses the room of deleted rows."""

    def _estimate_size(self, client: Any) -> int:
        from redis.exceptions import ResponseError

        cursor, keys = client.scan(match=self._pattern(b"*"), count=_MEASURED)
        pipe = client.pipeline(transaction=False)
        for key in keys:
            pipe.memory_usage(key)
        try:
            total = sum(size or 0 for size in pipe.execute())
        except ResponseError:  # Kvrocks has no such command
            return int(str(client.info().get("used_db_size", 0)))
        return round(total * max(1.0, int(client.dbsize()) / _MEASURED)) if cursor else total

    def _key(self, name: bytes) -> bytes:
        return self.link.prefix + name

    def _pattern(self, more: bytes) -> bytes:
        return re.sub(rb"([*?\[\]\\])", rb"\\\1", self.link.prefix) + more

    def _names_of(self, client: Any, prefix: bytes, *limits: int) -> list[bytes]:
        """Return the names of listed hashes that begin with ``prefix``."""
        after = b"(" + prefix[:-1] + bytes([prefix[-1] + 1])
        return list(client.zrangebylex(self._key(DIRECTORY), b"[" + prefix, after, *limits))

    def _each(self, names: Iterable[bytes], ask: Callable[[Any, bytes], object]) -> list[Any]:
        """Return the answers to one command for each of these keys, which go in one pipeline."""

        def send(client: Any) -> list[Any]:
            pipe = client.pipeline(transaction=False)
            for name in names:
                ask(pipe, self._key(name))
            return list(pipe.execute())

        return self.link.call(send)

    def _letters(self) -> set[bytes]:
        """Return the first letters of all rows."""

        def listed(client: Any) -> set[bytes]:
            found = {name[1:] for name in self._names_of(client, b"*")}
            return found | {letter for letter in _LISTED if self._names_of(client, letter, 0, 1)}

        on_levels = {letter for letter in (b"k", b"u") if next(self._on_levels(letter, reverse=False), None)}
        return self.link.call(listed) | on_levels

    def _listed(
        self, first: bytes, last: bytes, low: bytes, prefix: bytes, *, reverse: bool = False, chunk: int = _CHUNK
    ) -> Iterator[Row]:
        """Yield rows of the hashes that the directory lists from ``first`` to ``last``."""
        low_end, high_end = b"[" + first, b"[" + last
        while True:
            ends = (high_end, low_end) if reverse else (low_end, high_end)
            command = "zrevrangebylex" if reverse else "zrangebylex"
            names = self.link.call(methodcaller(command, self._key(DIRECTORY), *ends, 0, _CHUNK))
            for name in names:
                yield from self._rows_in(name, low, prefix, reverse=reverse, chunk=chunk)
            if len(names) < _CHUNK:
                return
            low_end, high_end = (low_end, b"(" + names[-1]) if reverse else (b"(" + names[-1], high_end)

    def _rows_in(self, name: bytes, low: bytes, prefix: bytes, *, reverse: bool, chunk: int = _CHUNK) -> Iterator[Row]:
        """Yield rows of one hash from ``low`` on that begin with ``prefix``, in order."""
        key = self._key(name)
        fields = self.link.call(lambda client: client.hkeys(key))
        rows = zip(rows_of(name, fields), fields, strict=True)
        wanted = sorted((one for one in rows if one[0].startswith(prefix) and one[0] >= low), reverse=reverse)
        for at in range(0, len(wanted), chunk):
            part = wanted[at : at + chunk]
            values = self.link.call(methodcaller("hmget", key, [field for _, field in part]))
            yield from ((row, value) for (row, _), value in zip(part, values, strict=True) if value is not None)

    def _on_levels(self, prefix: bytes, *, reverse: bool) -> Iterator[Row]:
        """Yield URLs or postings. The directory does not list their keys, so the server scans for them."""
        letter = prefix[:1]
        if letter == b"u" and len(prefix) >= 9:
            yield from self._rows_together(OnLevels(letter, (prefix[1:9],)).names(), prefix, reverse=reverse)
            return
        begin = len(self.link.prefix)
        found = self.link.scan(self._pattern(letter + b"*"))  # Kvrocks knows no other pattern
        by_bits = sorted({key[begin:] for key in found}, key=first_bits, reverse=reverse)
        for _, names in groupby(by_bits, key=first_bits):
            yield from self._rows_together(tuple(names), prefix, reverse=reverse)

    def _rows_together(self, names: tuple[bytes, ...], prefix: bytes, *, reverse: bool) -> Iterator[Row]:
        letter, found = prefix[:1], dict[bytes, bytes]()
        for at in range(0, len(names), _CHUNK):
            if letter == b"u":
                for held in self._each(names[at : at + _CHUNK], lambda pipe, key: pipe.hgetall(key)):
                    found.update((letter + field, value) for field, value in held.items())
            else:
                for held in self._each(names[at : at + _CHUNK], lambda pipe, key: pipe.zrangebylex(key, b"-", b"+")):
                    found.update((letter + member, b"") for member in held)
        yield from sorted((row for row in found.items() if row[0].startswith(prefix)), reverse=reverse)

    # Writing.

    def write(self, changes: Changes, *, sync: bool) -> None:
        if self.transaction is not None:
            self.transaction.write(changes)
            return
        read_set, self.read_set = self.read_set or {}, None if self.read_set is None else {}
        self.raise_for(self.link.run(self.write_program(changes, read_set)))

    def run(self, work: Callable[[], T]) -> T:
        if self.transaction is not None or self.read_set is not None:
            return work()
        for _ in range(TRIES):
            self.read_set = {}
            try:
                return work()
            except OvertakenError:
                continue
            finally:
                self.read_set = None
        raise overtaken_too_often(self.location)

    def write_program(self, changes: Changes, read_set: Mapping[bytes, bytes | None]) -> Program:
        """Return a program that writes changes if the rows of the read set are the same and the crawls still ours."""
        program = self.link.program()
        for row, value in read_set.items():
            program.expect(row, value)
        crawls = {layout.generation_of(row) for row in (*changes.puts, *changes.deletes) if row[:1] == b"j"}
        for crawl in crawls & self.leases.crawls:
            self.leases.expect(crawl, program)
        for row in changes.deletes:
            program.delete(row)
            if row[:1] == b"g" and layout.last_id(row) in self.leases.crawls:
                self.leases.end(layout.last_id(row), program)
                program.delete_field(GIVEN_UP, row)
        for row, value in changes.puts.items():
            program.put(row, value, self._pages)
            if row[:1] == b"g":
                self.leases.take_new(layout.last_id(row), program)
        for row, value in changes.sights.items():
            program.see(row, value[:8], value[8:])
        return program

    def raise_for(self, found: list[Any]) -> None:
        """Raise OvertakenError or StoreError if a condition of a program did not hold."""
        if found[0] == 1:
            return
        if found[1] == b"in_flight":
            raise self.leases.loss(PageLost)
        raise self.leases.loss() if found[1] == b"lease" else OvertakenError


def _open_link(location: str, named_by: str) -> Link:
    need_redis(named_by)
    from scrapy_neardup.server.connection import Link  # needs redis-py

    return Link(location)


# The rows are the same, however the server is reached. A scheme with two s, such as rediss, has its class too.


class Unix(Redis):
    """A server on a socket of this machine."""

    scheme = "unix"
    form = "///path/of/the.sock?state=name"


class Sentinel(Redis):
    """The master that the Sentinels name."""

    scheme = "redis+sentinel"
    form = "//host:26379,host:26379/service/0?state=name"


class Cluster(Redis):
    """The node of a cluster that has the slot of the state."""

    scheme = "redis+cluster"
    form = "//host:6379,host:6379?state=name"
