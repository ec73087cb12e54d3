"""The rows of a state on a Redis server as a key-value store, shared by many crawlers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from urllib.parse import SplitResult

from scrapy_neardup.errors import StoreError
from scrapy_neardup.hashing.keys import pack_key
from scrapy_neardup.kv.base import SETTING, Changes, Engine, Row
from scrapy_neardup.kv.options import DEFAULT, Options
from scrapy_neardup.server.layout import DIRECTORY, GIVEN_UP
from scrapy_neardup.server.leases import LEASE, Leases, PageLost
from scrapy_neardup.server.location import need_redis, read_url
from scrapy_neardup.server.program import Program
from scrapy_neardup.server.rows import RemoteTransaction, ServerRows
from scrapy_neardup.state import layout

if TYPE_CHECKING:
    from scrapy_neardup.server.connection import Link

T = TypeVar("T")
#: First letters of the rows on which writes depend.
_READ_SET = b"ujm"
#: Tries of a write, if others always write first.
TRIES = 200


class OvertakenError(Exception):
    """Others have changed what a write depends on."""


def overtaken_too_often(location: str) -> StoreError:
    """Return the error after ``TRIES`` writes that others came before."""
    return StoreError(
        f"{TRIES} writes to the state at {location} failed, because others wrote first. Try again. If that does not "
        "help, check whether another program writes to the keys of this state."
    )


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

    def __init__(self, location: str, named_by: str = SETTING, options: Options = DEFAULT) -> None:
        super().__init__(location, named_by, options)
        self.scheme = location.partition(":")[0]
        self.link = _open_link(location, named_by)
        self.leases = Leases(self.link, location, self.lease)
        self.server_rows = ServerRows(self.link)
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

    # Reading.

    def get(self, key: bytes) -> bytes | None:
        one = self.transaction
        value = self.server_rows.get(key) if one is None else one.row(key)
        read_set = self.read_set if one is None else one.read_set
        if read_set is not None and key[0] in _READ_SET and not (one and key in one.changes.puts):
            read_set.setdefault(key, value)
        return value

    def scan(self, prefix: bytes, *, reverse: bool = False) -> Iterator[Row]:
        return (self.transaction or self.server_rows).scan(prefix, reverse=reverse)

    def scan_from(self, low: bytes, prefix: bytes) -> Iterator[Row]:
        return self.server_rows.rows_from(low, prefix)

    def count(self, prefix: bytes) -> int:
        return self.server_rows.count(prefix)

    def newest_postings(self, key: int, limit: int) -> list[int]:
        """Return the newest ids, up to ``limit``, that are filed under a key."""
        if self.transaction is not None:
            return self.transaction.postings(key, limit)
        return self.server_rows.postings(pack_key(key), limit)

    def pages(self) -> int:
        """Return the number of pages; within a transaction, the last known one."""
        if self.transaction is None:
            self._pages = self.server_rows.pages()
        return self._pages

    def size(self) -> int:
        return self.server_rows.size()

    def compact(self) -> None:
        """Do nothing: the server reuses the room of deleted rows."""

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
