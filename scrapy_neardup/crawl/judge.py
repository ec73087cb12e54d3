"""Judge the pages of a crawl: read them in their order, here or in workers, and wait for pages in flight."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.crawl.site_watch import SiteWatch
from scrapy_neardup.crawl.visits import JudgedPage, Visit, fields_of
from scrapy_neardup.errors import AnyReason, NoWorker, PageError, StoreError, describe_reason
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Reservation, Ruled, Ruling
from scrapy_neardup.model import LISTING, Outcome, Page, Verdict
from scrapy_neardup.page.extraction import Answer, PageContent
from scrapy_neardup.page.item import Item, row_name, row_page
from scrapy_neardup.page.source import LIMIT_REASONS, TEXT_CURE, PageSource, UnreadPage
from scrapy_neardup.settings import AUTO, Config
from scrapy_neardup.untrusted import line_logger
from scrapy_neardup.workers.pool import PendingAnswer, WorkerPool

if TYPE_CHECKING:
    from scrapy_neardup.judge.remote import RemoteCrawl


logger = line_logger(__name__)

T = TypeVar("T")

#: Seconds of reading after which later pages overtake a page, and those that wait for a worker behind such pages. For a
#: worker to start they wait six times as long.
PATIENCE = 0.5
#: Seconds of reading before page workers start by default: each takes a second to start, and some 150 MB.
_START_AFTER = 3.0
#: The cures of pages that are not judged for these reasons.
_CURES = {
    "no_text": f" {TEXT_CURE}.",
    LISTING: f" {TEXT_CURE}. If all items of the response are one article, give them the page's URL and no part.",
}
#: Makes the page of an item, or the draft of a page that is still to be read.
Make = Callable[[], "Page | UnreadPage"]


class Judge:
    """Judges each page once, and lets it wait for near-duplicates in flight."""

    def __init__(
        self,
        source: PageSource,
        reader: AsyncPageReader,
        detector: Detector,
        notes: Notes,
        watch: SiteWatch,
        *,
        wait: float,
        server: RemoteCrawl | None = None,
    ) -> None:
        """``wait``: seconds that a page waits for each one before it. ``server``: judges pages of a shared state."""
        self._source = source
        self._reader = reader
        self._detector = detector
        self._notes = notes
        self._watch = watch
        self._wait = wait
        self._server = server
        #: Pages get it in the order of their arrival.
        self._order = asyncio.Lock()

    async def judge(self, item: Any, visit: Visit) -> JudgedPage:
        """The page of an item, with its verdict. After any error the page is unjudged, and the item passes."""
        try:
            return await self._judge_item(fields_of(item), visit)
        except Exception:  # an unforeseen one must not cost the item; the traceback says what to mend
            self._notes.count(stats.ERRORS)
            ruled = _unjudged(visit.served.url if visit.served else "", "method_failed")
            self._notes.warn_once("method_failed", "%s passes.", ruled.verdict.sentence(), exc_info=True)
            return self._end(ruled)

    async def _judge_item(self, fields: Item, visit: Visit) -> JudgedPage:
        """Choose the page of an item.

        Items of one response without own content are one article, and share its page, if they have the same URL or
        the same part. Several items without URL and part are rows of a listing, and each is a page.
        """
        names, served = self._source.fields, visit.served
        has_content, url = names.has_content(fields), self._url(fields, visit)
        prepare = partial(self._source.prepare, fields, served, url)
        if served is None or has_content:
            return await self._judge(url, prepare)
        if names.part(fields):
            return await self._judge_once(visit, url, partial(row_page, fields, url))
        if visit.has_several and not names.url(fields):
            url = row_name(fields, served.url, self._detector.policy.why_unjudged)
            return await self._judge(url, partial(row_page, fields, url))
        return await self._judge_once(visit, url, prepare)

    def _url(self, fields: Item, visit: Visit) -> str:
        """The item's URL, else its response's, and its part; call it once for each item.

        Items of one response with content, but without URL and part, get a number from the second on. The first gets
        one where another item has the response's URL.
        """
        names = self._source.fields
        if own := names.url(fields):
            return names.article_url(fields, own)
        if visit.served is None:
            return names.content_name(fields)
        if not names.has_content(fields) or names.part(fields):
            return names.article_url(fields, visit.served.url)
        visit.unnamed += 1
        if visit.unnamed == 1 and not visit.is_claimed:
            return visit.served.url
        while (url := f"{visit.served.url}#{visit.unnamed}") in visit.urls:
            visit.unnamed += 1
        return url

    async def _judge_once(self, visit: Visit, url: str, make: Make) -> JudgedPage:
        """The page that items of a visit share: judged for the first of them, and again if it was lost.

        If an item has failed, the page does not count for later items either: all of them come again.
        """
        async with visit.locks[url]:
            page = visit.pages.get(url)
            if page is None or page.is_rolled_back:
                is_failed = page is not None and page.is_failed
                visit.pages[url] = page = await self._judge(url, make)
                page.visit, page.is_failed = visit, is_failed
            return page

    async def _judge(self, url: str, make: Make) -> JudgedPage:
        try:
            ruled = await self._rule(self._reader.time(make))
        except PageError as error:
            ruled = _unjudged(url, error.reason)
            self._notes.warn_once(error.reason, "%s passes: %s.", ruled.verdict.sentence(), str(error).rstrip("."))
        except StoreError as error:
            self._notes.report(error)
            ruled = _unjudged(url, "store_failed")
        else:
            self._warn_of_unjudged(ruled.verdict)
        return self._end(ruled)

    def _warn_of_unjudged(self, verdict: Verdict) -> None:
        if not (reason := verdict.reason):
            return
        what = f"{describe_reason(reason)}{_CURES.get(reason, '')}"
        is_first = self._notes.warn_once(reason, "%s passes. %s", verdict.sentence(), what)
        if not is_first and reason in LIMIT_REASONS:  # each URL, because somebody may have made it on purpose
            logger.info("%s passes.", verdict.sentence())

    def _end(self, ruled: Ruled) -> JudgedPage:
        """Count the verdict, and log it if the page is a copy."""
        verdict, count = ruled.verdict, self._notes.count
        count(stats.PAGES)
        count(stats.verdict(verdict.outcome.value, verdict.reason))
        if verdict.kind is not None:
            count(f"neardup/kind/{verdict.kind.value}")
        if verdict.same_bytes:
            count(stats.SAME_BYTES)
        if verdict.by_hand:
            count(stats.BY_HAND)
        if verdict.reader:
            count(f"neardup/extraction/{verdict.reader}")
        if verdict.is_copy or verdict.kind is not None:
            logger.debug("%s", verdict.sentence())
        return JudgedPage(verdict, ruled.reservation)

    async def _rule(self, page: Page | UnreadPage) -> Ruled:
        """The ruling on a page when it is its turn. While a page in flight decides it, wait for that page.

        A page that the detector knows by its bytes is not read. Workers read several pages at once. Later pages
        overtake a slow page.
        """
        notes, detector, reader = self._notes, self._detector, self._reader
        url, body = page.url, page.body
        may_know = detector.may_know(url, body)
        reading = reader.begin(page) if isinstance(page, UnreadPage) and not may_know else None
        async with self._order:
            if may_know and not notes.state_failed and (unchanged := detector.check_bytes(url, body)):
                self._watch.see(Page(url), unchanged)
                return unchanged
            if isinstance(page, UnreadPage):
                page = await reader.read_quickly(page, reading)
        # From here on nothing waits before the page is checked, unless it takes long or a server is asked.
        if isinstance(page, UnreadPage):
            page = await reader.read_slowly(page, reading)
        here = nullcontext(LocalJudgement(detector))
        async with here if self._server is None else self._server.judgement() as judgement:
            while not notes.state_failed:
                ruling = await judgement.check(page)
                if isinstance(ruling, Ruled):
                    self._watch.see(page, ruling)
                    return ruling
                notes.count(stats.WAITED)
                await judgement.wait(ruling.by, self._wait)
        return _unjudged(url, "store_failed")


class LocalJudgement:
    """One page from its first check until its verdict, on this machine; ``RemoteJudgement`` asks a server."""

    def __init__(self, detector: Detector) -> None:
        self._given_up: list[Reservation] = []
        self._detector = detector

    async def check(self, page: Page) -> Ruling:
        """Judge the page. If it is blocked, wait and call again. Raises StoreError."""
        return self._detector.check(page, self._given_up)

    async def wait(self, by: Reservation, seconds: float) -> None:
        """Wait until a page before this one is settled, or give it up."""
        settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        by.when_settled(partial(settled.set_result, None))
        await asyncio.wait([settled], timeout=seconds)
        if not settled.done():
            self._given_up.append(by)


def _unjudged(url: str, reason: AnyReason) -> Ruled:
    return Ruled(Verdict(Outcome.UNJUDGED, url, reason=reason))


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

    def begin(self, draft: UnreadPage) -> PendingAnswer | None:
        """Let a worker begin with a page. None without a worker, or before workers pay: the page will be read here."""
        if self._page_pool is None or self.spent < self._start_after:
            return None
        return self._page_pool.submit(draft.content)

    async def read_quickly(self, draft: UnreadPage, reading: PendingAnswer | None) -> Page | UnreadPage:
        """The page of a draft; the draft itself if reading takes long. Raises ExtractionError."""
        if reading is not None:
            answered, last = asyncio.wrap_future(reading), monotonic() + 6 * PATIENCE
            while not reading.done():
                begun = reading.begun or (self._page_pool.busy_since if self._page_pool is not None else 0.0)
                seconds = (min(last, begun + PATIENCE) if begun else last) - monotonic()
                if seconds <= 0:
                    return draft
                await asyncio.wait([answered], timeout=min(seconds, PATIENCE))
        answer = self._take(draft.content, reading)
        return draft if answer is None else self._source.finish(draft, answer)

    async def read_slowly(self, draft: UnreadPage, reading: PendingAnswer | None) -> Page:
        """The page of a draft that takes long. Raises ExtractionError."""
        answer: Answer = None
        if reading is not None:  # it may have ended meanwhile
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

    def _take(self, content: PageContent, reading: PendingAnswer | None) -> Answer:
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
        return self.time(partial(self._source.read_content, content, only_quick=True))


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
