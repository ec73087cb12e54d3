"""From an item and its response to a case with its verdict, whatever goes wrong on the way."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import perf_counter
from typing import Any
from weakref import WeakKeyDictionary

from scrapy.http import Response

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.ledger import Case
from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.crawl.sources import PageSource
from scrapy_neardup.crawl.waiting import Event
from scrapy_neardup.errors import PageError, StoreError
from scrapy_neardup.judging.detector import Detector
from scrapy_neardup.judging.reservations import Reservation, Ruling
from scrapy_neardup.model import Kind, Page, Verdict

logger = logging.getLogger(__name__)


class Judge:
    """Judges each page once, and lets a page wait for a near-duplicate that is still on its way."""

    def __init__(
        self,
        source: PageSource,
        detector: Detector,
        notes: Notes,
        wait: float,
        on_store_error: Callable[[StoreError], None],
    ) -> None:
        """``wait``: how many seconds a page waits at most."""
        self.extraction = 0.0
        #: Set by whoever is told that the state has failed: from then on no page is judged.
        self.blind = False
        self._source = source
        self._detector = detector
        self._notes = notes
        self._wait = wait
        self._on_store_error = on_store_error
        self._cases: WeakKeyDictionary[Response, dict[str, Case]] = WeakKeyDictionary()

    async def case(self, item: Any, response: Response | None) -> Case:
        """The case that the item belongs to, with its verdict.

        Items of one response that bring no content of their own, and have one URL, share a case.
        """
        url = self._source.url(item, response)
        if response is None or self._source.has_own_content(item):
            return await self._open(item, response, url, Case())
        cases = self._cases.setdefault(response, {})
        while (case := cases.get(url)) is not None and not case.lost:
            if case.verdict is not None:
                return case
            await case.judged.wait(3600)  # the judging itself is bounded
        cases[url] = case = Case()
        return await self._open(item, response, url, case)

    async def _open(self, item: Any, response: Response | None, url: str, case: Case) -> Case:
        verdict, reservation = await self._judge(item, response, url)
        case.close(verdict, reservation)
        self._notes.count(stats.PAGES)
        self._notes.count(stats.verdict(verdict.kind.value, verdict.reason))
        if verdict.likeness is not None:
            self._notes.count(stats.likeness(verdict.likeness.value))
        if verdict.is_copy or verdict.likeness is not None:
            logger.debug("%s", verdict.sentence())
        return case

    async def _judge(self, item: Any, response: Response | None, url: str) -> tuple[Verdict, Reservation | None]:
        """The verdict on an item's page; whatever goes wrong, the page is unjudged and the item passes."""
        try:
            page = self._page(item, response, url)
            ruling = await self._ruling(page)
        except PageError as error:
            verdict = Verdict(Kind.UNJUDGED, url, reason=error.reason)
            self._notes.warn_once(error.reason, "%s passes: %s.", verdict.sentence(), str(error).rstrip("."))
            return verdict, None
        except StoreError as error:
            self._on_store_error(error)
            return Verdict(Kind.UNJUDGED, url, reason="store_failed"), None
        except Exception:  # a page that no one foresaw must not cost the item; the traceback says what to mend
            self._notes.count(stats.ERRORS)
            verdict = Verdict(Kind.UNJUDGED, url, reason="method_failed")
            self._notes.warn_once(verdict.reason, "%s passes.", verdict.sentence(), exc_info=True)
            return verdict, None
        assert ruling.verdict is not None
        if ruling.verdict.kind is Kind.UNJUDGED:
            self._notes.warn_once(ruling.verdict.reason, "%s passes.", ruling.verdict.sentence())
        return ruling.verdict, ruling.reservation

    def _page(self, item: Any, response: Response | None, url: str) -> Page:
        begun = perf_counter()
        try:
            return self._source.page(item, response, url)
        finally:
            self.extraction += perf_counter() - begun

    async def _ruling(self, page: Page) -> Ruling:
        """Ask the detector; while a near-duplicate is on its way, wait for what becomes of it, and ask again."""
        deadline = perf_counter() + self._wait
        while not self.blind:
            ruling = self._detector.check(page)
            if ruling.blocker is None:
                return ruling
            self._notes.count(stats.WAITED)
            settled = Event()
            ruling.blocker.when_settled(settled.happen)
            if not await settled.wait(max(0.0, deadline - perf_counter())):
                return Ruling(Verdict(Kind.UNJUDGED, page.url, reason="in_flight"))
        return Ruling(Verdict(Kind.UNJUDGED, page.url, reason="store_failed"))
