"""The asynchronous connection of a crawl to the server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from scrapy_neardup.errors import StoreError
from scrapy_neardup.server.connection import describe_error, is_no_answer, read_access, refusal_in, translate_errors
from scrapy_neardup.server.counting import FEW
from scrapy_neardup.server.layout import STREAM
from scrapy_neardup.server.nodes import Address, Relocated, is_elsewhere, lacks_replicas
from scrapy_neardup.server.notes import Entries, entries_of
from scrapy_neardup.server.program import SCRIPT, Program, script_digest

T = TypeVar("T")
#: Programs in one pipeline, and pipelines under way, at most. While they are under way, further programs collect: the
#: busier the server, the longer the pipelines.
_TOGETHER, _AT_ONCE = 16, 2
#: Seconds before each further try, and between tries while a crawl waits for its server.
PAUSES, _LATER = (0.05, 0.2, 0.5), 1.0


class Patience(Protocol):
    """Called once when the server stops answering, and once when it answers again."""

    def gone(self, why: str) -> None:
        """The server does not answer; ``why`` is the kind of the error."""

    def back(self) -> None:
        """The server answers again."""


class NoAnswer(Exception):
    """Nobody knows whether a program ran."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Pipelines:
    """Sends programs that come at one time together. ``execute`` returns an answer or an error for each."""

    def __init__(self, execute: Callable[[list[Program]], Awaitable[list[Any]]]) -> None:
        self._execute = execute
        self._waiting: list[tuple[Program, asyncio.Future[Any]]] = []
        self._senders: set[asyncio.Task[None]] = set()

    def send(self, program: Program) -> asyncio.Future[Any]:
        """Return the future answer of a program, or the error of redis-py."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((program, answer))
        if len(self._waiting) == 1:
            self._start_sender()
        return answer

    async def close(self) -> None:
        """Stop sending."""
        for sender in self._senders:
            sender.cancel()
        await asyncio.gather(*self._senders, return_exceptions=True)

    def _start_sender(self) -> None:
        if len(self._senders) < _AT_ONCE:
            self._senders.add(asyncio.ensure_future(self._send_waiting()))

    async def _send_waiting(self) -> None:
        while self._waiting:
            some, self._waiting = self._waiting[:_TOGETHER], self._waiting[_TOGETHER:]
            if self._waiting:
                self._start_sender()
            answers: Sequence[Any]
            try:
                answers = await self._execute([program for program, _ in some])
            except Exception as error:
                answers = [error] * len(some)
            for (_, future), answer in zip(some, answers, strict=True):
                if future.done():  # its caller was cancelled
                    continue
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)
        self._senders.discard(asyncio.current_task())  # at once: no program may slip through


class AsyncLink:
    """Connections of the running loop to the state at a location."""

    #: The levels of the state in use, as far as this process knows.
    levels = 1

    def __init__(self, location: str, patience: Patience | None = None) -> None:
        """With ``patience`` the link waits for the server as long as it takes; else it tries three more times."""
        self._location = location
        self._patience = patience
        self._is_gone = False
        self._access = read_access(location)
        self.prefix = self._access.prefix
        self._locator = self._access.locator
        self._unanswered = 0
        self._must_locate = True
        self._address: Address | None = None
        self._client: Any = None if self._locator else self._make_client(None)
        self._pipelines = Pipelines(self._execute)

    @property
    def breaks(self) -> int:
        """Grows whenever another server may have answered, or one that has lost confirmed writes."""
        return self._unanswered + (self._locator.moves if self._locator is not None else 0)

    def program(self) -> Program:
        """Return an empty program for this state."""
        return Program(self.levels)

    async def run(self, program: Program) -> list[Any]:
        """Like ``Link.run``. Sends the program again if no answer comes. Raises StoreError."""
        try:
            return await self.run_once(program)
        except NoAnswer as error:
            return await self._repeat(lambda: self.run_once(program), error)

    async def run_once(self, program: Program) -> list[Any]:
        """Run a program whose time matters; raises NoAnswer if none comes."""
        try:
            answer = await self._send(program)
        except Exception as error:
            if not self._may_repeat(error):
                with translate_errors(self._location):
                    raise
            self._unanswered += 1
            raise NoAnswer(error) from None
        self._report_back()
        return answer

    async def _send(self, program: Program) -> list[Any]:
        found: list[Any] = await self._pipelines.send(program)
        while found[0] == 2:
            self.levels = program.levels = found[1]
            found = await self._pipelines.send(program)
        return found

    def _may_repeat(self, error: Exception) -> bool:
        if is_no_answer(error):
            return True
        if self._patience is None or refusal_in(error):
            return False
        # Somebody may give the server memory or replicas, or make it the master.
        return isinstance(error, (exceptions.OutOfMemoryError, exceptions.ReadOnlyError)) or lacks_replicas(error)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Return the result of blocking work on the state, done in a thread and repeated like a program."""
        return await self._repeat(lambda: self._in_thread_once(work))

    async def _in_thread_once(self, work: Callable[[], T]) -> T:
        try:
            found = await asyncio.to_thread(work)
        except StoreError as error:
            cause = error.__cause__
            if not isinstance(cause, Exception) or not self._may_repeat(cause):
                raise
            raise NoAnswer(cause) from None
        self._report_back()
        return found

    async def _repeat(self, attempt: Callable[[], Awaitable[T]], failed: NoAnswer | None = None) -> T:
        """Try until an answer comes. ``failed``: the result of a first attempt."""
        failures = 0
        while True:
            if failed is not None:
                await self.wait(failed, failures)
                failures += 1
            try:
                return await attempt()
            except NoAnswer as error:
                failed = error

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
            self._patience.gone(type(error.cause).__name__)
        await asyncio.sleep(_LATER)

    def _report_back(self) -> None:
        if self._is_gone and self._patience is not None:
            self._is_gone = False
            self._patience.back()

    async def _execute(self, programs: list[Program]) -> list[Any]:
        """Run programs in one pipeline; return an answer or an error for each."""
        parts = [program.parts(self.prefix) for program in programs]
        try:
            client = await self._current_client()
            answers = await _evaluate(client, "EVALSHA", script_digest(), parts)
            missing = [n for n, answer in enumerate(answers) if isinstance(answer, exceptions.NoScriptError)]
            if missing:  # the first programs, also after a restart
                again = await _evaluate(client, "EVAL", SCRIPT, [parts[n] for n in missing])
                for n, answer in zip(missing, again, strict=True):
                    answers[n] = answer
        except Exception as error:
            if self._locator is not None and is_no_answer(error):
                self._doubt_node()
            raise
        return [self._as_relocated(answer) for answer in answers]

    def _as_relocated(self, answer: Any) -> Any:
        if self._locator is None or not isinstance(answer, Exception) or not is_elsewhere(answer):
            return answer
        self._doubt_node()
        return Relocated(describe_error(answer))

    def _doubt_node(self) -> None:
        assert self._locator is not None
        self._locator.doubt()
        self._must_locate = True

    async def _current_client(self) -> Any:
        """Return a client for the node that holds the state now. What a former node still answers is not used."""
        locator = self._locator
        if locator is not None:
            if self._must_locate:
                await asyncio.to_thread(locator.locate)
                self._must_locate = False
            if self._address != locator.address:
                former, self._address = self._client, locator.address
                self._client = self._make_client(self._address)
                if former is not None:
                    await former.aclose()
        return self._client

    def _make_client(self, address: Address | None) -> Any:
        return self._access.client(Redis, Retry(NoBackoff(), 0), address)

    async def read_stream(self, place: bytes) -> Entries:
        """Return the next entries of the stream of counts, up to ``FEW``."""
        if self._locator is not None:
            await asyncio.to_thread(self._locator.refresh)
        return entries_of(await self._read(lambda client: client.xread({self.prefix + STREAM: place}, count=FEW)))

    async def fields(self, name: bytes) -> dict[bytes, bytes]:
        """Return all fields of a hash that is not part of the state."""
        return dict(await self._read(lambda client: client.hgetall(self.prefix + name)))

    async def _read(self, read: Callable[[Any], Awaitable[Any]]) -> Any:
        with translate_errors(self._location):
            try:
                return await read(await self._current_client())
            except Exception as error:
                if self._locator is not None and (is_elsewhere(error) or is_no_answer(error)):
                    self._doubt_node()
                raise

    async def close(self) -> None:
        """Close all connections."""
        await self._pipelines.close()
        if self._client is not None:
            await self._client.aclose()


async def _evaluate(
    client: Any, command: str, script: str, parts: list[tuple[list[bytes], list[bytes | int]]]
) -> list[Any]:
    pipeline = client.pipeline(transaction=False)
    for keys, arguments in parts:
        pipeline.execute_command(command, script, len(keys), *keys, *arguments)
    return list(await pipeline.execute(raise_on_error=False))
