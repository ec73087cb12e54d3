"""The item pipeline: has each item's page judged, drops or tags the item, and keeps the state in step with it."""

from __future__ import annotations

import logging
from typing import Any

from itemadapter import ItemAdapter
from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem, NotConfigured
from scrapy.utils.defer import deferred_from_coro

from scrapy_neardup.config import DROP, TAG, Config, is_enabled
from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.feeds import FeedWatch
from scrapy_neardup.crawl.judge import Judge
from scrapy_neardup.crawl.ledger import Case, Ledger
from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.crawl.sources import PageSource
from scrapy_neardup.crawl.state import page_extractor, state_recipe, state_url
from scrapy_neardup.crawl.tickets import current, punch
from scrapy_neardup.errors import StoreError
from scrapy_neardup.judging.detector import Detector
from scrapy_neardup.model import Kind, Verdict
from scrapy_neardup.stores import Store, close_store, open_store

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
        self._notes = Notes(crawler)
        self._feeds = FeedWatch(crawler, self._seal)
        self._detector: Detector | None = None
        self._judge: Judge | None = None
        self._ledger: Ledger | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NearDupPipeline:
        """Read the settings; raises SettingsError, which keeps the crawl from starting."""
        if not is_enabled(crawler.settings):
            raise NotConfigured("NEARDUP_ENABLED is False: no page is judged.")
        config = Config.from_settings(crawler.settings)
        return cls(crawler, config, state_url(config))

    def open_spider(self) -> None:
        """Open the state; raises StoreError, which keeps the crawl from starting."""
        config = self._config
        method = config.make_method()
        extractor = page_extractor(config)
        store = open_store(self._store_url, state_recipe(method, extractor))
        who = self._crawler.spider.name if self._crawler.spider else "unknown"
        try:
            detector = Detector(
                method,
                store,
                min_letters=config.min_letters,
                who=who,
                also_copies=config.also_copies,
                keep=config.keep,
            )
        except StoreError:
            close_store(store)
            raise
        self._tell_opening(store)
        source = PageSource(config.fields, config.max_html, extractor)
        feeds = self._feeds if config.commit == "feed" else None
        self._detector = detector
        self._judge = Judge(source, detector, self._notes, config.wait, self._store_failed)
        self._ledger = Ledger(detector, feeds, self._store_failed, self._page_lost)
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
            self._notes.count(stats.OPTED_OUT)
            return item
        assert self._judge is not None
        assert self._ledger is not None
        case = await self._judge.case(item, response)
        verdict = case.verdict
        assert verdict is not None
        action = self._config.action(verdict)
        if action == DROP:
            raise (DuplicatePage if verdict.kind is Kind.DUPLICATE else UnchangedPage)(verdict)
        if case.reservation is not None:
            self._ledger.enter(case)
            ticket.case = case
        if action == TAG:
            self._tag(item, verdict)
        return item

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
        self._notes.count(stats.ROLLED_BACK)

    def _seal(self, ids: list[int]) -> None:
        if self._detector is None or self._is_blind:
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
            self._sum_up(detector)
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
            if not self._notes.is_new("tag"):
                return
            level, consequence = logging.ERROR, "The crawl is closed; items that are on their way pass untagged."
            if self._config.drop:
                level, consequence = logging.WARNING, "Items that NEARDUP_POLICY tags pass untagged."
            logger.log(
                level,
                "Items of class %s cannot be tagged: they have no field %r (%s). Give the class that field (a "
                "scrapy.Item: %s = scrapy.Field()), or name one that it has in NEARDUP_TAG_FIELD. %s",
                type(item).__name__,
                name,
                error,
                name,
                consequence,
            )
            if not self._config.drop:
                self._close_crawl("neardup_no_tag_field")

    # What goes wrong, and what is told.

    @property
    def _is_blind(self) -> bool:
        return self._judge is not None and self._judge.blind

    def _store_failed(self, error: StoreError) -> None:
        self._notes.count(stats.ERRORS)
        if self._judge is not None:
            self._judge.blind = True
        if not self._notes.is_new("store"):
            return
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
            self._config.method,
            "in memory" if store.scheme == "memory" else f"{store.scheme} at {store.location}",
            store.pages,
        )
        back = store.taken_back
        if back.pages:
            self._notes.count(stats.TAKEN_BACK, back.pages)
            logger.warning(
                "%d pages were taken back from the state: the crawl that added them (%s) was killed, or its feed was "
                "not stored. They will be judged anew.",
                back.pages,
                ", ".join(back.crawls) or "unknown",
            )

    def _sum_up(self, detector: Detector) -> None:
        """The closing stats, and one line for people."""
        store, numbers = detector.store, self._notes.stats
        numbers.set_value(stats.TIME_EXTRACTION, round(self._judge.extraction if self._judge else 0.0, 3))
        numbers.set_value(stats.TIME_METHOD, round(detector.spent["method"], 3))
        numbers.set_value(stats.TIME_STORE, round(detector.spent["store"], 3))
        numbers.set_value(stats.STATE_PAGES, store.pages)
        numbers.set_value(stats.STATE_BYTES, store.size())
        unsealed = 0 if self._is_blind else detector.end()
        if unsealed:
            numbers.set_value(stats.UNSEALED, unsealed)
            logger.warning(
                "%d pages are not sealed, as the feed that holds them was not stored. The next crawl takes them back.",
                unsealed,
            )
        logger.info("%s", stats.closing_line(numbers.get_stats()))
