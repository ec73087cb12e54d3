"""Several processes that read pages, each waited for by a thread of its own.

The threads parse nothing, for two in lxml bring the process down. They are daemons, so that a crawl that is made to
stop at once does not wait for pages that are still in the queue.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread
from time import perf_counter

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.page.apart import Answer, Apart, MayTakeLong, NoReader, Terms
from scrapy_neardup.page.deadlines import Deadlines
from scrapy_neardup.page.raw import Raw

#: Is told what comes of a page, and the seconds that it took, in the thread that waited for it.
Answered = Callable[[Answer, float], None]


class Pool:
    """Reads pages in so many processes at most; the next one is started when all others are at work.

    ``waiting``: bytes and characters of pages that were asked for and not answered.
    """

    def __init__(self, terms: Terms, workers: int, name: str = "neardup-worker") -> None:
        self.waiting = 0
        self._terms = terms
        self._workers = workers
        self._name = name
        self._deadlines = Deadlines()
        self._lines: list[Apart] = []
        self._asked: SimpleQueue[tuple[Raw, Callable[[], None], Answered] | None] = SimpleQueue()
        self._counts = Lock()
        self._open = 0
        self._closed = False

    def ask(self, raw: Raw, answered: Answered, begun: Callable[[], None] = lambda: None) -> None:
        """Have a page read; both are called in a thread, ``begun`` when a process turns to it."""
        if self._closed:
            answered(ExtractionError("too_slow", "the crawl is over"), 0.0)
            return
        if len(self._lines) < min(self._workers, self._open + 1) and (why := self._one_more()) and not self._lines:
            answered(NoReader("too_slow", why), 0.0)
            return
        with self._counts:
            self._open += 1
            self.waiting += len(raw.content)
        self._asked.put((raw, begun, answered))

    @property
    def replaced(self) -> int:
        """How many processes ended before their time, and others took their places."""
        return sum(apart.replaced for apart in self._lines)

    @property
    def why(self) -> str:
        """Why one of them did; empty if none did."""
        return next((apart.why for apart in self._lines if apart.why), "")

    @property
    def process_ids(self) -> list[int]:
        """Those of the processes that are there."""
        return [apart.process_id for apart in self._lines if apart.process_id]

    def close(self) -> None:
        """End the processes, also in the midst of pages; whoever waits is told that they were too slow."""
        self._closed = True
        for _ in self._lines:
            self._asked.put(None)
        for apart in self._lines:
            apart.close()

    def _one_more(self) -> str:
        """Have one more read; says why not, if the system has no more threads."""
        apart = Apart(self._terms, self._deadlines)
        try:
            Thread(target=self._work, args=[apart], name=self._name, daemon=True).start()
        except RuntimeError as error:
            return f"the thread that is to wait for a process cannot be started: {error}"
        self._lines.append(apart)
        return ""

    def _work(self, apart: Apart) -> None:
        while (asked := self._asked.get()) is not None:
            raw, begun, answered = asked
            started = perf_counter()

            def begin(begun: Callable[[], None] = begun) -> None:
                nonlocal started
                started = perf_counter()
                begun()

            answer: Answer
            try:
                answer = apart.read(raw, begin)
            except (ExtractionError, MayTakeLong) as error:
                answer = error
            except Exception as error:  # nobody is to wait for ever for what no one foresaw
                answer = ExtractionError("method_failed", f"{type(error).__name__}: {error}")
            with self._counts:
                self._open -= 1
                self.waiting -= len(raw.content)
            answered(answer, perf_counter() - started)
            del raw, begun, answered, answer, asked, begin
