"""The rows of a state on a Redis server as a key-value store, shared by many crawlers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from urllib.parse import SplitResult

from scrapy_neardup.hashing.keys import pack_keys
from scrapy_neardup.kv.base import SETTING, Changes, Engine, Row, after
from scrapy_neardup.server.claims import LEASE, Leases, PageLost
from scrapy_neardup.server.layout import DIRECTORY, NEIGHBOURS, first_bits, is_filing, is_posting
from scrapy_neardup.server.location import need_redis, read_url
from scrapy_neardup.server.program import IN_FLIGHT, PendingPage, Program
from scrapy_neardup.server.program import LEASE as LOST_LEASE
from scrapy_neardup.server.transaction import (
    READ_SET,
    TRIES,
    Note,
    OvertakenError,
    RemoteTransaction,
    newest_of,
    overtaken_too_often,
    pack_notes,
)
from scrapy_neardup.state import layout

if TYPE_CHECKING:
    from scrapy_neardup.server.connection import Answer, Link

T = TypeVar("T")
#: Names to fetch from the directory at a time, and hashes to fetch at a time.
_NAMES, _HASHES = 500, 16
#: Keys to measure for an estimate of the size.
_MEASURED = 5000
#: Entries in the stream of counted sentences, about one a page.
_PUBLISHED = 20_000


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
        #: The last known number of pages.
        self.known_pages = 0
        try:
            self.link.refuse_eviction()
        except BaseException:
            self.link.close()
            raise

    @classmethod
    def read_url(cls, parts: SplitResult) -> str:
        return read_url(parts, cls.form)

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
        if self.transaction is not None:
            return self.transaction.row(key)
        value = self.fetch(key)
        if self.read_set is not None and key[0] in READ_SET:
            self.read_set.setdefault(key, value)
        return value

    def fetch(self, key: bytes) -> bytes | None:
        """Return the value of a row on the server, even during a transaction."""
        value: bytes | None = self.link.ask(Program.get, key)
        return value

    def newest_postings(self, keys: Sequence[int], limit: int) -> list[list[int]]:
        """Return the newest ids, up to ``limit``, that are filed under each key."""
        if self.transaction is not None:
            return self.transaction.postings(keys, limit)
        packed = pack_keys(keys)
        found = newest_of(self.link.ask(Program.newest, b"".join(packed), limit), limit) if packed else {}
        return [found.get(key, []) for key in packed]

    def pages(self) -> int:
        """Return the number of pages; within a transaction, the last known one."""
        if self.transaction is None:
            self.known_pages = int(self.link.ask(Program.count) or 0)
        return self.known_pages

    # Rows in order, while others write.

    def scan(self, prefix: bytes, *, start: bytes = b"", reverse: bool = False) -> Iterator[Row]:
        """Yield the rows that begin with ``prefix``, in byte order; postings in the order of their names here."""
        if self.transaction is not None and not start:
            return self.transaction.scan(prefix, reverse=reverse)
        return self.fetch_all(prefix, reverse=reverse, low=start)

    def fetch_all(self, prefix: bytes, *, reverse: bool = False, low: bytes = b"") -> Iterator[Row]:
        """Like ``scan``, from row ``low`` on, and from the server even during a transaction."""
        letter = prefix[:1]
        if not letter:
            for code in sorted(range(ord("a"), ord("z") + 1), reverse=reverse):  # few have rows
                yield from self.fetch_all(bytes([code]), reverse=reverse)
            return
        rows = self._rows_in(self._names(max(low, prefix), prefix, reverse=reverse), reverse=reverse)
        if letter in b"uk":
            rows = merge(rows, self._rows_on_levels(letter, reverse=reverse), key=lambda row: row[0], reverse=reverse)
        yield from (row for row in rows if row[0].startswith(prefix) and row[0] >= low)

    def count(self, prefix: bytes) -> int:
        """Return the number of rows of a kind that is not on levels, without fetching them."""
        return sum(self._each(self._names(prefix, prefix), lambda pipe, key: pipe.hlen(key)))

    def size(self) -> int:
        """Estimate the memory in bytes from some of the keys."""
        return self.link.call(self._estimate_size)

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

    def _pattern(self, more: bytes) -> bytes:
        return re.sub(rb"([*?\[\]\\])", rb"\\\1", self.link.prefix) + more

    def _each(self, names: Iterable[bytes], ask: Callable[[Any, bytes], object]) -> list[Any]:
        """Return the answers to one command for each of these keys, which go in one pipeline."""

        def send(client: Any) -> list[Any]:
            pipe = client.pipeline(transaction=False)
            for name in names:
                ask(pipe, self.link.prefix + name)
            return list(pipe.execute())

        return self.link.call(send)

    def _names(self, low: bytes, prefix: bytes, *, reverse: bool = False) -> Iterator[bytes]:
        """Yield the names of hashes that may have rows with a prefix from ``low`` on."""
        if (letter := prefix[:1]) not in NEIGHBOURS:
            yield letter
            return
        size, key = NEIGHBOURS[letter], self.link.prefix + DIRECTORY
        ends = [b"[" + low[:size], b"(" + (after(prefix[:size]) or b"\xff" * size)]

        def ask(client: Any) -> list[bytes]:
            find = client.zrevrangebylex if reverse else client.zrangebylex
            return list(find(key, *ends[:: -1 if reverse else 1], 0, _NAMES))

        while names := self.link.call(ask):
            yield from names
            ends[reverse] = b"(" + names[-1]

    def _rows_in(self, names: Iterable[bytes], *, reverse: bool) -> Iterator[Row]:
        """Yield the rows of hashes that lie one after the other. Callers may need few, so it begins with one hash."""
        names, many = iter(names), 1
        while some := list(islice(names, many)):
            many = min(2 * many, _HASHES)
            for name, held in zip(some, self._each(some, lambda pipe, key: pipe.hgetall(key)), strict=True):
                yield from sorted(((name + field, value) for field, value in held.items()), reverse=reverse)

    def _rows_on_levels(self, letter: bytes, *, reverse: bool) -> Iterator[Row]:
        """Yield URLs or postings. The directory does not list their keys, so the server scans for them."""
        begin = len(self.link.prefix)
        found = self.link.scan(self._pattern(letter + b"*"))  # Kvrocks knows no other pattern
        by_bits = sorted({key[begin:] for key in found if len(key) > begin + 1}, key=first_bits, reverse=reverse)
        for _, together in groupby(by_bits, key=first_bits):
            names, rows = list(together), dict[bytes, bytes]()
            for at in range(0, len(names), _NAMES):
                some = names[at : at + _NAMES]
                if letter == b"u":
                    for held in self._each(some, lambda pipe, key: pipe.hgetall(key)):
                        rows.update((letter + field, value) for field, value in held.items())
                else:
                    for held in self._each(some, lambda pipe, key: pipe.zrangebylex(key, b"-", b"+")):
                        rows.update((letter + member, b"") for member in held)
            yield from sorted(rows.items(), reverse=reverse)

    # Writing.

    def write(self, changes: Changes, *, sync: bool) -> None:
        if self.transaction is not None:
            self.transaction.write(changes)
            return
        read_set, self.read_set = self.read_set or {}, None if self.read_set is None else {}
        self.commit(RemoteTransaction(changes=changes, read_set=read_set))

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

    def commit(self, transaction: RemoteTransaction) -> None:
        """Write the changes of a transaction. Raises OvertakenError and StoreError."""
        if not (program := self.write_program(transaction)).is_empty:
            self.raise_for(self.link.run(program))

    def write_program(
        self, transaction: RemoteTransaction, page: PendingPage | None = None, record: bytes = b""
    ) -> Program:
        """Return a program that writes changes if the rows of the read set are the same and the crawls still ours.

        Afterwards ``page`` is no longer in flight. If the changes include the row ``record``, it must be until then.
        """
        changes, program = transaction.changes, self.link.program()
        if not (changes.puts or changes.deletes or changes.sights or page):
            return program
        for row, value in transaction.read_set.items():
            program.expect(row, value)
        crawls = {layout.generation_of(row) for row in (*changes.puts, *changes.deletes) if row[:1] == b"j"}
        for crawl in crawls & self.leases.crawls:
            self.leases.expect(crawl, program)
        for row in changes.deletes:
            program.delete(row)
            if row[:1] == b"g" and layout.last_id(row) in self.leases.crawls:
                self.leases.end(layout.last_id(row), program)
        for row, value in changes.puts.items():
            letter = row[:1]
            if letter == b"k" and is_filing(row):
                program.file(value, row[1:], self.known_pages)
            elif letter == b"k" and is_posting(row):  # a copied state
                program.file(row[1:-8], row[-8:], self.known_pages)
            elif page is not None and row == record:
                program.put_record(page, row, value)
            else:
                program.put(row, value, self.known_pages)
            if letter == b"g":
                self.leases.take_new(layout.last_id(row), program)
        for row, value in changes.sights.items():
            program.see(row, value[:8], value[8:])
        if transaction.notes:
            self.publish(program, transaction.notes, page)
        if page is not None:
            program.unregister(page)
        return program

    def publish(self, program: Program, notes: Sequence[Note], page: PendingPage | None = None) -> None:
        """Let a program publish sentences to count; once only, if it also takes ``page`` from those in flight."""
        program.publish(pack_notes(self.leases.token, notes), _PUBLISHED, page)

    def raise_for(self, found: Answer) -> None:
        """Raise OvertakenError or StoreError if a condition of a program did not hold."""
        if found[0] == 1:
            return
        if found[1] == IN_FLIGHT:
            raise self.leases.loss(PageLost)
        raise self.leases.loss() if found[1] == LOST_LEASE else OvertakenError


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
