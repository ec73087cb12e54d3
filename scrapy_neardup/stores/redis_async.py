"""The way to a Redis server for a loop that must not be held up: several programs are on their way at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from scrapy_neardup.errors import StoreError
from scrapy_neardup.stores.redis_link import Access, need_redis, script_digest, way_to
from scrapy_neardup.stores.redis_notes import CHUNK, STREAM, entries_of
from scrapy_neardup.stores.redis_packing import packing
from scrapy_neardup.stores.redis_script import SCRIPT, Program
from scrapy_neardup.stores.redis_told import told

T = TypeVar("T")
#: Connections at most; with more pages at a time some wait for one.
_CONNECTIONS = 32
#: Programs that are sent in one piece, at most: the first waits for the answer to the last.
_TOGETHER = 16
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
        self._no_script: type[Exception] = redis.exceptions.NoScriptError
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
        pool.connection_class = packing(pool.connection_class)
        self._client = Redis(connection_pool=pool)
        self._pool = pool
        #: Commands that go with the next piece, each with what takes its answer; pieces that are on their way.
        self._waiting: list[tuple[tuple[Any, ...], asyncio.Future[Any]]] = []
        self._sending: set[asyncio.Task[None]] = set()

    @property
    def breaks(self) -> int:
        """Grows whenever the server may have become another one, or one that has lost what it had confirmed."""
        return self._unanswered + (self._locator.moves if self._locator is not None else 0)

    def program(self) -> Program:
        """An empty one for this state."""
        return Program(self.prefix)

    async def run(self, program: Program) -> list[Any]:
        """As of ``Link``; the program is sent again where no answer came."""
        return await self._until_answered(lambda: self.run_once(program))

    async def run_once(self, program: Program) -> list[Any]:
        """The same for a program of which it matters when it was done; raises NoAnswer where none came."""
        with told(self._location):
            try:
                found = await self._sent(program)
            except self._refused:
                raise
            except self._broken as error:
                if isinstance(error.__cause__, self._refused):  # as redis-py tells it of sockets in the file system
                    raise error.__cause__ from None
                failed = error
            except self._refusal as error:
                if self._patience is None or not self._lacks_replicas(error):
                    raise
                failed = error
            else:
                self._tell_back()
                return found
        self._unanswered += 1
        raise NoAnswer(failed)

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

    async def _until_answered(self, attempt: Callable[[], Awaitable[T]]) -> T:
        pauses = iter(PAUSES)
        while True:
            try:
                return await attempt()
            except NoAnswer as error:
                failed = error
            await self.wait(failed, next(pauses, None))

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
        keys = program.keys
        run = (len(keys), *keys, *program.arguments)
        try:
            return list(await self._together("EVALSHA", script_digest(), *run))
        except self._no_script:
            return list(await self._together("EVAL", SCRIPT, *run))

    def _together(self, *command: Any) -> asyncio.Future[Any]:
        """The answer to a command, which is sent in one piece with others of this moment."""
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        self._waiting.append((command, answer))
        if len(self._waiting) == 1:
            loop.call_soon(self._send)
        elif len(self._waiting) == _TOGETHER:
            self._send()
        return answer

    def _send(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            task = asyncio.ensure_future(self._answered(waiting))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _answered(self, waiting: list[tuple[tuple[Any, ...], asyncio.Future[Any]]]) -> None:
        pipe = self._client.pipeline(transaction=False)
        for command, _ in waiting:
            pipe.execute_command(*command)
        try:
            answers = await pipe.execute(raise_on_error=False)
        except Exception as error:  # of the way there, so of all of them
            answers = [error] * len(waiting)
        for (_, future), answer in zip(waiting, answers, strict=True):
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    async def told_since(self, place: bytes) -> list[tuple[bytes, dict[bytes, bytes]]]:
        """The next entries of the stream of what is counted."""
        if self._locator is not None:
            await asyncio.to_thread(self._locator.look)
        with told(self._location):
            return entries_of(await self._client.xread({self.prefix + STREAM: place}, count=CHUNK))

    async def fields(self, name: bytes) -> dict[bytes, bytes]:
        """All of a hash that is no part of the state."""
        with told(self._location):
            return dict(await self._client.hgetall(self.prefix + name))  # type: ignore[arg-type]

    async def close(self) -> None:
        """Let go of all connections."""
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
