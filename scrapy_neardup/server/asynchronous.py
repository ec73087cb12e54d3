"""The connection of a crawl to the server: it does not hold up the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

import redis
from hiredis import pack_command  # faster than the method of the connection

from scrapy_neardup.server.connection import Address, Answer, Link
from scrapy_neardup.server.program import Program


class AsyncLink:
    """Sends programs by its own connection: all that wait, then those that came until they were answered.

    If the connection breaks, or the server refuses some of them for now, it sends these again after a pause.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        #: Programs without an answer.
        self._waiting: list[tuple[Program, asyncio.Future[Answer]]] = []
        self._has_waiting = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None
        #: The connection of redis-py, and the node that it leads to.
        self._connection: Any = None
        self._address: Address | None = None
        #: Tries in a row that failed.
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
        self._waiting.append((program, answer))
        self._has_waiting.set()
        if self._worker is None:
            self._worker = asyncio.ensure_future(self._work())
        return answer

    async def _work(self) -> None:
        try:
            while True:
                await self._has_waiting.wait()
                try:
                    await self._exchange_or_pause()
                except Exception as error:  # the last try, or an error that nobody foresaw: nobody must wait for ever
                    await self._disconnect()  # it may hold answers that nobody has read
                    self._fail(error)
        finally:
            await self._disconnect()

    async def _exchange_or_pause(self) -> None:
        """Send all that wait, and receive the answers. Pause if some get none. Raises StoreError after the last try."""
        sent = [one for one in self._waiting if not one[1].done()]  # others were cancelled
        failure: Exception | None = None
        found: list[Answer | Exception] = []
        try:
            found = await self._exchange([program for program, _ in sent])
        except (redis.RedisError, OSError) as error:
            await self._disconnect()
            failure = error
        for (program, future), one in zip(sent, found, strict=False):
            try:
                answer = self._link.read_answer(program, one)
            except redis.RedisError as error:  # noqa: PERF203  # each answer took a way to the server
                failure = error
            else:
                if answer is None or future.done():  # it must be sent again, or its caller was cancelled
                    continue
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)
        self._waiting = [one for one in self._waiting if not one[1].done()]
        if not self._waiting:
            self._has_waiting.clear()
        if failure is None:
            self._failures = 0
            self._link.note_outage("")
            return
        waits = self._link.patient_thread is not None
        # In a thread, because it takes the lock that ``locate`` holds while it asks for the node.
        pause = await asyncio.to_thread(self._link.pause_after, failure, self._failures, waits=waits)
        self._failures += 1
        await asyncio.sleep(pause)

    def _fail(self, error: Exception) -> None:
        """Raise an error for each program without an answer."""
        for _, answer in self._waiting:
            if not answer.done():
                answer.set_exception(error)
        self._waiting.clear()
        self._has_waiting.clear()
        self._failures = 0

    async def _exchange(self, programs: list[Program]) -> list[Answer | Exception]:
        """Send programs, and return the answers. Raises errors of redis-py, StoreError."""
        address = None if self._link.locator is None else await asyncio.to_thread(self._link.locate)
        if self._connection is None or address != self._address:
            await self._disconnect()
            self._address, self._connection = address, self._link.make_connection()
            await self._connection.connect()
        commands = [pack_command(program.command(self._link.prefix)) for program in programs]
        await self._connection.send_packed_command(commands, check_health=False)
        return [await self._receive() for _ in programs]

    async def _receive(self) -> Answer | Exception:
        try:
            found: Answer = await self._connection.read_response(disable_decoding=True, disconnect_on_error=False)
        except redis.ResponseError as error:
            return error
        return found

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(redis.TimeoutError):  # at the end it waits a little for a server with TLS to say goodbye
                await connection.disconnect(nowait=not self._is_closed)
