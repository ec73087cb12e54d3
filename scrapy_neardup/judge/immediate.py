"""Pages that count as soon as they are judged: records of files, and calls from Python."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent import futures
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy_neardup.errors import StoreError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Blocked
from scrapy_neardup.model import Page, Verdict

if TYPE_CHECKING:
    from scrapy_neardup.judge.remote import RemoteCrawl

T = TypeVar("T")
#: Seconds between two requests for the counts of other crawls.
_PAUSE = 1.0


class ImmediateJudge:
    """Judges pages on a state that belongs to this process. Every method may raise StoreError."""

    def __init__(self, detector: Detector) -> None:
        self.detector = detector

    def judge(self, page: Page, *, sealed: bool) -> Verdict:
        """Judge a page, which counts from then on, permanently if ``sealed``."""
        return self.detector.judge_now(page, sealed=sealed)

    def close(self) -> None:
        """Release all but the state."""


class ServerImmediateJudge(ImmediateJudge):
    """Judges pages on a state that other crawlers share.

    The pages take the way of a crawl's pages, so two copies that come at once see each other. That way is asynchronous,
    and callers here are not, so it runs on an event loop in a thread of its own. A caller waits for that thread.
    """

    def __init__(self, detector: Detector, wait: float) -> None:
        """``wait``: seconds that a page waits for each near-duplicate of another crawler."""
        super().__init__(detector)
        self._wait = wait
        self._caught_up = 0.0
        self._errors: list[StoreError] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="neardup-judging", daemon=True)
        self._thread.start()
        try:
            self._crawl = self._run(self._open_crawl())
        except BaseException:
            self._stop()
            raise

    def judge(self, page: Page, *, sealed: bool) -> Verdict:
        """As above; the page is unjudged (``in_flight``) if another crawler takes too long."""
        return self._run(self._judge(page, sealed=sealed))

    def close(self) -> None:
        if not self._loop.is_closed():
            try:
                self._run(self._crawl.link.close())
            finally:
                self._stop()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            futures.wait([future])  # an interrupted caller must not use the state while the thread does

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _open_crawl(self) -> RemoteCrawl:
        from scrapy_neardup.judge.remote import RemoteCrawl  # only a state on a server needs redis-py

        return RemoteCrawl(self.detector, self._errors.append)

    async def _judge(self, page: Page, *, sealed: bool) -> Verdict:
        if self._loop.time() - self._caught_up >= _PAUSE:
            self._caught_up = self._loop.time()
            await self._crawl.catch_up()
        try:
            async with self._crawl.judgement() as judgement:
                while isinstance(ruling := await judgement.check(page), Blocked):
                    await judgement.wait(ruling.by, self._wait)
            if ruling.reservation is not None:
                self._crawl.commit(ruling.reservation, sealed=sealed)
        finally:
            await self._crawl.finish()
        if self._errors:
            raise self._errors.pop()
        return ruling.verdict


def make_immediate_judge(detector: Detector, wait: float) -> ImmediateJudge:
    """The judge for the state of a detector; close it before the state. ``wait``: as NEARDUP_WAIT."""
    return ServerImmediateJudge(detector, wait) if detector.store.is_shared else ImmediateJudge(detector)
