"""Judge the pages of a crawl, and wait for pages in flight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.drop_watch import DropWatch
from scrapy_neardup.crawl.event import Event
from scrapy_neardup.crawl.ledger import Account
from scrapy_neardup.crawl.notes import LowTextSites, Notes
from scrapy_neardup.crawl.outage import Outage
from scrapy_neardup.crawl.turns import AsyncPageReader, Turn, Turns
from scrapy_neardup.crawl.visits import Case, PendingVerdict, Visit, fields_of
from scrapy_neardup.errors import ExtractionError, PageError, StoreError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Reservation, Ruled, Ruling
from scrapy_neardup.model import ROW, Kind, Page, Verdict
from scrapy_neardup.oneline import line_logger, one_line
from scrapy_neardup.page.item import Item, row_name, row_page
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.page.source import LIMIT_REASONS, PageSource, UnreadPage
from scrapy_neardup.workers.tasks import ReadPage

if TYPE_CHECKING:
    from scrapy_neardup.judge.remote_crawl import SharedCrawl


logger = line_logger(__name__)

#: Makes the page of an item, or what is to be read for it.
Make = Callable[[], "Page | UnreadPage"]

#: What to do about pages that pass for want of something, where the reason alone does not say it.
_CURES = {
    "too_large": (
        ": it exceeds NEARDUP_MAX_HTML, NEARDUP_MAX_TEXT, 100,000 tags or the memory limit. It is not read again "
        "until it changes"
    ),
    "too_slow": (": reading it takes longer than NEARDUP_MAX_SECONDS. It is not read again until it changes"),
}


def _without_response() -> Page:
    """What is said of an item that came with neither content nor response, where the add-on is on."""
    raise ExtractionError(
        "no_content",
        "the item has no text, no HTML and no response. It comes from start(), from an errback, or from 'scrapy "
        "parse --pipelines', which hands no response over. Give it a text (NEARDUP_FIELDS), or give its request the "
        "page: meta={'neardup_response': response}",
    )


class Judge:
    """Judges each page once, and lets a page wait for a near-duplicate that is still on its way."""

    def __init__(
        self,
        source: PageSource,
        detector: Detector,
        notes: Notes,
        outage: Outage,
        wait: float,
        *,
        listings: bool = True,
        watch: DropWatch | None = None,
        aside: AsyncPageReader | None = None,
        shared: SharedCrawl | None = None,
    ) -> None:
        """``wait``: how many seconds a page waits for each one before it. ``listings``: whether several items may be
        several rows. ``shared``: how the detector is asked where the state is on a server.

        ``watch`` sees each page that was judged against others. ``aside`` reads pages from HTML; without it
        they are read where they would hold up the crawl.
        """
        self._extraction = 0.0
        self._source = source
        self._detector = detector
        self._notes = notes
        self._outage = outage
        self._wait = wait
        self._silent_sites = LowTextSites()
        self._listings = listings
        self._watch = watch
        self._aside = aside
        self._sharing = shared
        self._turns = Turns()
        #: Bodies of pages that have come and are not judged yet, and of how many.
        self._coming: Counter[int] = Counter()

    @property
    def extraction(self) -> float:
        """Seconds spent on making pages."""
        return self._extraction + (self._aside.spent if self._aside is not None else 0.0)

    async def case(self, item: Any, visit: Visit) -> Case:
        """The case that an item belongs to.

        Items of one response that bring no content of their own share a case if they have one URL, or one part of a
        page: they are one article. Several without both are rows of a listing, and each has its own.
        """
        fields = fields_of(item)
        served, url = visit.served, self._url(fields, visit)
        if visit.is_bare and not self._source.fields.has_content(fields):
            return await self._hear(url, _without_response)
        if served is None or self._source.fields.has_content(fields):
            return await self._hear(url, partial(self._source.prepare, fields, served, url))
        if self._source.fields.part(fields):
            return self._tell_row(await self._shared(visit, url, partial(row_page, fields, url)), fields)
        if self._listings and visit.items > 1 and not self._source.fields.url(fields):
            url = row_name(fields, served.url, self._detector.is_enough)
            return self._tell_row(await self._hear(url, partial(row_page, fields, url)), fields)
        return await self._shared(visit, url, partial(self._source.prepare, fields, served, url))

    def _tell_row(self, case: Case, fields: Item) -> Case:
        """Say of the first row that passes that it is one, and what to do about that."""
        if case.verdict.reason == ROW and self._notes.is_new(ROW):
            logger.warning(
                "%s passes: its response gave several items without their own texts, so the page's text belongs to "
                "none of them. Each is a row, which is compared with no other page and dropped only if it comes again "
                "unchanged. %s. If all are one article, give them the page's URL, or set NEARDUP_LISTINGS = False. "
                "(Further rows are only counted.)",
                case.verdict.sentence(),
                self._source.text_cure(fields),
            )
        return case

    async def _shared(self, visit: Visit, url: str, make: Make) -> Case:
        """The case of a page of the visit, which is heard for the first of its items, and again if it was lost."""
        while (hearing := visit.hearings.get(url)) is not None:
            if hearing.case is None:
                await hearing.over.wait(3600)  # the judging itself is bounded
            elif not hearing.case.is_lost:
                return hearing.case
            else:
                break
        visit.hearings[url] = hearing = PendingVerdict()
        hearing.case = case = await self._hear(url, make)
        if case.account is not None:
            case.account.coming = visit.coming
        hearing.over.happen()
        return hearing.case

    def _url(self, fields: Item, visit: Visit) -> str:
        """The item's URL, else its response's, and its part; call it once for each item.

        Of several items of one response that bring content, but neither URL nor part, the second and later get a
        number; so does the first where another item has the response's URL.
        """
        has_content, part = self._source.fields.has_content(fields), self._source.fields.part(fields)
        if own := self._source.fields.url(fields):
            url = self._source.fields.article_url(fields, own)
            if has_content and visit.items > 1:
                self._see_text(fields, url, visit)
            return url
        if visit.served is None:
            return self._source.fields.content_name(fields)
        if not has_content or part:
            return self._source.fields.article_url(fields, visit.served.url)
        visit.unnamed += 1
        if visit.unnamed == 1 and not (visit.is_claimed or (visit.has_bare and not self._listings)):
            return visit.served.url
        while (url := f"{visit.served.url}#{visit.unnamed}") in visit.urls:
            visit.unnamed += 1
        return url

    def _see_text(self, fields: Item, url: str, visit: Visit) -> None:
        """Tell once of several texts under one URL: each counts as a new version of the one before it."""
        text = self._source.fields.content_hash(fields)
        if visit.texts.setdefault(url, text) != text and self._notes.is_new("part"):
            logger.warning(
                "Several items of one response have different texts but one URL, %s. Each counts as a new version of "
                "the one before, so all of them come again in every crawl. For posts or comments, name the field that "
                "distinguishes them, for example NEARDUP_FIELDS = {'part': 'id'}, or give each its own URL. "
                "(Logged once.)",
                one_line(url),
            )

    async def _hear(self, url: str, make: Make) -> Case:
        verdict, reservation = await self._judge(url, make)
        self._notes.count(stats.PAGES)
        self._notes.count(stats.verdict(verdict.kind.value, verdict.reason))
        if verdict.likeness is not None:
            self._notes.count(stats.likeness(verdict.likeness.value))
        if verdict.same_bytes:
            self._notes.count(stats.SAME_BYTES)
        if verdict.by_hand:
            self._notes.count(stats.BY_HAND)
        if verdict.reader:
            self._notes.count(stats.extraction(verdict.reader))
            self._silent_sites.see(verdict)
        if verdict.is_copy or verdict.likeness is not None:
            logger.debug("%s", verdict.sentence())
        return Case(verdict, Account(reservation) if reservation is not None else None)

    async def _judge(self, url: str, make: Make) -> tuple[Verdict, Reservation | None]:
        """The verdict on the page that an item makes; whatever goes wrong, the page is unjudged and the item passes."""
        turn = self._turns.join()
        try:
            ruled = await self._ruled(self._made(make), turn)
        except PageError as error:
            verdict = Verdict(Kind.UNJUDGED, url, reason=error.reason)
            self._notes.warn_once(error.reason, "%s passes: %s.", verdict.sentence(), str(error).rstrip("."))
            return verdict, None
        except StoreError as error:
            self._outage.report(error)
            return Verdict(Kind.UNJUDGED, url, reason="store_failed"), None
        except Exception:  # a page that no one foresaw must not cost the item; the traceback says what to mend
            self._notes.count(stats.ERRORS)
            verdict = Verdict(Kind.UNJUDGED, url, reason="method_failed")
            self._notes.warn_once(verdict.reason, "%s passes.", verdict.sentence(), exc_info=True)
            return verdict, None
        finally:
            turn.leave()
        if ruled.verdict.kind is Kind.UNJUDGED and ruled.verdict.reason != ROW:
            cure = _CURES.get(ruled.verdict.reason, "")
            said = self._notes.warn_once(ruled.verdict.reason, "%s passes%s.", ruled.verdict.sentence(), cure)
            if not said and ruled.verdict.reason in LIMIT_REASONS:  # each by its name
                logger.info("%s passes.", ruled.verdict.sentence())
        return ruled.verdict, ruled.reservation

    def _made(self, make: Make) -> Page | UnreadPage:
        with self._timed():
            return make()

    @contextmanager
    def _timed(self) -> Iterator[None]:
        begun = perf_counter()
        try:
            yield
        finally:
            self._extraction += perf_counter() - begun

    def _may_know(self, draft: UnreadPage) -> bool:
        """Whether it may turn out that a page need not be read."""
        return self._coming[draft.body] > 1 or self._detector.may_know(draft.content.url, draft.body)

    async def _read(self, draft: UnreadPage, turn: Turn) -> ReadPage:
        if self._aside is not None:
            return await self._aside.read(draft, turn)
        with self._timed():
            return ReadPage(self._source.read(draft))

    async def _ruled(self, made: Page | UnreadPage, turn: Turn) -> Ruled:
        if self._sharing is None:
            return await self._at_once(made, turn)
        page = made if isinstance(made, Page) else (await self._read(made, turn)).page
        await turn.comes()
        turn.leave()  # on the server the pages of all crawlers stand in one line
        async with self._sharing.filing(page) as filing:
            return await self._heard(filing.check, partial(filing.wait, seconds=self._wait), lambda: page, turn)

    async def _at_once(self, made: Page | UnreadPage, turn: Turn) -> Ruled:
        """The ruling on a page when it is its turn; it is read first, unless its bytes may have been judged by then."""
        body = made.body if isinstance(made, UnreadPage) else 0
        self._coming[body] += 1
        try:
            read = ReadPage(made) if isinstance(made, Page) else None
            if isinstance(made, UnreadPage) and not (body and self._may_know(made)):
                read = await self._read(made, turn)
            await turn.comes()
            return await self._asked(made, read, turn)
        finally:
            self._coming[body] -= 1
            if not self._coming[body]:
                del self._coming[body]

    async def _asked(self, made: Page | UnreadPage, read: ReadPage | None, turn: Turn) -> Ruled:
        url = made.content.url if isinstance(made, UnreadPage) else made.url
        given_up = list[Reservation]()

        async def check() -> Ruling:
            nonlocal read
            if read is None:
                assert isinstance(made, UnreadPage)
                ruling = self._detector.check_bytes(url, site_of(url), made.body, given_up)
                if ruling is not None:
                    return ruling
                read = await self._read(made, turn)
                await turn.comes()
            return self._checked(read, given_up)

        async def wait(by: Reservation) -> None:
            settled = Event()
            by.when_settled(settled.happen)
            if not await settled.wait(self._wait):
                given_up.append(by)

        return await self._heard(check, wait, lambda: read.page if read else Page(url), turn)

    def _checked(self, read: ReadPage, given_up: list[Reservation]) -> Ruling:
        ruling = self._detector.check(read.page, prepared=read.prepared, given_up=given_up)
        if read.prepared is not None:
            self._detector.learn(read.page, read.prepared)
        return ruling

    async def _heard(
        self,
        check: Callable[[], Awaitable[Ruling]],
        wait: Callable[[Reservation], Awaitable[None]],
        page: Callable[[], Page],
        turn: Turn,
    ) -> Ruled:
        """Ask the detector; while a near-duplicate is on its way, wait for what becomes of it, and ask again.

        ``wait``: until that page is settled, or is given up. ``page``: what is known of the page by then.
        """
        while not self._outage.happened:
            ruling = await check()
            if isinstance(ruling, Ruled):
                if self._watch is not None:
                    self._watch.see(ruling.page or page(), ruling)
                if ruling.reservation is not None:
                    turn.stay_until(ruling.reservation.when_settled)
                return ruling
            turn.leave()
            self._notes.count(stats.WAITED)
            await wait(ruling.by)
        return Ruled(Verdict(Kind.UNJUDGED, page().url, reason="store_failed"))
