"""One connection of a loop, on which pieces of several programs go one after the other, and their answers come back.

It is one of redis-py, which knows how to reach a server and to say who asks. What goes there is written at once, not by
a task of its own for each piece, as that costs more than the piece: so the server is at work on some pages while the
others are still judged. While pieces are on their way what comes next is collected: the busier the server, the larger
the pieces.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from inspect import signature
from typing import Any, NamedTuple

from scrapy_neardup.stores.redis_packing import Packing
from scrapy_neardup.stores.redis_program import Program
from scrapy_neardup.stores.redis_script import SCRIPT, script_digest

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
