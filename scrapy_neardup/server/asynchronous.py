"""The asynchronous connection of a crawl to the server."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from inspect import signature
from typing import Any, NamedTuple, Protocol, TypeVar

from scrapy_neardup.errors import StoreError
from scrapy_neardup.server.connection import Access, need_redis, translate_errors, way_to
from scrapy_neardup.server.counting import FEW, STREAM, entries_of
from scrapy_neardup.server.program import COMMON, SCRIPT, Program, script_digest

# ----------------------------------------------------------------------------------------------------------------------
# Programs as they go to the server: several in one command, which is put together at once.


class _Numbers(dict[int, bytes]):
    """Numbers as they go to the server; there are few different ones."""

    def __missing__(self, number: int) -> bytes:
        packed = self[number] = _string(b"%d" % number)
        return packed


def _string(one: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(one), one)


_NUMBERS = _Numbers()


class Packing:
    """What packs programs for one state, by the prefix of its keys."""

    def __init__(self, prefix: bytes) -> None:
        #: What comes before a name, by its length: names are short.
        self._heads = [b"$%d\r\n%b" % (len(prefix) + size, prefix) for size in range(64)]
        self._common = self._names(COMMON)

    def packed(self, programs: Sequence[Program], *command: bytes) -> bytes:
        r"""One run of the script, which ``command`` names (EVALSHA and its digest, or EVAL and itself).

        >>> Packing(b"{a}").packed([], b"EVALSHA", b"0")
        b'*6\r\n$7\r\nEVALSHA\r\n$1\r\n0\r\n$1\r\n3\r\n$4\r\n{a}/\r\n$4\r\n{a}^\r\n$4\r\n{a}#\r\n'
        """
        keys, arguments = [*self._common], list[bytes]()
        many = many_keys = len(COMMON)
        for program in programs:
            names, steps = program.parts()
            many_keys += len(names)
            many += len(names) + len(steps)
            keys += self._names(names)
            arguments += [
                b"$%d\r\n%b\r\n" % (len(one), one) if type(one) is bytes else _NUMBERS[one]  # type: ignore[index]
                for one in steps
            ]
        begin = b"*%d\r\n" % (many + len(command) + 1)
        return b"".join([begin, *map(_string, command), _NUMBERS[many_keys], *keys, *arguments])

    def _names(self, names: Iterable[bytes]) -> list[bytes]:
        heads = self._heads
        return [heads[len(name)] + name + b"\r\n" for name in names]


# ----------------------------------------------------------------------------------------------------------------------
# One connection of a loop, on which pieces of several programs go one after the other, and their answers come back.
#
# It is one of redis-py, which knows how to reach a server and to say who asks. What goes there is written at once, not
# by a task of its own for each piece, as that costs more than the piece: so the server is at work on some pages while
# the others are still judged. While pieces are on their way what comes next is collected: the busier the server, the
# larger the pieces.


#: Programs in one piece, at most: the first waits for the answer to the last. With so many a piece goes at once.
_TOGETHER, _ENOUGH = 16, 8
#: Pieces that are on their way before others have to wait.
_AHEAD = 2
#: Seconds after which a connection that was not used is looked at before it is.
_IDLE = 1.0

Waiting = tuple[Program, "asyncio.Future[Any]"]


class _Piece(NamedTuple):
    programs: list[Waiting]
    #: Whether it has the script with it, as the server did not know it.
    is_whole: bool = False


class Wire:
    """``pool``: where connections come from; ``no_script``: the error of a server that does not know the script."""

    def __init__(self, pool: Any, prefix: bytes, no_script: type[Exception]) -> None:
        self._pool = pool
        self._packing = Packing(prefix)
        self._no_script = no_script
        self._connection: Any = None
        # Before version 5.3 redis-py wants the name of a command, and from there on it warns of one.
        name = signature(pool.get_connection).parameters["command_name"]
        self._named = () if name.default is None else ("EVALSHA",)
        self._waiting: list[Waiting] = []
        self._ahead: deque[_Piece] = deque()
        self._work: asyncio.Task[None] | None = None
        self._used = 0.0
        self._is_told = False

    def answer_to(self, program: Program) -> asyncio.Future[Any]:
        """What the server answers, or the error of redis-py."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._waiting.append((program, answer))
        many = len(self._waiting)
        if many == _ENOUGH:
            self._go_on()
        elif many == 1 and not self._is_told:
            self._is_told = True
            loop.call_soon(self._at_end_of_turn)
        return answer

    async def close(self) -> None:
        """Let go of the connection."""
        if self._work is not None:
            self._work.cancel()
            with suppress(asyncio.CancelledError):
                await self._work
        await self._let_go()

    def _at_end_of_turn(self) -> None:
        self._is_told = False
        self._go_on()

    def _go_on(self) -> None:
        """Send what waits, as far as may be; who reads the answers goes on with the rest."""
        if self._is_usable():
            self._send_some()
        if self._work is None and (self._waiting or self._ahead):
            self._work = asyncio.ensure_future(self._worked())
            self._work.add_done_callback(self._worked_off)

    def _send_some(self) -> None:
        while self._waiting and len(self._ahead) < _AHEAD:
            some, self._waiting = self._waiting[:_TOGETHER], self._waiting[_TOGETHER:]
            self._send(_Piece(some))

    def _is_usable(self) -> bool:
        connection = self._connection
        if connection is None or not connection.is_connected:
            return False
        if getattr(connection, "is_elsewhere", False):
            return False
        return bool(self._ahead) or asyncio.get_running_loop().time() - self._used < _IDLE

    def _send(self, piece: _Piece) -> None:
        command = (b"EVAL", SCRIPT.encode()) if piece.is_whole else (b"EVALSHA", script_digest().encode())
        data = self._packing.packed([program for program, _ in piece.programs], *command)
        self._ahead.append(piece)
        self._connection._writer.write(data)

    async def _worked(self) -> None:
        """Connect where that is needed, and take answers as long as any are to come."""
        while self._ahead or self._waiting:
            await self._next()

    async def _next(self) -> None:
        try:
            if not self._is_usable():
                await self._connect()
                self._send_some()
            self._answered(await self._connection.read_response())
        except self._no_script:  # the first one, and the first after a restart
            self._send(_Piece(self._ahead.popleft().programs, is_whole=True))
        except Exception as error:
            await self._failed(error)

    async def _connect(self) -> None:
        """By the pool, which looks whether a connection still holds. What is on its way elsewhere has no answer."""
        await self._let_go()
        if self._ahead:
            raise ConnectionError("the server is another one now")
        self._connection = await self._pool.get_connection(*self._named)
        self._used = asyncio.get_running_loop().time()

    async def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            if self._ahead:
                await connection.disconnect(nowait=True)
            await self._pool.release(connection)

    async def _failed(self, error: Exception) -> None:
        """A server that refused a piece answers others; of a way that broke none of them has an answer."""
        connection = self._connection
        if connection is not None and connection.is_connected and self._ahead and _is_refusal(error):
            self._taken(self._ahead.popleft(), error)
            return
        lost, self._ahead = [*self._ahead], deque()
        if not lost:
            lost, self._waiting = [_Piece(self._waiting)], []
        if connection is not None:
            await connection.disconnect(nowait=True)
        await self._let_go()
        for piece in lost:
            self._taken(piece, error)

    def _answered(self, answers: list[Any]) -> None:
        self._used = asyncio.get_running_loop().time()
        piece = self._ahead.popleft()
        for (_, future), answer in zip(piece.programs, answers, strict=True):
            _settle(future, answer)
        self._go_on()

    def _taken(self, piece: _Piece, error: Exception) -> None:
        for _, future in piece.programs:
            _settle(future, error)

    def _worked_off(self, work: asyncio.Task[None]) -> None:
        self._work = None
        if not work.cancelled() and (self._ahead or self._waiting):
            self._go_on()


def _is_refusal(error: Exception) -> bool:
    import redis

    return isinstance(error, redis.ResponseError)


def _settle(future: asyncio.Future[Any], answer: object) -> None:
    if future.done():  # who waited was cancelled
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)


# ----------------------------------------------------------------------------------------------------------------------
# The way to a Redis server for a loop that must not be held up: several programs are on their way at once.


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

        from scrapy_neardup.server.nodes import lacks_replicas

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
        with translate_errors(self._location):
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
            with translate_errors(self._location):
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
        with translate_errors(self._location):
            return entries_of(await self._client.xread({self.prefix + STREAM: place}, count=FEW))

    async def fields(self, name: bytes) -> dict[bytes, bytes]:
        """All of a hash that is no part of the state."""
        with translate_errors(self._location):
            return dict(await self._client.hgetall(self.prefix + name))  # type: ignore[arg-type]

    async def close(self) -> None:
        """Let go of all connections."""
        await self._wire.close()
        await self._client.aclose()
        await self._pool.aclose()


def _connection_class(way: Access) -> Any:
    from redis.asyncio import UnixDomainSocketConnection, connection

    if way.locator is not None:
        from scrapy_neardup.server.connection import AsyncLocatedConnection, AsyncLocatedSSLConnection

        return AsyncLocatedSSLConnection if way.is_tls else AsyncLocatedConnection
    if "path" in way.arguments:
        return UnixDomainSocketConnection
    return connection.SSLConnection if way.is_tls else connection.Connection
