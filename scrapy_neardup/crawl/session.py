"""One crawl: opens the state when the spider opens, and closes it when every feed is stored."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.deliveries import Deliveries
from scrapy_neardup.crawl.extra_feeds import DroppedFeed
from scrapy_neardup.crawl.feeds import take_over_feeds
from scrapy_neardup.crawl.judge import Judge
from scrapy_neardup.crawl.ledger import Ledger
from scrapy_neardup.crawl.notes import Notes, Outage, log_not_requested, log_opening, log_unsealed
from scrapy_neardup.crawl.site_watch import DropWatch
from scrapy_neardup.crawl.tagging import Tagger
from scrapy_neardup.crawl.turns import AsyncPageReader, make_page_reader
from scrapy_neardup.errors import SettingsError, StoreError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.former import check_tools, state_recipe, take_over
from scrapy_neardup.maintenance.tables import CRAWLS, SITES, Crawl, add_site_drops
from scrapy_neardup.page.extraction import Extractor
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.settings import Config
from scrapy_neardup.state.opening import close_store, open_store, parse_url
from scrapy_neardup.untrusted import line_logger

if TYPE_CHECKING:
    from scrapy_neardup.crawl.server_crawl import ServerCrawl

logger = line_logger(__name__)


class Session:
    """The open state of one crawl, and what works on it: ``judge``, ``tagger`` and the ledger.

    Making one opens the state; raises SettingsError or StoreError, which keep the crawl from starting.
    """

    def __init__(self, crawler: Crawler, config: Config, store_url: str) -> None:
        self.notes = Notes(crawler.stats)
        dropped = {} if config.dry_run else config.dropped_feed
        self._dropped_feed = DroppedFeed(crawler, dropped, config.tag_field, self.notes) if dropped else None
        close_crawl = partial(_close_crawl, crawler)
        self._outage = Outage(
            self.notes, close_crawl if config.on_store_error == "close" else None, config.on_store_error
        )
        extractor = config.make_extractor()
        self._spider_name = crawler.spider.name if crawler.spider else "unknown"
        job = "" if config.dry_run else crawler.settings.get("JOBDIR")  # a dry run writes nothing there either
        self._job = str(Path(job).absolute()) if job else ""
        self._language = config.lang
        self._is_over = False
        self._sharing: ServerCrawl | None = None
        self._reader: AsyncPageReader | None = None
        on_expired = partial(self.notes.count, stats.EXPIRED)
        self._detector = _open_detector(config, store_url, extractor, self._spider_name, self._job, on_expired)
        try:
            self._begin(crawler, config, extractor, close_crawl)
        except BaseException:
            self._give_up()
            raise

    def _begin(
        self, crawler: Crawler, config: Config, extractor: Extractor | None, close_crawl: Callable[[str], None]
    ) -> None:
        store = self._detector.store
        if store.is_shared:
            from scrapy_neardup.crawl.server_crawl import ServerCrawl  # most crawls do without its modules

            self._sharing = ServerCrawl(
                self._detector,
                self.notes,
                waits=config.on_store_error == "wait",
                bounds=config.bounds,
                on_error=self._outage.report,
            )
        shared = self._sharing.crawl if self._sharing is not None else None
        self._watch = DropWatch(self.notes, {one.site: one for one in SITES.read(store)})
        self._remember_crawl()
        log_opening(store, config, self.notes, self._job)
        source = PageSource(
            config.fields,
            config.max_html,
            extractor,
            max_text=config.max_text,
            # Asking a server takes time, so the reader does that later.
            is_unchanged=self._detector.is_unchanged if shared is None else lambda url, mark: False,
            bodies=self._detector.bodies,
        )
        self._reader = make_page_reader(
            source,
            config,
            self.notes,
            hashes=store.hashes if shared is None else None,
            is_unchanged=shared.is_unchanged if shared is not None else None,
        )
        self.judge = Judge(
            source,
            self._reader,
            self._detector,
            self.notes,
            self._outage,
            wait=config.wait,
            listings=config.listings,
            watch=self._watch,
            server=shared,
        )
        self.tagger = Tagger(config.tag_field, self.notes, close_crawl if config.tags_all else None)
        exporter = take_over_feeds(crawler) if config.commit == "feed" else None
        deliveries = None
        if exporter is not None and store.lasts:
            deliveries = Deliveries(store, store.new_id(), config.overwritten, self.notes, self._outage)
        self._ledger = Ledger(
            self._detector if shared is None else shared, self.notes, self._outage, exporter, deliveries
        )
        self._ledger.listen(crawler.signals)
        # Scrapy stores the feeds while it handles spider_closed, and the state must stay open until then.
        stored = signals.spider_closed if exporter is None else signals.feed_exporter_closed
        crawler.signals.connect(self._finish, stored)
        crawler.signals.connect(self._finish, signals.engine_stopped)

    def _finish(self) -> Coroutine[Any, Any, None] | None:
        """Every feed is stored: sum up, and close the state. The first signal that comes does it."""
        if self._is_over:
            return None
        self._is_over = True
        self._ledger.close()
        if self._sharing is not None:
            return self._end_shared(self._sharing)
        self._end()
        return None

    async def _end_shared(self, sharing: ServerCrawl) -> None:
        try:
            with self._report_errors():
                await sharing.close()
        finally:
            self._end()

    def _end(self) -> None:
        """Run each step, even if others fail, and close the state."""
        try:
            self._run(self._detector.trim)
            with self._report_errors():
                self._set_closing_stats()
            self._run(self._end_generation)
            self._run(self._remember_end)
            logger.info("%s", stats.closing_line(self.notes.stats.get_stats(), self._language))
        finally:
            self._close()

    def _run(self, step: Callable[[], object]) -> None:
        """Run a step that uses the state, unless the state has failed."""
        if not self._outage.happened:
            with self._report_errors():
                step()

    @contextmanager
    def _report_errors(self) -> Iterator[None]:
        """Log and count an error at the end of the crawl."""
        try:
            yield
        except StoreError as error:
            self._outage.report_at_end(error)
        except Exception as error:
            self.notes.count(stats.ERRORS)
            logger.exception(
                "A step at the end of the crawl failed (%s: %s). The other steps are done, and the state is closed.",
                type(error).__name__,
                error,
            )

    def _give_up(self) -> None:
        """The crawl does not begin: close everything that was opened."""
        self._is_over = True
        if self._sharing is not None:
            self._sharing.give_up()
        with suppress(Exception):  # the original error says why
            self._detector.end()
        self._close()

    def _close(self) -> None:
        """Close the processes that read pages, and the state with its lock."""
        with self._report_errors():
            if self._reader is not None:
                self._reader.close()
        with self._report_errors():
            close_store(self._detector.store)

    def _set_closing_stats(self) -> None:
        store, numbers, spent = self._detector.store, self.notes.stats, self._detector.spent
        numbers.set_value(stats.TIME_EXTRACTION, round(self.judge.extraction, 3))
        numbers.set_value(stats.TIME_METHOD, round(spent["method"], 3))
        numbers.set_value(stats.TIME_STORE, round(spent["store"], 3))
        numbers.set_value(stats.STATE_PAGES, store.pages if store.snapshot is None else store.snapshot.pages)
        numbers.set_value(stats.STATE_BYTES, store.size())

    def _end_generation(self) -> None:
        """End the crawl in the state, and warn of pages that were not sealed."""
        store = self._detector.store
        unsealed = self._detector.end()
        if unsealed and store.snapshot is None:
            log_unsealed(unsealed, self._ledger.feeds.unstored(), self.notes, self._job)
        if self._job:
            log_not_requested(store, self.notes, self._job, is_over=True)

    def _remember_end(self) -> None:
        now = int(time())
        self._remember_crawl(now)
        add_site_drops(self._detector.store, self._watch.counts(), now)

    def _remember_crawl(self, ended: int = 0) -> None:
        counts = stats.own_counts(self.notes.stats.get_stats()) if ended else {}
        CRAWLS.write(self._detector.store, Crawl(self._detector.generation, self._spider_name, ended, counts))


def _open_detector(
    config: Config,
    store_url: str,
    extractor: Extractor | None,
    who: str,
    job: str,
    on_expired: Callable[[int], None],
) -> Detector:
    """A detector on the state, which is open from here on. Raises SettingsError or StoreError."""
    method = config.make_method()
    recipe = state_recipe(method, extractor)
    if parse_url(store_url)[0].is_shared:
        from scrapy_neardup.crawl.server_crawl import need_asyncio

        need_asyncio()
    elif config.on_store_error == "wait":
        raise SettingsError(
            "NEARDUP_ON_STORE_ERROR = 'wait' works only with a state on a server. Set it to 'close' or 'pass'."
        )
    store = open_store(
        store_url, recipe, secret=config.secret, dry_run=bool(config.dry_run), options=config.store_options
    )
    try:
        check_tools(store, strict=config.strict, say=logger.warning)
        if changed := take_over(store, recipe, config.deciding(method)):
            logger.info("The state at %s %s.", store.location, changed)
        return Detector(
            method,
            store,
            who=who,
            policy=config.make_policy(),
            job=job,
            # A dry run forgets nothing, and on a server ServerCrawl does it.
            bounds=None if config.dry_run or store.is_shared else config.bounds,
            on_expired=on_expired,
        )
    except BaseException:
        close_store(store)
        raise


def _close_crawl(crawler: Crawler, reason: str) -> None:
    """End the crawl in good order. Scrapy's CloseSpider raised in a pipeline would only be an item's error."""
    deferred_from_coro(crawler.engine.close_spider_async(reason=reason))
