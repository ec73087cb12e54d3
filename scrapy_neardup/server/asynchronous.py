"""The connection of a crawl to the server: it does not hold up the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from redis import exceptions

from scrapy_neardup.errors import StoreError
from scrapy_neardup.server.connection import Link, is_no_answer, is_refusal, lacks_replicas, translate_errors
from scrapy_neardup.server.program import Program

T = TypeVar("T")
#: Called with the kind of the error once the server stops answering, and with "" once it answers again.
Patience = Callable[[str], None]
#: Programs in one pipeline, and pipelines under way, at most. While they are under way, further programs collect: the
#: busier the server, the longer the pipelines.
_TOGETHER, _AT_ONCE = 16, 2
#: Seconds before each further try, and between tries while a crawl waits for its server.
PAUSES, _LATER = (0.05, 0.2, 0.5), 1.0


class NoAnswer(Exception):
    """Nobody knows whether a program ran."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class AsyncLink:
    """A connection to the state at a location, used in threads of its own while the loop goes on."""

    def __init__(self, location: str, patience: Patience | None = None) -> None:
        """With ``patience`` the link waits for the server as long as it takes; else it tries three more times."""
        self._location = location
        self._patience = patience
        self._is_gone = False
        self._unanswered = 0
        self._link = Link(location, pings=False)
        self._threads = ThreadPoolExecutor(_AT_ONCE, "neardup-server")
        self._waiting: list[tuple[Program, asyncio.Future[Any]]] = []
        self._senders: set[asyncio.Task[None]] = set()

    @property
    def breaks(self) -> int:
        """Grows whenever another server may have answered, or one that has lost confirmed writes."""
        return self._unanswered + self._link.moves

    async def close(self) -> None:
        """Close all connections."""
        for sender in self._senders:
            sender.cancel()
        await asyncio.gather(*self._senders, return_exceptions=True)
        self._link.close()
        self._threads.shutdown(wait=False)

    # Programs.

    def program(self) -> Program:
        """Return an empty program for this state."""
        return self._link.program()

    async def run(self, program: Program) -> list[Any]:
        """Like ``Link.run``. Sends the program again if no answer comes. Raises StoreError."""
        return await self._repeat(lambda: self.run_once(program))

    async def send(self, *operations: Callable[[Program], None]) -> list[Any]:
        """Run a program of some operations."""
        program = self.program()
        for add in operations:
            add(program)
        return await self.run(program)

    async def run_once(self, program: Program) -> list[Any]:
        """Run a program whose time matters; raises NoAnswer if none comes."""
        return await self._once(lambda: self._run(program))

    async def _run(self, program: Program) -> list[Any]:
        while (found := await self._enqueue(program))[0] == 2:
            self._link.levels = program.levels = found[1]
        return found

    def _enqueue(self, program: Program) -> asyncio.Future[list[Any]]:
        """Return the future answer of a program, or the error of redis-py.

        Programs that come at one time go together.
        """
        answer: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self._waiting.append((program, answer))
        if len(self._waiting) == 1:
            self._start_sender()
        return answer

    def _start_sender(self) -> None:
        if len(self._senders) < _AT_ONCE:
            self._senders.add(asyncio.ensure_future(self._send_waiting()))

    async def _send_waiting(self) -> None:
        while self._waiting:
            some, self._waiting = self._waiting[:_TOGETHER], self._waiting[_TOGETHER:]
            if self._waiting:
                self._start_sender()
            for (_, future), answer in zip(some, await self._execute([program for program, _ in some]), strict=True):
                if future.done():  # its caller was cancelled
                    continue
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)
        self._senders.discard(asyncio.current_task())  # at once: no program may slip through

    async def _execute(self, programs: list[Program]) -> list[Any]:
        """Return an answer or an error for each."""
        run = partial(self._link.run_together, programs)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, run)
        except Exception as error:
            return [error] * len(programs)

    # Other requests.

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Return the result of blocking work on the state, done in a thread and repeated like a program."""
        return await self._repeat(lambda: self._once(lambda: asyncio.to_thread(work)))

    # Trying again.

    async def _once(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return the result of an attempt. Raises NoAnswer if nobody knows it, and StoreError."""
        try:
            found = await attempt()
        except Exception as error:
            cause = error.__cause__ if isinstance(error, StoreError) else error
            if isinstance(cause, Exception) and self._may_repeat(cause):
                self._unanswered += 1
                raise NoAnswer(cause) from None
            with translate_errors(self._location):
                raise
        if self._is_gone and self._patience is not None:
            self._is_gone = False
            self._patience("")
        return found

    def _may_repeat(self, error: Exception) -> bool:
        if is_no_answer(error):
            return True
        if self._patience is None or is_refusal(error):
            return False
        # Somebody may give the server memory or replicas, or make it the master.
        return isinstance(error, (exceptions.OutOfMemoryError, exceptions.ReadOnlyError)) or lacks_replicas(error)

    async def _repeat(self, attempt: Callable[[], Awaitable[T]]) -> T:
        failures = 0
        while True:
            try:
                return await attempt()
            except NoAnswer as error:  # noqa: PERF203  # each attempt takes a way to the server
                await self.wait(error, failures)
                failures += 1

    async def wait(self, error: NoAnswer, failures: int) -> None:
        """Wait before the next try. After the last one raise StoreError, or wait for the server with patience."""
        if failures < len(PAUSES):
            await asyncio.sleep(PAUSES[failures])
            return
        if self._patience is None:
            with translate_errors(self._location):
                raise error.cause
        if not self._is_gone:
            self._is_gone = True
            self._patience(type(error.cause).__name__)
        await asyncio.sleep(_LATER)
