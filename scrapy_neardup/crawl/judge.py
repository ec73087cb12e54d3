"""From an item and its visit to a case with its verdict, whatever goes wrong on the way."""

from __future__ import annotations

import logging
from time import perf_counter
from typing import Any

from itemadapter import ItemAdapter

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.ledger import Account
from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.crawl.outage import Outage
from scrapy_neardup.crawl.visits import Case, Hearing, Visit
from scrapy_neardup.crawl.waiting import Event
from scrapy_neardup.errors import PageError, StoreError
from scrapy_neardup.judging.detector import Detector
from scrapy_neardup.judging.reservations import Reservation, Ruled
from scrapy_neardup.model import Kind, Page, Verdict
from scrapy_neardup.page.served import Served
from scrapy_neardup.page.source import Item, PageSource

logger = logging.getLogger(__name__)


class Judge:
    """Judges each page once, and lets a page wait for a near-duplicate that is still on its way."""

    def __init__(self, source: PageSource, detector: Detector, notes: Notes, outage: Outage, wait: float) -> None:
        """``wait``: how many seconds a page waits at most."""
        #: Seconds spent on making pages.
        self.extraction = 0.0
        self._source = source
        self._detector = detector
        self._notes = notes
        self._outage = outage
        self._wait = wait

    async def case(self, item: Any, visit: Visit) -> Case:
        """The case that an item belongs to.

        Items of one response that bring no content of their own, and have one URL, share a case.
        """
        fields: Item = ItemAdapter(item) if ItemAdapter.is_item(item) else {}
        url = self._url(fields, visit)
        if visit.served is None or self._source.has_own_content(fields):
            return await self._hear(fields, visit.served, url)
        while (hearing := visit.hearings.get(url)) is not None:
            if hearing.case is None:
                await hearing.over.wait(3600)  # the judging itself is bounded
            elif not hearing.case.is_lost:
                return hearing.case
            else:
                break
        visit.hearings[url] = hearing = Hearing()
        hearing.case = await self._hear(fields, visit.served, url)
        hearing.over.happen()
        return hearing.case

    def _url(self, fields: Item, visit: Visit) -> str:
        """The item's URL, else its response's; call it once for each item.

        Of several items of one response that bring content but no URL, the second and later get a number.
        """
        if own := self._source.own_url(fields):
            return own
        if visit.served is None:
            return self._source.name_of_content(fields)
        if self._source.has_own_content(fields):
            visit.unnamed += 1
            if visit.unnamed > 1:
                return f"{visit.served.url}#{visit.unnamed}"
        return visit.served.url

    async def _hear(self, fields: Item, served: Served | None, url: str) -> Case:
        verdict, reservation = await self._judge(fields, served, url)
        self._notes.count(stats.PAGES)
        self._notes.count(stats.verdict(verdict.kind.value, verdict.reason))
        if verdict.likeness is not None:
            self._notes.count(stats.likeness(verdict.likeness.value))
        if verdict.is_copy or verdict.likeness is not None:
            logger.debug("%s", verdict.sentence())
        return Case(verdict, Account(reservation) if reservation is not None else None)

    async def _judge(self, fields: Item, served: Served | None, url: str) -> tuple[Verdict, Reservation | None]:
        """The verdict on an item's page; whatever goes wrong, the page is unjudged and the item passes."""
        try:
            ruled = await self._ruled(self._page(fields, served, url))
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
        if ruled.verdict.kind is Kind.UNJUDGED:
            self._notes.warn_once(ruled.verdict.reason, "%s passes.", ruled.verdict.sentence())
        return ruled.verdict, ruled.reservation

    def _page(self, fields: Item, served: Served | None, url: str) -> Page:
        begun = perf_counter()
        try:
            return self._source.page(fields, served, url)
        finally:
            self.extraction += perf_counter() - begun

    async def _ruled(self, page: Page) -> Ruled:
        """Ask the detector; while a near-duplicate is on its way, wait for what becomes of it, and ask again."""
        deadline = perf_counter() + self._wait
        while not self._outage.happened:
            ruling = self._detector.check(page)
            if isinstance(ruling, Ruled):
                return ruling
            self._notes.count(stats.WAITED)
            settled = Event()
            ruling.by.when_settled(settled.happen)
            if not await settled.wait(max(0.0, deadline - perf_counter())):
                return Ruled(Verdict(Kind.UNJUDGED, page.url, reason="in_flight"))
        return Ruled(Verdict(Kind.UNJUDGED, page.url, reason="store_failed"))
