"""The page store on a Redis server, shared by many crawlers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec, TypeVar
from urllib.parse import SplitResult

from scrapy_neardup.errors import StoreError, StoreMismatch
from scrapy_neardup.hashing.keys import pack_key
from scrapy_neardup.kv.base import SETTING, Changes, Row
from scrapy_neardup.server.counting import OvertakenError, SharedCounting
from scrapy_neardup.server.in_flight import PendingPage
from scrapy_neardup.server.layout import DIRECTORY, GIVEN_UP, pending_name
from scrapy_neardup.server.leases import LEASE, NUMBER_BITS, Leases, PageLost
from scrapy_neardup.server.location import need_redis, read_url
from scrapy_neardup.server.program import Program
from scrapy_neardup.server.rows import ServerRows
from scrapy_neardup.state import layout
from scrapy_neardup.state.journal import TakenBack
from scrapy_neardup.state.pages import Pending
from scrapy_neardup.state.postings import PostingRows, Postings
from scrapy_neardup.state.recipe import Secret
from scrapy_neardup.state.record import Record

if TYPE_CHECKING:
    from scrapy_neardup.server.connection import Link

T = TypeVar("T")
P = ParamSpec("P")
#: First letters of the rows on which writes depend.
_READ_SET = b"ujm"
#: Tries of a write, if others always write first.
TRIES = 200
#: Pages to seal or forget at once; the server does nothing else meanwhile.
BATCH = 200


def overtaken_too_often(location: str) -> StoreError:
    """Return the error after ``TRIES`` writes that others came before."""
    return StoreError(
        f"{TRIES} writes to the state at {location} failed, because others wrote first. Try again. If that does not "
        "help, check whether another program writes to the keys of this state."
    )


def _optimistic(
    write: Callable[Concatenate[SharedCounting, P], T],
) -> Callable[Concatenate[RedisStore, P], T]:
    """Repeat a write of the base class until nobody changes what it has read."""

    def repeated(self: RedisStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._repeat(lambda: write(self, *args, **kwargs))

    return repeated


class RedisStore(SharedCounting):
    """A state on Redis, Valkey or Kvrocks, for crawlers on many machines.

    Every write names the rows that it read, and the server applies it only if they have not changed. Crawls hold
    leases. The next opening rolls back the unsealed pages of a crawl whose lease has ended.
    """

    scheme: ClassVar[str] = "redis"
    tallied: ClassVar[bool] = False
    is_shared: ClassVar[bool] = True
    #: Rows, because many crawlers file under one key at once.
    postings_type: ClassVar[type[Postings]] = PostingRows
    #: Seconds after which a silent crawl may lose its unsealed pages.
    lease: ClassVar[float] = LEASE

    @classmethod
    def form(cls) -> str:
        return f"{cls.scheme}://host:6379/0?state=name"

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

    # Opening and closing.

    def _connect(self) -> None:
        self._link = _open_link(self.location, self.named_by)
        self.leases = Leases(self._link, self.location, self.lease)
        self._rows = ServerRows(self._link)
        self._unpublished = []
        self._pages = 0
        try:
            self._link.refuse_eviction()
        except BaseException:
            self._link.close()
            raise

    def _disconnect(self) -> None:
        try:
            self.leases.close()
        finally:
            self._link.close()

    def _check_recipe(self, recipe: Mapping[str, Any] | None, secret: Secret | None) -> dict[str, Any]:
        """If two begin a state at once, the second takes the recipe of the first."""
        name = layout.meta_key("recipe")

        def checked() -> dict[str, Any]:
            try:
                return super(RedisStore, self)._check_recipe(recipe, secret)
            except StoreMismatch:
                if self._read_set and self._read_set.get(name, b"") is None and self._rows.get(name) is not None:
                    raise OvertakenError from None
                raise

        return self._repeat(checked)

    def _take_over(self, generation: int) -> bool:
        if not self.leases.take_over(generation):
            return False
        self._remove_in_flight(generation)
        return True

    def _remove_in_flight(self, generation: int) -> None:
        name = self._link.prefix + pending_name(generation)
        found = self._link.call(lambda client: client.hgetall(name))
        for id, packed in found.items():
            program = self._link.program()
            page = PendingPage(self._unpacked(int.from_bytes(id, "big"), packed), generation)
            page.unregister(program, self.hashes)
            self._link.run(program)

    def _take_back(self) -> TakenBack:
        taken = super()._take_back()
        self.is_held = any(self.leases.is_held_by_others(layout.last_id(key)) for key, _ in self._scan(b"g"))
        return taken

    def _take_back_some(self, journals: Iterable[bytes]) -> None:
        self._repeat(lambda: super(RedisStore, self)._take_back_some(journals))

    def _all_unsealed(self, left: Iterable[int]) -> Iterator[bytes]:
        scans = (self._scan(layout.journal_prefix(crawl), reverse=True) for crawl in left)
        return (journal for journal, _ in merge(*scans, key=lambda row: layout.last_id(row[0]), reverse=True))

    def pending(self) -> Pending:
        """Return the unsealed pages of the crawls that the state knows."""
        crawls = {layout.last_id(key): json.loads(about) for key, about in self._scan(b"g")}
        names = tuple(str(about.get("who", "")) for about in crawls.values())
        return Pending(sum(1 for crawl in crawls for _ in self.unsealed(crawl)), names)

    def is_pending(self, id: int) -> bool:
        program = self._link.program()
        for key, _ in self._scan(b"g"):
            program.get(layout.journal_key(layout.last_id(key), id))
        return not program.is_empty and any(found is not None for found in self._link.run(program)[1:])

    def _is_unsealed(self, id: int) -> bool:
        return self.is_pending(id)

    # Ids and counts.

    def new_id(self) -> int:
        """Return the time in nanoseconds, with the number of this crawler in its low bits."""
        step = 1 << NUMBER_BITS
        self._newest = max((self._newest | (step - 1)) + 1, self._nanoseconds() & -step) | self.leases.number
        return self._newest

    @property
    def pages(self) -> int:
        """The number of pages; within a transaction, the last known one."""
        if self.transaction is None and not self._closed:
            self._pages = self._rows.pages()
        return self._pages

    @pages.setter
    def pages(self, pages: int) -> None:
        """The server counts."""

    def _count(self) -> int:
        return 0

    def count_rows(self, prefix: bytes) -> int:
        return self._rows.count(prefix)

    # Rows.

    def _get(self, key: bytes) -> bytes | None:
        one = self.transaction
        value = self._rows.get(key) if one is None else one.row(key)
        read_set = self._read_set if one is None else one.read_set
        if read_set is not None and key[0] in _READ_SET and not (one and key in one.changes.puts):
            read_set.setdefault(key, value)
        return value

    def all_postings(self, keys: Sequence[int], limit: int) -> list[list[int]]:
        if self.transaction is not None:
            return [self.transaction.postings(key, limit) for key in keys]
        return [self._rows.postings(pack_key(key), limit) for key in keys]

    def _scan(self, prefix: bytes, *, reverse: bool = False) -> Iterator[Row]:
        return (self.transaction or self._rows).scan(prefix, reverse=reverse)

    def wait_longer(self) -> None:
        """From now on, wait half a minute for a server that does not answer."""
        self._link.wait_longer()

    def read_rows(self, prefix: bytes) -> list[Row]:
        """Return the rows that begin with ``prefix``, from the server even during a transaction."""
        return list(self._rows.scan(prefix, reverse=False))

    def _rows_from(self, low: bytes, prefix: bytes) -> Iterator[Row]:
        return self._rows.rows_from(low, prefix)

    def size(self) -> int:
        return self._rows.size()

    def compact(self) -> None:
        """Do nothing: the server reuses the room of deleted rows."""

    # Writing.

    def _apply(self, changes: Changes, *, sync: bool) -> None:
        if self.transaction is not None:
            self.transaction.write(changes)
            return
        read_set, self._read_set = self._read_set or {}, None if self._read_set is None else {}
        self.raise_for(self._link.run(self.write_program(changes, read_set)))

    def write_program(self, changes: Changes, read_set: Mapping[bytes, bytes | None]) -> Program:
        """Return a program that writes changes if the rows of the read set are the same and the crawls still ours."""
        program = self._link.program()
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

    def _see(self, pages: Iterable[Record], seconds: float, changes: Changes) -> None:
        for page in pages:
            key = self._url_key(page.url)
            if key not in changes.puts and key not in changes.deletes:
                changes.sights[key] = layout.pack_seen(page.id, seconds)

    def _repeat(self, write: Callable[[], T]) -> T:
        if self.transaction is not None or self._read_set is not None:
            return write()
        for _ in range(TRIES):
            self._read_set = {}
            try:
                return write()
            except OvertakenError:
                continue
            finally:
                self._read_set = None
        raise overtaken_too_often(self.location)

    add = _optimistic(SharedCounting.add)
    touch = _optimistic(SharedCounting.touch)
    withdraw = _optimistic(SharedCounting.withdraw)
    expire = _optimistic(SharedCounting.expire)

    def seal(self, generation: int, ids: Iterable[int]) -> None:
        seal, ids = super().seal, iter(ids)
        while some := list(islice(ids, BATCH)):
            self._repeat(lambda some=some: seal(generation, some))  # type: ignore[misc]

    def forget(self, ids: Iterable[int]) -> int:
        forget, ids, gone = super().forget, iter(ids), 0
        while some := list(islice(ids, BATCH)):
            gone += self._repeat(lambda some=some: forget(some))  # type: ignore[misc]
        return gone


def _open_link(location: str, named_by: str) -> Link:
    need_redis(named_by)
    from scrapy_neardup.server.connection import Link  # needs redis-py

    return Link(location)


# The rows are the same, however the server is reached.


class RedissStore(RedisStore):
    """A server over TLS."""

    scheme: ClassVar[str] = "rediss"


class UnixStore(RedisStore):
    """A server on a socket of this machine."""

    scheme: ClassVar[str] = "unix"

    @classmethod
    def form(cls) -> str:
        return "unix:///path/of/the.sock?state=name"


class SentinelStore(RedisStore):
    """The master that the Sentinels name."""

    scheme: ClassVar[str] = "redis+sentinel"

    @classmethod
    def form(cls) -> str:
        return f"{cls.scheme}://host:26379,host:26379/service/0?state=name"


class RedissSentinelStore(SentinelStore):
    """The same over TLS, also to the Sentinels."""

    scheme: ClassVar[str] = "rediss+sentinel"


class ClusterStore(RedisStore):
    """The node of a cluster that has the slot of the state."""

    scheme: ClassVar[str] = "redis+cluster"

    @classmethod
    def form(cls) -> str:
        return f"{cls.scheme}://host:6379,host:6379?state=name"


class RedissClusterStore(ClusterStore):
    """The same over TLS."""

    scheme: ClassVar[str] = "rediss+cluster"
