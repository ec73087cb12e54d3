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
from scrapy_neardup.workers.speculation import PreparedFingerprint

if TYPE_CHECKING:
    from scrapy_neardup.judge.remote_crawl import SharedCrawl


# ----------------------------------------------------------------------------------------------------------------------
# Pages that count as soon as they are judged, one after the other: records of files, and what a script asks for.


class ImmediateJudge:
    """On a state that this process has to itself: what the detector does."""

    def __init__(self, detector: Detector) -> None:
        self.detector = detector

    def may_know(self, url: str, body: int) -> bool:
        """As of the detector."""
        return self.detector.may_know(url, body)

    def judge(self, page: Page, *, sealed: bool) -> Verdict:
        """The verdict on a page, which counts from then on, for good if ``sealed``. Raises StoreError."""
        return self.detector.judge_now(page, sealed=sealed)

    def judge_prepared(self, page: Page, prepared: PreparedFingerprint, *, sealed: bool) -> Verdict:
        """The same of one whose fingerprint was made ahead; of a state that is shared there are none."""
        verdict = self.detector.judge_now(page, sealed=sealed, prepared=prepared)
        # Now, as this page may have been the one that makes a sentence boilerplate.
        self.detector.learn(page, prepared)
        return verdict

    def judge_bytes(self, url: str, site: str, body: int, *, sealed: bool) -> Verdict | None:
        """The same by the bytes of a page alone; None if it has to be read."""
        return self.detector.judge_bytes_now(url, site, body, sealed=sealed)

    def close(self) -> None:
        """No more pages come; the state stays open."""


# ----------------------------------------------------------------------------------------------------------------------
# Pages that count as soon as they are judged, on a state on a server where others judge too, crawls or the like of us.
#
# They go the way of a crawl's pages, so of two copies that come at once the one sees the other, whoever judges them.
# That way is asynchronous, and whoever asks here is not: it runs on a loop in a thread of its own, as a notebook has
# one that runs where it asks. Whoever asks waits for it, so one of the two threads works at a time.


T = TypeVar("T")
#: Seconds between two looks at what others have counted.
_PAUSE = 1.0


class ServerImmediateJudge(ImmediateJudge):
    """``wait``: seconds for which a page waits for each near-duplicate that others judge."""

    def __init__(self, detector: Detector, wait: float) -> None:
        super().__init__(detector)
        self._wait = wait
        self._caught_up = 0.0
        self._errors: list[StoreError] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="neardup-judging", daemon=True)
        self._thread.start()
        try:
            self._crawl = self._done(self._opened())
        except BaseException:
            self._stop()
            raise

    def may_know(self, url: str, body: int) -> bool:
        """On a server every page is read."""
        return False

    def judge(self, page: Page, *, sealed: bool) -> Verdict:
        """As of any state; unjudged, for ``in_flight``, where others take too long. Raises StoreError."""
        return self._done(self._judged(page, sealed=sealed))

    def judge_bytes(self, url: str, site: str, body: int, *, sealed: bool) -> Verdict | None:
        """None: it has to be read."""
        return None

    def close(self) -> None:
        """Let go of the server."""
        if not self._loop.is_closed():
            try:
                self._done(self._crawl.link.close())
            finally:
                self._stop()

    def _done(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            futures.wait([future])  # who is interrupted must not use the state while the other thread does

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _opened(self) -> SharedCrawl:
        # Modules that nobody needs whose state is on a disk.
        from scrapy_neardup.judge.remote_crawl import SharedCrawl
        from scrapy_neardup.server.asynchronous import AsyncLink
        from scrapy_neardup.server.store import RedisStore

        store = self.detector.store
        assert isinstance(store, RedisStore)
        link = AsyncLink(store.location, store.named_by)
        return SharedCrawl(self.detector, store, link, self._errors.append)

    async def _judged(self, page: Page, *, sealed: bool) -> Verdict:
        if self._loop.time() - self._caught_up >= _PAUSE:
            self._caught_up = self._loop.time()
            await self._crawl.catch_up()
        try:
            async with self._crawl.filing(page) as filing:
                while isinstance(ruled := await filing.check(), Blocked):
                    await filing.wait(ruled.by, self._wait)
            if ruled.reservation is not None:
                self._crawl.commit(ruled.reservation, sealed=sealed)
        finally:
            await self._crawl.settled()
        if self._errors:
            raise self._errors.pop()
        return ruled.verdict


def make_immediate_judge(detector: Detector, wait: float) -> ImmediateJudge:
    """What judges on the state of a detector, be it shared or not; to be closed before the state.

    ``wait``: as NEARDUP_WAIT. On a server the detector's pages in flight are to be an ``Earlier``.
    """
    return ServerImmediateJudge(detector, wait) if detector.store.is_shared else ImmediateJudge(detector)
