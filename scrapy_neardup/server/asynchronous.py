"""The connection of a crawl to the server: it does not hold up the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Iterable
from contextlib import suppress
from typing import Any

import redis
from hiredis import pack_command  # faster than the method of the connection

from scrapy_neardup.server.connection import SECONDS, Answer, Link
from scrapy_neardup.server.program import Program

#: Seconds between two looks: does the server answer, and has the state moved to another node?
_LOOK = 1.0


class AsyncLink:
    """Sends programs by its own connection, without waiting for the answers to earlier ones.

    If the connection breaks, it sends those without an answer again. If the server asks for a program once more, that
    goes behind later ones. If it has no memory for a program, that is sent again after a pause, and holds up no other.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        #: Programs to send.
        self._unsent: deque[tuple[Program, asyncio.Future[Answer]]] = deque()
        #: Programs that were sent, and have no answer yet.
        self._sent: deque[tuple[Program, asyncio.Future[Answer]]] = deque()
        #: Programs that the server had no memory for.
        self._refused: list[tuple[Program, asyncio.Future[Answer]]] = []
        self._has_unsent = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None
        #: Connections in a row that failed before an answer.
        self._failures = 0
        self._is_closed = False

    async def close(self) -> None:
        """Stop sending, and close the connection. Programs without an answer raise StoreError."""
        self._is_closed = True
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        self._fail(self._link.closed_error())

    def run(self, program: Program) -> Awaitable[Answer]:
        """Like ``Link.run``, but return a future at once."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        if self._is_closed:
            answer.set_exception(self._link.closed_error())
            return answer
        self._unsent.append((program, answer))
        self._has_unsent.set()
        if self._worker is None:
            self._worker = asyncio.ensure_future(self._work())
        return answer

    async def _work(self) -> None:
        while True:
            await self._has_unsent.wait()
            try:
                await self._exchange_or_pause()
            except Exception as error:  # the last try, or an error that nobody foresaw: nobody must wait for ever
                self._fail(error)

    async def _exchange_or_pause(self) -> None:
        """Send and receive until the connection fails, then pause. Raises StoreError after the last try."""
        try:
            await self._exchange()
        except (redis.RedisError, OSError) as error:
            self._unsent.extendleft(reversed([*self._refused, *self._sent]))
            self._refused.clear()
            self._sent.clear()
            if not self._unsent:
                self._link.breaks += 1  # no program is lost, but the next connection may lead to another server
                return
            self._has_unsent.set()
            waits = self._link.patient_thread is not None
            # In a thread, because it takes the lock that ``locate`` holds while it asks for the node.
            pause = await asyncio.to_thread(self._link.pause_after, error, self._failures, waits=waits)
            self._failures += 1
            await asyncio.sleep(pause)

    def _fail(self, error: Exception) -> None:
        """Raise an error for each program without an answer."""
        for _, answer in (*self._refused, *self._sent, *self._unsent):
            if not answer.done():
                answer.set_exception(error)
        self._refused.clear()
        self._sent.clear()
        self._unsent.clear()
        self._has_unsent.clear()
        self._failures = 0

    async def _exchange(self) -> None:
        """Connect, and send and receive until that fails. Raises errors of redis-py, StoreError."""
        address = await self._locate()
        connection = self._link.make_connection()
        tasks: Iterable[asyncio.Task[None]] = ()
        try:
            await _connect(connection)
            tasks = [asyncio.ensure_future(work(connection)) for work in (self._send, self._receive)]
            oldest: object = None
            looks = 0
            while True:
                done, _ = await asyncio.wait(tasks, timeout=_LOOK, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
                before, oldest = oldest, self._sent[0] if self._sent else None
                looks = looks + 1 if oldest is not None and oldest is before else 0
                if looks * _LOOK >= SECONDS:
                    raise redis.TimeoutError("it is silent")
                if await self._locate() != address:
                    raise redis.ConnectionError("another node holds the state now")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with suppress(redis.TimeoutError):  # at the end it waits a little for a server with TLS to say goodbye
                await connection.disconnect(nowait=not self._is_closed)

    async def _locate(self) -> Any:
        return None if self._link.locator is None else await asyncio.to_thread(self._link.locate)

    async def _send(self, connection: Any) -> None:
        """Send the programs that wait. All programs of one step of the loop go together."""
        while True:
            await self._has_unsent.wait()
            self._has_unsent.clear()
            some = [*self._unsent]
            self._unsent.clear()
            self._sent += some
            commands = [pack_command(program.command(self._link.prefix)) for program, _ in some]
            await connection.send_packed_command(commands, check_health=False)

    async def _receive(self, connection: Any) -> None:
        refusal: Exception | None = None
        while True:
            found: Answer | Exception
            try:
                found = await connection.read_response(disable_decoding=True, disconnect_on_error=False)
            except redis.ResponseError as error:
                found = error
            program, future = self._sent[0]
            try:
                answer = self._link.read_answer(program, found)
            except redis.exceptions.OutOfMemoryError as error:  # others may need none
                self._sent.popleft()
                if not future.done():  # else its page may have been removed
                    self._refused.append((program, future))
                    refusal = error
            else:
                self._sent.popleft()
                self._take(program, future, answer)
            if self._refused and not self._sent:
                assert refusal is not None
                raise refusal

    def _take(self, program: Program, future: asyncio.Future[Answer], answer: Answer | Exception | None) -> None:
        if not self._refused:  # else the server is not well, although it answers some
            self._failures = 0
            self._link.note_outage("")
        if future.done():  # its caller was cancelled
            return
        if answer is None:  # it must be sent again
            self._unsent.append((program, future))
            self._has_unsent.set()
        elif isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)


async def _connect(connection: Any) -> None:
    try:
        await asyncio.wait_for(connection.connect(), SECONDS)
    except asyncio.TimeoutError:
        raise redis.TimeoutError("it is silent") from None
