"""Several processes that do one kind of work, each waited for by a thread of its own.

The threads parse nothing, for two in lxml bring the process down. They are daemons, so that a crawl that is made to
stop at once does not wait for what is still in the queue.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from queue import SimpleQueue
from threading import Lock, Thread
from time import perf_counter
from typing import Generic, Protocol, TypeVar

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.model import Page
from scrapy_neardup.page.apart import MayTakeLong, NoReader
from scrapy_neardup.page.child import Child
from scrapy_neardup.page.deadlines import Deadlines
from scrapy_neardup.page.response import PageContent

#: The parameter of mallopt in malloc.h.
_ARENA_MAX = -8
J = TypeVar("J")
A = TypeVar("A")
_J = TypeVar("_J", contravariant=True)
_A = TypeVar("_A", covariant=True)


class Reader(Protocol[_J, _A]):
    """One process, of which an answer is waited for."""

    child: Child

    def answer(self, job: _J, begun: Callable[[], None]) -> _A | ExtractionError:
        """What comes of a job; ``begun`` is called when there is a process that turns to it."""


class Trade(Protocol[_J, _A]):
    """On which terms a process works."""

    def reader(self, deadlines: Deadlines) -> Reader[_J, _A]:
        """One more process, to be started when it is asked."""


@cache
def _share_arenas() -> None:
    """Have all threads allocate memory in two arenas of glibc, which else gives each thread arenas of its own.

    A page is allocated in one thread and freed in another, so these grow: by 70 MB over 5,000 pages of 130 kB.
    """
    if sys.platform == "linux" and "MALLOC_ARENA_MAX" not in os.environ:
        with suppress(OSError, AttributeError):  # another library of C
            ctypes.CDLL(None).mallopt(_ARENA_MAX, 2)


class Pool(Generic[J, A]):
    """Has work done in so many processes at most; the next one is started when all others are at work."""

    def __init__(self, terms: Trade[J, A], workers: int, name: str = "neardup-worker") -> None:
        self.workers = workers
        self._terms = terms
        self._name = name
        self._deadlines = Deadlines()
        self._lines: list[Reader[J, A]] = []
        self._asked: SimpleQueue[tuple[J, Callable[[], None], Answered[A]] | None] = SimpleQueue()
        self._counts = Lock()
        self._open = 0
        self._closed = False

    def ask(self, job: J, answered: Answered[A], begun: Callable[[], None] = lambda: None) -> None:
        """Have work done; both are called in a thread, ``begun`` when a process turns to it."""
        if self._closed:
            answered(ExtractionError("too_slow", "the crawl is over"), 0.0)
            return
        if len(self._lines) < min(self.workers, self._open + 1) and (why := self._one_more()) and not self._lines:
            answered(NoReader("too_slow", why), 0.0)
            return
        with self._counts:
            self._open += 1
        self._asked.put((job, begun, answered))

    @property
    def replaced(self) -> int:
        """How many processes ended before their time, and others took their places."""
        return sum(line.child.replaced for line in self._lines)

    @property
    def why(self) -> str:
        """Why one of them did; empty if none did."""
        return next((line.child.why for line in self._lines if line.child.why), "")

    def close(self) -> None:
        """End the processes, also in the midst of work; whoever waits is told that it was too slow."""
        self._closed = True
        for _ in self._lines:
            self._asked.put(None)
        for line in self._lines:
            line.child.close()

    def _one_more(self) -> str:
        """Have one more work; says why not, if the system has no more threads."""
        _share_arenas()
        line = self._terms.reader(self._deadlines)
        try:
            Thread(target=self._work, args=[line], name=self._name, daemon=True).start()
        except RuntimeError as error:
            return f"the thread that waits for a worker cannot be started: {error}"
        self._lines.append(line)
        return ""

    def _work(self, line: Reader[J, A]) -> None:
        while (asked := self._asked.get()) is not None:
            job, begun, answered = asked
            started = perf_counter()

            def begin(begun: Callable[[], None] = begun) -> None:
                nonlocal started
                started = perf_counter()
                begun()

            answer: A | ExtractionError
            try:
                answer = line.answer(job, begin)
            except Exception as error:  # nobody is to wait for ever for what no one foresaw
                answer = ExtractionError("method_failed", f"{type(error).__name__}: {error}")
            with self._counts:
                self._open -= 1
            answered(answer, perf_counter() - started)
            del job, begun, answered, answer, asked, begin


#: Is told what comes of a job, and the seconds that it took, in the thread that waited for it.
Answered = Callable[[A | ExtractionError, float], None]
#: Reads pages.
Pages = Pool[PageContent, Page | MayTakeLong]
