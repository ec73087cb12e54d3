"""The way to a Redis server for a loop that must not be held up: several programs are on their way at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from scrapy_neardup.errors import StoreError
from scrapy_neardup.stores.redis_link import Access, need_redis, way_to
from scrapy_neardup.stores.redis_notes import FEW, STREAM, entries_of
from scrapy_neardup.stores.redis_program import Program
from scrapy_neardup.stores.redis_told import told
from scrapy_neardup.stores.redis_wire import Wire

T = TypeVar("T")
#: Connections at most: one for programs, and some for what is rare.
_CONNECTIONS = 8
#: Seconds before a program is sent again that had no answer: for each time, and where a server is waited for.
PAUSES, _LATER = (0.05, 0.2, 0.5), 1.0


class Patience(Protocol):
    """Told once when the server does not answer, by what kind of error, and once when it does again."""

    def gone(self, why: str) -> None:
        """It does not answer."""

    def back(self) -> None:
        """It does."""


class NoAnswer(Exception):
    """Nobody knows whether a program was done."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class AsyncLink:
    """Connections of the loop that is running, to the state at a location."""

    #: As of ``Link``.
    levels = 1

    def __init__(self, location: str, named_by: str, patience: Patience | None = None) -> None:
        """``patience``: what is told while a server is waited for; without it three more tries are all."""
        redis = need_redis(named_by)
        from redis.asyncio import BlockingConnectionPool, Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        from scrapy_neardup.stores.redis_nodes import lacks_replicas

        self._lacks_replicas = lacks_replicas
        self._location = location
        self._patience = patience
        self._is_gone = False
        self._broken: tuple[type[Exception], ...] = (redis.ConnectionError, redis.TimeoutError, OSError)
        self._refused = (redis.AuthenticationError, redis.exceptions.NoPermissionError)
        self._refusal: type[Exception] = redis.exceptions.ResponseError
        if patience is not None:  # memory may be given, a replica become the master
            errors = redis.exceptions
            self._broken += (errors.OutOfMemoryError, errors.ReadOnlyError, errors.BusyLoadingError)
        way = way_to(location)
        self.prefix = way.prefix
        self._locator = way.locator
        self._unanswered = 0
        # redis-py may not send anything again on its own: of some programs it matters when they are done.
        arguments = {**way.arguments, "retry": Retry(NoBackoff(), 0), "connection_class": _connection_class(way)}
        pool = BlockingConnectionPool(max_connections=_CONNECTIONS, timeout=60, **arguments)
        self._client = Redis(connection_pool=pool)
        self._pool = pool
        self._wire = Wire(pool, self.prefix, redis.exceptions.NoScriptError)

    @property
    def breaks(self) -> int:
        """Grows whenever the server may have become another one, or one that has lost what it had confirmed."""
        return self._unanswered + (self._locator.moves if self._locator is not None else 0)

    def program(self) -> Program:
        """An empty one for this state."""
        return Program(self.levels)

    async def run(self, program: Program) -> list[Any]:
        """As of ``Link``; the program is sent again where no answer came."""
        try:
            return await self.run_once(program)
        except NoAnswer as error:
            return await self._until_answered(lambda: self.run_once(program), error)

    async def run_once(self, program: Program) -> list[Any]:
        """The same for a program of which it matters when it was done; raises NoAnswer where none came."""
        try:
            found = await self._sent(program)
        except Exception as error:  # in the way of each page, so nothing is entered where there is none
            failed = self._unanswerable(error)
        else:
            if self._is_gone:
                self._tell_back()
            return found
        self._unanswered += 1
        raise NoAnswer(failed)

    def _unanswerable(self, error: Exception) -> Exception:
        """The error itself where a program may be sent again; else it is raised, in our words."""
        with told(self._location):
            if isinstance(error, self._refused):
                raise error
            if isinstance(error.__cause__, self._refused):  # as redis-py tells it of sockets in the file system
                raise error.__cause__
            if isinstance(error, self._broken):
                return error
            if self._patience is None or not isinstance(error, self._refusal) or not self._lacks_replicas(error):
                raise error
        return error

    async def in_thread(self, work: Callable[[], T]) -> T:
        """What synchronous work gives that waits for the server, in a thread; it is done again as a program is."""
        return await self._until_answered(lambda: self._in_thread_once(work))

    async def _in_thread_once(self, work: Callable[[], T]) -> T:
        try:
            found = await asyncio.to_thread(work)
        except StoreError as error:
            cause = error.__cause__
            if not isinstance(cause, self._broken) or isinstance(cause, self._refused):
                raise
            failed = cause
        else:
            self._tell_back()
            return found
        raise NoAnswer(failed)

    async def _until_answered(self, attempt: Callable[[], Awaitable[T]], failed: NoAnswer | None = None) -> T:
        """``failed``: what came of a first attempt."""
        pauses = iter(PAUSES)
        while True:
            if failed is not None:
                await self.wait(failed, next(pauses, None))
            try:
                return await attempt()
            except NoAnswer as error:
                failed = error

    async def wait(self, error: NoAnswer, pause: float | None) -> None:
        """Wait before a program is sent again; raises StoreError where that was tried often enough."""
        if pause is None:
            with told(self._location):
                if self._patience is None:
                    raise error.cause
                if not self._is_gone:
                    self._is_gone = True
                    self._patience.gone(f"{type(error.cause).__name__}")
            pause = _LATER
        await asyncio.sleep(pause)

    def _tell_back(self) -> None:
        if self._is_gone and self._patience is not None:
            self._is_gone = False
            self._patience.back()

    async def _sent(self, program: Program) -> list[Any]:
        found: list[Any] = await self._wire.answer_to(program)
        while found[0] == 2:
            self.levels = program.levels = found[1]
            found = await self._wire.answer_to(program)
        return found

    async def told_since(self, place: bytes) -> list[tuple[bytes, dict[bytes, bytes]]]:
        """The next entries of the stream of what is counted, ``FEW`` at most."""
        if self._locator is not None:
            await asyncio.to_thread(self._locator.look)
        with told(self._location):
            return entries_of(await self._client.xread({self.prefix + STREAM: place}, count=FEW))

    async def fields(self, name: bytes) -> dict[bytes, bytes]:
        """All of a hash that is no part of the state."""
        with told(self._location):
            return dict(await self._client.hgetall(self.prefix + name))  # type: ignore[arg-type]

    async def close(self) -> None:
        """Let go of all connections."""
        await self._wire.close()
        await self._client.aclose()
        await self._pool.aclose()


def _connection_class(way: Access) -> Any:
    from redis.asyncio import UnixDomainSocketConnection, connection

    if way.locator is not None:
        from scrapy_neardup.stores.redis_located import AsyncLocatedConnection, AsyncLocatedSSLConnection

        return AsyncLocatedSSLConnection if way.is_tls else AsyncLocatedConnection
    if "path" in way.arguments:
        return UnixDomainSocketConnection
    return connection.SSLConnection if way.is_tls else connection.Connection
