"""The item pipeline: judges each item's page, drops or tags it, and passes on what it cannot judge."""

from __future__ import annotations

import logging
from pathlib import Path
from time import perf_counter
from typing import Any
from weakref import WeakKeyDictionary

from itemadapter import ItemAdapter
from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem, NotConfigured
from scrapy.http import Response
from scrapy.statscollectors import StatsCollector
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.project import data_path

from scrapy_neardup import stats
from scrapy_neardup.config import Config, is_enabled, load_extractor
from scrapy_neardup.detector import Detector, Reservation, Ruling
from scrapy_neardup.errors import ExtractionError, StoreError
from scrapy_neardup.extract import extractor_name, trafilatura_text
from scrapy_neardup.feeds import FeedWatch
from scrapy_neardup.handoff import Ticket, current, punch
from scrapy_neardup.hashing import HASH_NAME
from scrapy_neardup.ledger import Case, Ledger
from scrapy_neardup.model import Kind, Page, Verdict
from scrapy_neardup.sources import PageSource
from scrapy_neardup.stores import Store, close_store, default_url, open_store
from scrapy_neardup.text.tokens import segmenter_name
from scrapy_neardup.waiting import Event

logger = logging.getLogger(__name__)


class _Dropped(DropItem):
    """Scrapy prints the whole item with its line about a drop; ours names the pages and is enough."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.sentence(), log_level="NOTSET")
        self.verdict = verdict


class DuplicatePage(_Dropped):
    """The page is a copy of another one; ``verdict`` says of which, and why."""


class UnchangedPage(_Dropped):
    """The page is the same as when its URL was last seen."""


class NearDupPipeline:
    """Put it into ITEM_PIPELINES: behind pipelines that clean items, before those that store them."""

    def __init__(self, crawler: Crawler, config: Config, store_url: str) -> None:
        self._crawler = crawler
        self._config = config
        self._store_url = store_url
        extractor = load_extractor(config.extractor) if config.extractor else trafilatura_text
        self._extractor = extractor
        self._source = PageSource(config.fields, config.max_html, extractor)
        self._method = config.make_method()
        self._feeds = FeedWatch(crawler, self._seal)
        self._cases: WeakKeyDictionary[Response, dict[str, Case]] = WeakKeyDictionary()
        self._detector: Detector | None = None
        self._ledger: Ledger | None = None
        self._store_lost = False
        self._told: set[str] = set()
        self._extraction = 0.0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NearDupPipeline:
        """Read the settings; raises SettingsError, which keeps the crawl from starting."""
        if not is_enabled(crawler.settings):
            raise NotConfigured("NEARDUP_ENABLED is False: no page is judged.")
        config = Config.from_settings(crawler.settings)
        return cls(crawler, config, config.store or default_url(Path(data_path("neardup"))))

    def open_spider(self) -> None:
        """Open the state; raises StoreError, which keeps the crawl from starting."""
        recipe = {
            **self._method.recipe(),
            "hash": HASH_NAME,
            "segmenter": segmenter_name(),
            "extractor": extractor_name(self._extractor),
        }
        store = open_store(self._store_url, recipe)
        who = self._crawler.spider.name if self._crawler.spider else "unknown"
        try:
            self._detector = Detector(self._method, store, min_letters=self._config.min_letters, who=who)
        except StoreError:
            close_store(store)
            raise
        self._tell_opening(store)
        feeds = self._feeds if self._config.commit == "feed" else None
        self._ledger = Ledger(self._detector, feeds, self._store_failed, self._page_lost)
        connect = self._crawler.signals.connect
        has_feeds = self._feeds.open(self._item_scraped)
        connect(self._item_dropped, signals.item_dropped)
        connect(self._item_error, signals.item_error)
        # The state must outlive the feeds: they are stored while spider_closed is handled.
        connect(self._finish, signals.feed_exporter_closed if has_feeds else signals.spider_closed)
        connect(self._finish, signals.engine_stopped)

    async def process_item(self, item: Any) -> Any:
        """Drop the item, or pass it on, tagged if that is asked for."""
        ticket = punch()
        response = ticket.response
        if response is not None and response.request is not None and response.meta.get("neardup") is False:
            self._count(stats.OPTED_OUT)
            return item
        case = await self._judged_case(item, ticket)
        verdict = case.verdict
        assert verdict is not None
        if verdict.is_copy and self._config.drop:
            raise (DuplicatePage if verdict.kind is Kind.DUPLICATE else UnchangedPage)(verdict)
        if case.reservation is not None and self._ledger is not None:
            self._ledger.enter(case)
            ticket.case = case
        if not self._config.drop:
            self._tag(item, verdict)
        return item

    # The verdict.

    async def _judged_case(self, item: Any, ticket: Ticket) -> Case:
        """The case that the item belongs to, with its verdict."""
        response = ticket.response
        url = self._source.url(item, response)
        if response is None or self._source.has_own_content(item):
            return await self._open_case(item, response, url, Case())
        cases = self._cases.setdefault(response, {})
        while (case := cases.get(url)) is not None and not case.lost:
            if case.verdict is not None:
                return case
            await case.judged.wait(3600)  # the judging itself is bounded by NEARDUP_WAIT
        cases[url] = case = Case()
        return await self._open_case(item, response, url, case)

    async def _open_case(self, item: Any, response: Response | None, url: str, case: Case) -> Case:
        verdict, reservation = await self._judge(item, response, url)
        case.close(verdict, reservation)
        self._count(stats.PAGES)
        self._count(stats.verdict(verdict.kind.value, verdict.reason))
        if verdict.is_copy:
            logger.debug("%s", verdict.sentence())
        return case

    async def _judge(self, item: Any, response: Response | None, url: str) -> tuple[Verdict, Reservation | None]:
        """The verdict on an item's page; whatever goes wrong, the page is unjudged and the item passes."""
        try:
            page = self._page(item, response, url)
            ruling = await self._check(page)
        except ExtractionError as error:
            verdict = Verdict(Kind.UNJUDGED, url, reason=error.reason)
            self._tell_once(error.reason, "%s passes: %s.", verdict.sentence(), error)
            return verdict, None
        except StoreError as error:
            self._store_failed(error)
            return Verdict(Kind.UNJUDGED, url, reason="store_failed"), None
        except Exception:  # a page that no one foresaw must not cost the item; the traceback says what to mend
            self._count(stats.ERRORS)
            verdict = Verdict(Kind.UNJUDGED, url, reason="method_failed")
            self._tell_once(verdict.reason, "%s passes.", verdict.sentence(), exc_info=True)
            return verdict, None
        assert ruling.verdict is not None
        if ruling.verdict.kind is Kind.UNJUDGED:
            self._tell_once(ruling.verdict.reason, "%s passes.", ruling.verdict.sentence())
        return ruling.verdict, ruling.reservation

    def _page(self, item: Any, response: Response | None, url: str) -> Page:
        begun = perf_counter()
        try:
            return self._source.page(item, response, url)
        finally:
            self._extraction += perf_counter() - begun

    async def _check(self, page: Page) -> Ruling:
        """Ask the detector; while a near-duplicate is on its way, wait for what becomes of it, and ask again."""
        if self._store_lost or self._detector is None:
            return Ruling(Verdict(Kind.UNJUDGED, page.url, reason="store_failed"))
        deadline = perf_counter() + self._config.wait
        while True:
            ruling = self._detector.check(page)
            if ruling.blocker is None:
                return ruling
            self._count(stats.WAITED)
            settled = Event()
            ruling.blocker.when_settled(settled.happen)
            if not await settled.wait(max(0.0, deadline - perf_counter())):
                return Ruling(Verdict(Kind.UNJUDGED, page.url, reason="in_flight"))
            if self._store_lost:
                return Ruling(Verdict(Kind.UNJUDGED, page.url, reason="store_failed"))

    # What becomes of the items.

    def _item_scraped(self) -> None:
        case = self._case_that_ends()
        if case is not None and self._ledger is not None:
            self._ledger.scraped(case)

    def _item_dropped(self) -> None:
        case = self._case_that_ends()
        if case is not None and self._ledger is not None:
            self._ledger.dropped(case)

    def _item_error(self) -> None:
        case = self._case_that_ends()
        if case is not None and self._ledger is not None:
            self._ledger.failed(case)

    @staticmethod
    def _case_that_ends() -> Case | None:
        """The case of the item whose signal is being handled; None if it has no bearing on the state."""
        ticket = current()
        if ticket is None:
            return None
        case, ticket.case = ticket.case, None
        return case

    def _page_lost(self) -> None:
        self._count(stats.ROLLED_BACK)

    def _seal(self, ids: list[int]) -> None:
        if self._detector is None or self._store_lost:
            return
        try:
            self._detector.seal(ids)
        except StoreError as error:
            self._store_failed(error)

    def _finish(self) -> None:
        """Every feed is stored: seal, sum up, close the state. The first signal that comes does it."""
        detector = self._detector
        if detector is None:
            return
        try:
            self._feeds.close()
            self._detector = self._ledger = None
            unsealed = 0 if self._store_lost else detector.end()
            self._sum_up(detector, unsealed)
        except StoreError as error:
            self._store_failed(error)
        finally:
            self._detector = self._ledger = None
            try:
                close_store(detector.store)
            except StoreError as error:
                logger.error("%s", error)

    def _tag(self, item: Any, verdict: Verdict) -> None:
        name = self._config.tag_field
        try:
            ItemAdapter(item)[name] = verdict.as_tag()
        except Exception as error:  # each kind of item has its own way to refuse a field
            if "tag" in self._told:
                return
            self._told.add("tag")
            logger.error(
                "Items of class %s cannot be tagged: they have no field %r (%s). Give the class that field (a "
                "scrapy.Item: %s = scrapy.Field()), or name one that it has in NEARDUP_TAG_FIELD. The crawl is "
                "closed; items that are on their way pass untagged.",
                type(item).__name__,
                name,
                error,
                name,
            )
            self._close_crawl("neardup_no_tag_field")

    # What goes wrong, and what is told.

    def _store_failed(self, error: StoreError) -> None:
        self._count(stats.ERRORS)
        if self._store_lost:
            return
        self._store_lost = True
        closes = self._config.on_store_error == "close"
        logger.error(
            "%s From here on no page is judged and every item passes. %s",
            error,
            "The crawl is closed; with NEARDUP_ON_STORE_ERROR = 'pass' it would go on."
            if closes
            else "The crawl goes on, as NEARDUP_ON_STORE_ERROR is 'pass'.",
        )
        if closes:
            self._close_crawl("neardup_store_failed")

    def _close_crawl(self, reason: str) -> None:
        engine = self._crawler.engine
        if engine is not None:
            deferred_from_coro(engine.close_spider_async(reason=reason))

    def _tell_opening(self, store: Store) -> None:
        logger.info(
            "Near-duplicates are %s by the method %s; the state is %s, with %d pages.",
            "dropped" if self._config.drop else "tagged",
            self._method.name,
            "in memory" if store.scheme == "memory" else f"{store.scheme} at {store.location}",
            store.pages,
        )
        back = store.taken_back
        if back.pages:
            self._count(stats.TAKEN_BACK, back.pages)
            logger.warning(
                "%d pages were taken back from the state: the crawl that added them (%s) was killed, or its feed was "
                "not stored. They will be judged anew.",
                back.pages,
                ", ".join(back.crawls) or "unknown",
            )

    def _tell_once(self, what: str, message: str, *arguments: object, exc_info: bool = False) -> None:
        if what not in self._told:
            self._told.add(what)
            logger.warning(message + " (Further cases of %r are only counted.)", *arguments, what, exc_info=exc_info)

    def _count(self, stat: str, count: int = 1) -> None:
        self._stats.inc_value(stat, count)

    def _sum_up(self, detector: Detector, unsealed: int) -> None:
        """The closing stats, and one line for people."""
        store, numbers = detector.store, self._stats
        numbers.set_value(stats.TIME_EXTRACTION, round(self._extraction, 3))
        numbers.set_value(stats.TIME_METHOD, round(detector.spent["method"], 3))
        numbers.set_value(stats.TIME_STORE, round(detector.spent["store"], 3))
        numbers.set_value(stats.STATE_PAGES, store.pages)
        numbers.set_value(stats.STATE_BYTES, store.size())
        if unsealed:
            numbers.set_value(stats.UNSEALED, unsealed)
            logger.warning(
                "%d pages are not sealed, as the feed that holds them was not stored. The next crawl takes them back.",
                unsealed,
            )
        logger.info("%s", stats.closing_line(numbers.get_stats()))

    @property
    def _stats(self) -> StatsCollector:
        assert self._crawler.stats is not None
        return self._crawler.stats
