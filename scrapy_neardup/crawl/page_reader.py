"""Read the pages of a crawl: ordinary ones in workers or here, and those that may take long in a process apart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from time import monotonic, perf_counter
from typing import TypeVar

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.errors import NoWorker
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import Answer, PageContent
from scrapy_neardup.page.source import PageSource, UnreadPage
from scrapy_neardup.settings import AUTO, Config
from scrapy_neardup.workers.pool import Reading, WorkerPool

T = TypeVar("T")

#: Seconds of reading after which later pages overtake a page. For a worker to begin they wait six times as long.
PATIENCE = 0.5
#: Seconds of reading before page workers start by default: each takes a second to start, and some 150 MB.
_START_AFTER = 3.0


class AsyncPageReader:
    """Reads a page in three steps: begin, read quickly, read slowly. The caller keeps the order of pages."""

    def __init__(
        self,
        source: PageSource,
        notes: Notes,
        *,
        risky_pool: WorkerPool | None,
        page_pool: WorkerPool | None = None,
        start_after: float = 0.0,
    ) -> None:
        """``risky_pool`` reads pages that may take long, ``page_pool`` all others; without them they are read here.

        A reader answers None if a page may take long.

        ``start_after``: seconds of reading before ``page_pool`` is used.
        """
        self._source = source
        self._notes = notes
        self._risky_pool = risky_pool
        self._page_pool = page_pool
        self._pools = [pool for pool in (page_pool, risky_pool) if pool is not None]
        self._start_after = start_after
        self._spent_here = 0.0

    @property
    def spent(self) -> float:
        """Seconds of reading, in all processes together."""
        return self._spent_here + sum(pool.spent for pool in self._pools)

    def begin(self, draft: UnreadPage) -> Reading | None:
        """Let a worker begin with a page. None without a worker, or before workers pay: the page will be read here."""
        if self._page_pool is None or self.spent < self._start_after:
            return None
        return self._page_pool.submit(draft.content)

    async def read_quickly(self, draft: UnreadPage, reading: Reading | None) -> Page | UnreadPage:
        """The page of a draft; the draft itself if reading takes long. Raises ExtractionError."""
        if reading is not None:
            answered, last = asyncio.wrap_future(reading), monotonic() + 6 * PATIENCE
            while not reading.done():
                begun = reading.begun
                seconds = (last if begun is None else min(last, begun + PATIENCE)) - monotonic()
                if seconds <= 0:
                    return draft
                await asyncio.wait([answered], timeout=min(seconds, PATIENCE))
        answer = self._take(draft.content, reading)
        return draft if answer is None else self._source.finish(draft, answer)

    async def read_slowly(self, draft: UnreadPage, reading: Reading | None) -> Page:
        """The page of a draft that takes long. Raises ExtractionError."""
        answer: Answer = None
        if reading is not None and not reading.done():
            await asyncio.wrap_future(reading)
            answer = self._take(draft.content, reading)
        if answer is None and self._risky_pool is not None:
            self._notes.count(stats.APART)
            answer = await asyncio.wrap_future(self._risky_pool.submit(draft.content))
        elif answer is None:
            answer = self.time(partial(self._source.read_content, draft.content))
        return self._source.finish(draft, answer)

    def time(self, work: Callable[[], T]) -> T:
        """Do a part of reading here, and add its seconds to those spent."""
        started = perf_counter()
        try:
            return work()
        finally:
            self._spent_here += perf_counter() - started

    def close(self) -> None:
        """End the workers; pages that they have not read fail as too slow."""
        for pool in self._pools:
            pool.close()

    def _take(self, content: PageContent, reading: Reading | None) -> Answer:
        """The answer of a worker that is done, or of this process; None if that may take long."""
        pool = self._page_pool
        if pool is not None and pool.replaced:
            self._notes.stats.set_value(stats.REPLACED, pool.replaced)
            what = "A worker that reads pages %s. Another one replaces it."
            self._notes.warn_once("replaced", what, pool.why_replaced)
        if reading is not None:
            answer = reading.result()
            if not isinstance(answer, NoWorker):
                return answer
            self._page_pool = None
            self._notes.warn_once(
                "workers",
                "NEARDUP_WORKERS is off from here on, because %s. If other processes cannot import "
                "NEARDUP_EXTRACTOR, move it to a module that they can import.",
                str(answer).rstrip("."),
            )
        return self.time(partial(self._source.read_quickly, content))


def make_page_reader(source: PageSource, config: Config, notes: Notes) -> AsyncPageReader:
    """The reader for a crawl with these settings; the caller closes it."""
    if config.many_workers and not config.reading.can_be_sent:
        notes.warn_once(
            "workers",
            "NEARDUP_WORKERS is off, because NEARDUP_EXTRACTOR is a function of the started script, which workers "
            "cannot import. Move it to a module of its own.",
        )
    return AsyncPageReader(
        source,
        notes,
        risky_pool=config.make_risky_pool(),
        page_pool=config.make_page_pool(),
        start_after=_START_AFTER if config.workers == AUTO else 0.0,
    )
