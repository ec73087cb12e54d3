"""The connection of a crawl to the server: it does not hold up the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Any, TypeVar

from scrapy_neardup.server.connection import Answer, Link, NoAnswer
from scrapy_neardup.server.program import Program

T = TypeVar("T")
#: Programs in one pipeline, and pipelines under way, at most. While they are under way, further programs collect: the
#: busier the server, the longer the pipelines.
_TOGETHER, _AT_ONCE = 16, 2


class AsyncLink:
    """Sends programs by the connection of a state, in threads of its own while the loop goes on."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._threads = ThreadPoolExecutor(_AT_ONCE, "neardup-server")
        self._waiting: list[tuple[Program, asyncio.Future[Answer]]] = []
        self._senders: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Stop sending. The connection stays open."""
        for sender in self._senders:
            sender.cancel()
        await asyncio.gather(*self._senders, return_exceptions=True)
        self._threads.shutdown(wait=False)

    async def run(self, program: Program) -> Answer:
        """Like ``Link.run``. Programs that come at one time go together. Raises StoreError."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((program, answer))
        if len(self._waiting) == 1:
            self._start_sender()
        return await answer

    def _start_sender(self) -> None:
        if len(self._senders) < _AT_ONCE:
            self._senders.add(asyncio.ensure_future(self._send_waiting()))

    async def _send_waiting(self) -> None:
        while self._waiting:
            some, self._waiting = self._waiting[:_TOGETHER], self._waiting[_TOGETHER:]
            if self._waiting:
                self._start_sender()
            answers = await self._send([program for program, _ in some])
            for number, (_, future) in enumerate(some):
                if future.done():  # its caller was cancelled
                    continue
                answer = answers[number]
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)
        self._senders.discard(asyncio.current_task())  # at once: no program may slip through

    async def _send(self, programs: list[Program]) -> dict[int, Answer | Exception]:
        """Return an answer or an error for each."""
        answers = dict[int, Answer | Exception]()
        try:
            await self.call(partial(self._link.send, programs, answers))
        except Exception as error:
            return {number: answers.get(number, error) for number in range(len(programs))}
        return answers

    async def call(self, work: Callable[[Any], T]) -> T:
        """Like ``Link.call``."""
        loop = asyncio.get_running_loop()
        for failures in count():
            try:
                return await loop.run_in_executor(self._threads, self._link.attempt, work)
            except NoAnswer as error:  # noqa: PERF203  # each attempt takes a way to the server
                waits = self._link.waiting_thread is not None
                await asyncio.sleep(self._link.pause_after(error, failures, waits=waits))
        raise AssertionError
