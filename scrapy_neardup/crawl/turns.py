"""Wait for an event, for room, for a worker, or for a turn.

Pages are judged in the order in which they came, unless one takes long.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic, perf_counter
from typing import Any, TypeVar

from itemadapter import ItemAdapter
from scrapy.crawler import Crawler
from scrapy.utils.asyncio import call_later, is_asyncio_available
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.errors import NoWorker
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import Answer, PageContent
from scrapy_neardup.page.source import PageSource, UnreadPage
from scrapy_neardup.settings import AUTO, Config
from scrapy_neardup.workers.pool import WorkerPool

T = TypeVar("T")

#: Bytes that are counted for an item at least: about what its task takes.
_LEAST = 10_000
#: Seconds between two looks for room: nothing signals the end of a response. A look takes 0.1 ms.
_PAUSE = 0.01
#: Seconds of reading after which later pages may overtake a page.
PATIENCE = 0.5
#: Seconds: longer than a page takes to read. Tasks that may wait longer ask again.
_FOREVER = 3600.0
#: Seconds of reading before page workers start by default: each takes a second to start, and some 150 MB.
_START_AFTER = 3.0


class Event:
    """Happens once, on any event loop that Scrapy supports; any number of tasks may wait for it."""

    def __init__(self) -> None:
        self._happened = False
        self._waiting: list[Deferred[None]] = []

    def happen(self) -> None:
        """Wake all tasks that wait."""
        self._happened = True
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            _fire(one)

    async def wait(self, seconds: float = _FOREVER) -> bool:
        """Wait at most so long; returns whether it has happened."""
        if self._happened:
            return True
        arrived: Deferred[None] = Deferred()
        self._waiting.append(arrived)
        timer = call_later(seconds, _fire, arrived)
        try:
            await maybe_deferred_to_future(arrived)
        finally:
            timer.cancel()
        return self._happened


def _fire(deferred: Deferred[None]) -> None:
    if not deferred.called:
        deferred.callback(None)


class Backlog:
    """Counts the sizes of items before the judge, in bytes or characters.

    Scrapy counts the bytes of responses until their items are through, and sends no further requests above
    SCRAPER_SLOT_MAX_ACTIVE_SIZE. It does not count the content of items and items of ``start()``, so this adds both to
    Scrapy's count. ``start()`` also waits with requests. Otherwise Scrapy would take all of them into its scheduler. An
    item in another pipeline is not counted, because that pipeline may wait for further items.
    """

    def __init__(self, crawler: Crawler | None = None) -> None:
        self._crawler = crawler

    @property
    def _slot(self) -> Any:
        """Scrapy's scraper slot. None if no engine runs; then nobody sends requests."""
        try:
            return self._crawler.engine.scraper.slot  # type: ignore[union-attr]
        except (AttributeError, RuntimeError):
            return None

    @contextmanager
    def hold(self, item: Any) -> Iterator[None]:
        """Count an item while it is judged."""
        slot, size = self._slot, _size_of(item)
        if slot is None:
            yield
            return
        slot.active_size += size
        try:
            yield
        finally:
            slot.active_size -= size

    async def wait_for_room(self) -> None:
        """Wait while Scrapy's count is above its limit."""
        while (slot := self._slot) is not None and slot.needs_backout():
            await Event().wait(_PAUSE)


def _size_of(item: Any) -> int:
    """The size of an item's content.

    >>> _size_of({"html": "x" * 30_000, "lines": ["y" * 5_000], "n": 1})
    35000
    """
    try:
        values = list(ItemAdapter(item).values()) if ItemAdapter.is_item(item) else []
    except Exception:  # the judge reports it
        return _LEAST
    parts = (part for value in values for part in (value if isinstance(value, (list, tuple)) else [value]))
    return max(_LEAST, sum(len(part) for part in parts if isinstance(part, (str, bytes))))


class Turn:
    """One page's place in the queue of pages that are not judged yet. It must leave, also after an error.

    Later pages may overtake this one after its ``deadline``: infinite unless a worker reads it now. Threads set it.
    """

    def __init__(self, queue: OrderedDict[Turn, None]) -> None:
        self.deadline = math.inf
        self._queue = queue
        self._has_come = Event()
        queue[self] = None

    @property
    def _front(self) -> Turn:
        return next(iter(self._queue))

    def leave(self) -> None:
        """Later pages need not wait for this one any more.

        The next one is woken later: at once, each would be judged inside the one before it.
        """
        if self in self._queue:
            was_front = self._front is self
            del self._queue[self]
            if was_front and self._queue:
                call_later(0, self._front._has_come.happen)

    async def comes(self) -> None:
        """Wait until all earlier pages have left or are overtaken; returns at once if this page has left."""
        self.deadline = math.inf
        while self in self._queue and (front := self._front) is not self:
            # A thread may set the deadline meanwhile, but no nearer than PATIENCE: no look comes too late.
            left = min(PATIENCE, front.deadline - monotonic())
            if left > 0:
                await self._has_come.wait(left)
            else:
                front.leave()


class AsyncPageReader:
    """Reads pages without holding up the loop, in workers if there are any. ``spent``: seconds of reading."""

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

        ``start_after``: seconds of reading before ``page_pool`` is used.
        """
        self.spent = 0.0
        self._source = source
        self._notes = notes
        self._risky_pool = risky_pool
        self._page_pool = page_pool
        self._pools = [pool for pool in (page_pool, risky_pool) if pool is not None]
        self._start_after = start_after

    async def read(self, draft: UnreadPage, turn: Turn) -> Page:
        """The page of a draft. Raises ExtractionError. Later pages overtake a page that may take long."""
        answer = await self._read_quickly(draft.content, turn)
        if answer is None:
            await turn.comes()  # such pages are read in the order in which they came
            turn.leave()
            if self._risky_pool is None:
                answer = self.time(partial(self._source.read_content, draft.content))
            else:
                self._notes.count(stats.APART)
                answer = await self._run(self._risky_pool, draft.content, turn)
        return self._source.finish(draft, answer)

    def close(self) -> None:
        """End the workers; pages that they have not read fail as too slow."""
        for pool in self._pools:
            pool.close()

    async def _read_quickly(self, content: PageContent, turn: Turn) -> Answer:
        """The answer of a worker or of this process; None if that may take long."""
        pool = self._page_pool  # None once another page finds that no worker can start
        if pool is not None and self.spent >= self._start_after:
            answer = await self._run(pool, content, turn)
            self._report_replaced(pool)
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

    def time(self, work: Callable[[], T]) -> T:
        """Do a part of reading here, and add its seconds to those spent."""
        started = perf_counter()
        try:
            return work()
        finally:
            self.spent += perf_counter() - started

    async def _run(self, pool: WorkerPool, content: PageContent, turn: Turn) -> Answer:
        """The answer of a worker. Later pages overtake a page that takes long."""
        done, wake, started, seconds = Event(), _make_waker(), perf_counter(), 0.0

        def start() -> None:  # in a thread
            nonlocal started
            started = perf_counter()
            turn.deadline = monotonic() + PATIENCE

        def finish(_: object) -> None:  # in a thread; on the loop if the answer is there already
            nonlocal seconds
            seconds = perf_counter() - started
            turn.deadline = math.inf
            wake(done.happen)

        future = pool.submit(content, start)
        future.add_done_callback(finish)
        await done.wait()
        self.spent += seconds
        return future.result()

    def _report_replaced(self, pool: WorkerPool) -> None:
        if replaced := pool.replaced:
            self._notes.stats.set_value(stats.REPLACED, replaced)
            self._notes.warn_once(
                "replaced", "A worker that reads pages %s. Another one replaces it.", pool.why_replaced
            )


def _make_waker() -> Callable[[Callable[[], None]], None]:
    """A function by which a thread lets the loop that runs here call something."""
    if not is_asyncio_available():
        from twisted.internet import reactor

        return reactor.callFromThread  # type: ignore[no-any-return]  # the module is the reactor
    loop = asyncio.get_running_loop()

    def wake(call: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            loop.call_soon_threadsafe(call)

    return wake


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
