"""The page store on a Redis server, shared by many crawlers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar
from urllib.parse import SplitResult

from scrapy_neardup.errors import StoreError, StoreMismatch
from scrapy_neardup.hashing.keys import pack_key
from scrapy_neardup.server.connection import Link
from scrapy_neardup.server.counting import OvertakenError, ServerRows, SharedCounting
from scrapy_neardup.server.in_flight import PendingPage
from scrapy_neardup.server.layout import DIRECTORY, GIVEN_UP, pending_name
from scrapy_neardup.server.leases import LEASE, NUMBER_BITS, Leases, PageLost
from scrapy_neardup.server.location import read_url
from scrapy_neardup.server.program import Program
from scrapy_neardup.state import layout
from scrapy_neardup.state.journal import TakenBack
from scrapy_neardup.state.kv import SETTING, Changes, Row
from scrapy_neardup.state.pages import Pending
from scrapy_neardup.state.postings import PostingRows, Postings
from scrapy_neardup.state.recipe import Secret
from scrapy_neardup.state.record import Record

# ----------------------------------------------------------------------------------------------------------------------
# State on a server that speaks Redis' protocol (Redis, Valkey, Kvrocks), for crawlers on many machines at once.
#
# Nobody holds the state alone. So what a write depends on is said with it, and the server does it only if that is still
# so; else it is read anew. Crawls hold *leases*: of one that nobody holds any more, what was not sealed is taken back
# by whoever opens the state next. See ``redis_layout`` for where the rows lie.


T = TypeVar("T")
P = ParamSpec("P")
#: First letters of rows on which writes depend.
_DEPENDED_ON = b"ujm"
#: Times that a write is tried that others come before.
_TRIES = 200
#: Pages that are sealed or forgotten in one piece, while which the server does nothing else.
_BATCH = 200


def _until_done(
    write: Callable[Concatenate[SharedCounting, P], T],
) -> Callable[Concatenate[RedisStore, P], T]:
    """A write as of every store, done anew until nobody comes in between."""

    def done(self: RedisStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._retried(lambda: write(self, *args, **kwargs))

    return done


class RedisStore(SharedCounting):
    """Rows on a server; every method waits for it, but for those of a ``view``."""

    scheme: ClassVar[str] = "redis"
    tallied: ClassVar[bool] = False
    is_shared: ClassVar[bool] = True
    postings_type: ClassVar[type[Postings]] = PostingRows
    #: Seconds for which a crawl is held without being heard of.
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
        link = Link(location, SETTING)
        try:
            with link.used() as client:
                return bool(client.exists(link.prefix + DIRECTORY))
        finally:
            link.close()

    # Opening and closing.

    def _connect(self) -> None:
        self._link = Link(self.location, self.named_by)
        self.leases = Leases(self._link, self.location, self.lease)
        self._rows = ServerRows(self._link)
        self._untold = []
        self._pages = 0
        try:
            self._link.refuse_what_forgets()
        except BaseException:
            self._link.close()
            raise

    def _disconnect(self) -> None:
        try:
            self.leases.close()
        finally:
            self._link.close()

    def _check_recipe(self, recipe: Mapping[str, Any] | None, secret: Secret | None) -> dict[str, Any]:
        """Of two who begin a state at once, the second takes that of the first."""
        name = layout.meta_key("recipe")

        def checked() -> dict[str, Any]:
            try:
                return super(RedisStore, self)._check_recipe(recipe, secret)
            except StoreMismatch:
                if self._asked and self._asked.get(name, b"") is None and self._rows.get(name) is not None:
                    raise OvertakenError from None  # it was not there, and then it was
                raise

        return self._retried(checked)

    def _take_over(self, generation: int) -> bool:
        if not self.leases.take(generation):
            return False
        self._remove_in_flight(generation)
        return True

    def _remove_in_flight(self, generation: int) -> None:
        with self._link.used() as client:
            found = client.hgetall(self._link.prefix + pending_name(generation))
        for id, packed in found.items():
            program = self._link.program()
            page = PendingPage(self._unpacked(int.from_bytes(id, "big"), packed), generation)
            page.remove(program, self.hashes)
            self._link.run(program)

    def _take_back(self) -> TakenBack:
        taken = super()._take_back()
        self.is_held = any(self.leases.is_others(layout.last_id(key)) for key, _ in self._scan(b"g"))
        return taken

    def _take_back_some(self, journals: Iterable[bytes]) -> None:
        self._retried(lambda: super(RedisStore, self)._take_back_some(journals))

    def _all_unsealed(self, left: Iterable[int]) -> Iterator[bytes]:
        scans = (self._scan(layout.journal_prefix(crawl), reverse=True) for crawl in left)
        return (journal for journal, _ in merge(*scans, key=lambda row: layout.last_id(row[0]), reverse=True))

    def pending(self) -> Pending:
        """What crawls that are at work now have not sealed."""
        crawls = {layout.last_id(key): json.loads(about) for key, about in self._scan(b"g")}
        names = tuple(str(about.get("who", "")) for about in crawls.values())
        return Pending(sum(1 for crawl in crawls for _ in self.unsealed(crawl)), names)

    def is_pending(self, id: int) -> bool:
        program = self._link.program()
        for key, _ in self._scan(b"g"):
            program.get(layout.journal_key(layout.last_id(key), id))
        return not program.is_empty and any(found is not None for found in self._link.run(program)[1:])

    def _is_unsealed(self, id: int) -> bool:
        """By the crawls that the server knows now: others write pages, too."""
        return self.is_pending(id)

    # Ids and counts.

    def new_id(self) -> int:
        """The time in nanoseconds, with the number of this crawler in its lowest bits."""
        step = 1 << NUMBER_BITS
        self._newest = max((self._newest | (step - 1)) + 1, self._nanoseconds() & -step) | self.leases.number
        return self._newest

    @property
    def pages(self) -> int:
        """As many as there are by the server's count; in a view, as many as there were lately."""
        if self.view is None and not self._closed:
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
        asked = self._asked if self.view is None else self.view.asked
        value = self._rows.get(key) if self.view is None else self.view.row(key)
        if asked is not None and key[0] in _DEPENDED_ON and not (self.view and key in self.view.changes.puts):
            asked.setdefault(key, value)
        return value

    def all_postings(self, keys: Sequence[int], limit: int) -> list[list[int]]:
        if self.view is not None:
            return [self.view.filed(key, limit) for key in keys]
        return [self._rows.postings(pack_key(key), limit) for key in keys]

    def _scan(self, prefix: bytes, *, reverse: bool = False) -> Iterator[Row]:
        scan = self._rows.scan if self.view is None else self.view.scan
        return scan(prefix, reverse=reverse)

    def wait_longer(self) -> None:
        """Wait for half a minute for a server that does not answer, from here on."""
        self._link.wait_longer()

    def scanned(self, prefix: bytes) -> list[Row]:
        """What a scan gives that waits for the server: for a thread, whatever the view is."""
        return list(self._rows.scan(prefix, reverse=False))

    def _rows_from(self, low: bytes, prefix: bytes) -> Iterator[Row]:
        return self._rows.rows_from(low, prefix)

    def size(self) -> int:
        return self._rows.size()

    def compact(self) -> None:
        """Nothing to do: the server gives back the room of what was deleted."""

    # Writing.

    def _apply(self, changes: Changes, *, sync: bool) -> None:
        if self.view is not None:
            self.view.write(changes)
            return
        asked, self._asked = self._asked or {}, None if self._asked is None else {}
        program = self.written(changes, asked)
        self.raise_for(self._link.run(program))

    def written(self, changes: Changes, asked: Mapping[bytes, bytes | None]) -> Program:
        """A program that applies changes if what was asked is still so, and the crawls that they are of are ours."""
        program = self._link.program()
        for row, value in asked.items():
            program.expect(row, value)
        crawls = {layout.generation_of(row) for row in (*changes.puts, *changes.deletes) if row[:1] == b"j"}
        for crawl in crawls & self.leases.held:
            self.leases.expect(crawl, program)
        for row in changes.deletes:
            program.delete(row)
            if row[:1] == b"g" and layout.last_id(row) in self.leases.held:
                self.leases.end(layout.last_id(row), program)
                program.strike(GIVEN_UP, row)
        for row, value in changes.puts.items():
            program.put(row, value, self._pages)
            if row[:1] == b"g":
                self.leases.hold(layout.last_id(row), program)
        for row, value in changes.sights.items():
            program.see(row, value[:8], value[8:])
        return program

    def raise_for(self, found: list[Any]) -> None:
        """Raise OvertakenError for the answer of a program of which a condition did not hold, or StoreError."""
        if found[0] != 1:
            condition = found[1]
            if condition == b"?":
                raise self.leases.lost(PageLost)
            raise self.leases.lost() if condition == b"L" else OvertakenError

    def _see(self, pages: Iterable[Record], seconds: float, changes: Changes) -> None:
        for page in pages:
            key = self._url_key(page.url)
            if key not in changes.puts and key not in changes.deletes:
                changes.sights[key] = layout.pack_seen(page.id, seconds)

    def _retried(self, call: Callable[[], T]) -> T:
        """Call what reads and then writes, until nobody comes in between."""
        if self.view is not None or self._asked is not None:
            return call()
        for _ in range(_TRIES):
            self._asked = {}
            try:
                return call()
            except OvertakenError:
                continue
            finally:
                self._asked = None
        raise StoreError(
            f"{_TRIES} writes to the state at {self.location} failed, because others wrote first. Try again. If that "
            "does not help, check whether another program writes to the keys of this state."
        )

    add = _until_done(SharedCounting.add)
    touch = _until_done(SharedCounting.touch)
    withdraw = _until_done(SharedCounting.withdraw)
    expire = _until_done(SharedCounting.expire)

    def seal(self, generation: int, ids: Iterable[int]) -> None:
        seal, ids = super().seal, iter(ids)
        while some := list(islice(ids, _BATCH)):
            self._retried(lambda some=some: seal(generation, some))  # type: ignore[misc]

    def forget(self, ids: Iterable[int]) -> int:
        forget, ids, gone = super().forget, iter(ids), 0
        while some := list(islice(ids, _BATCH)):
            gone += self._retried(lambda some=some: forget(some))  # type: ignore[misc]
        return gone


# ----------------------------------------------------------------------------------------------------------------------
# The other ways to a state on a server; what lies there is the same.


class RedissStore(RedisStore):
    """Over TLS."""

    scheme: ClassVar[str] = "rediss"


class UnixStore(RedisStore):
    """On a socket of this machine."""

    scheme: ClassVar[str] = "unix"

    @classmethod
    def form(cls) -> str:
        return "unix:///path/of/the.sock?state=name"


class SentinelStore(RedisStore):
    """On whatever server is the master just now, by what the Sentinels say; see ``redis_nodes``."""

    scheme: ClassVar[str] = "redis+sentinel"

    @classmethod
    def form(cls) -> str:
        return f"{cls.scheme}://host:26379,host:26379/service/0?state=name"


class RedissSentinelStore(SentinelStore):
    """The same, over TLS, the Sentinels too."""

    scheme: ClassVar[str] = "rediss+sentinel"


class ClusterStore(RedisStore):
    """On the node of a cluster that has the state's slot just now; see ``redis_nodes``."""

    scheme: ClassVar[str] = "redis+cluster"

    @classmethod
    def form(cls) -> str:
        return f"{cls.scheme}://host:6379,host:6379?state=name"


class RedissClusterStore(ClusterStore):
    """The same, over TLS."""

    scheme: ClassVar[str] = "rediss+cluster"
