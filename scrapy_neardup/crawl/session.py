"""One crawl: opens the state when the spider opens, and closes it when every feed is stored."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import FeedExporter
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.defer import deferred_from_coro

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.delivery import Delivery
from scrapy_neardup.crawl.judge import AsyncPageReader, Judge, make_page_reader
from scrapy_neardup.crawl.notes import Notes, log_not_requested, log_opening, log_unsealed
from scrapy_neardup.crawl.site_watch import SiteWatch
from scrapy_neardup.errors import SettingsError, StoreError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.recipes import need_lasting_method, state_recipe, take_over
from scrapy_neardup.maintenance.tables import CRAWLS, SITES, Crawl, add_site_drops
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.settings import Config
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.urls import parse_url
from scrapy_neardup.untrusted import line_logger

if TYPE_CHECKING:
    from scrapy_neardup.crawl.server_crawl import ServerCrawl

logger = line_logger(__name__)

#: Seconds between two updates of the stats of time and state.
_PAUSE = 5.0


class Session:
    """The open state of one crawl, and what works on it: ``judge`` and the delivery.

    Making one opens the state; raises SettingsError or StoreError, which keep the crawl from starting.
    """

    def __init__(self, crawler: Crawler, config: Config, store_url: str) -> None:
        self.notes = Notes(crawler.stats, self.close_crawl, config.on_store_error)
        self._crawler = crawler
        self._config = config
        self._who = crawler.spider.name if crawler.spider else "unknown"
        job = "" if config.dry_run else crawler.settings.get("JOBDIR")  # a dry run writes nothing there either
        self._job = str(Path(job).absolute()) if job else ""
        self._is_over = False
        self._server: ServerCrawl | None = None
        self._reader: AsyncPageReader | None = None
        self._detector = self._open_detector(store_url)
        try:
            self._begin()
        except BaseException:
            self._give_up()
            raise

    def close_crawl(self, reason: str) -> None:
        """End the crawl in good order. Scrapy's CloseSpider raised in a pipeline would only be an item's error."""
        deferred_from_coro(self._crawler.engine.close_spider_async(reason=reason))

    def _open_detector(self, store_url: str) -> Detector:
        """A detector on the state, which is open from here on. Raises SettingsError or StoreError."""
        config = self._config
        method = config.make_method()
        need_lasting_method(method, store_url)
        recipe = state_recipe(method, config.make_extractor())
        if config.on_store_error == "wait" and not parse_url(store_url)[0].is_shared:
            raise SettingsError(
                "NEARDUP_ON_STORE_ERROR = 'wait' works only with a state on a server. Set it to 'close' or 'pass'."
            )
        store = open_store(store_url, recipe, secret=config.secret, dry_run=config.dry_run)
        try:
            take_over(store, recipe, config.deciding(method), warn=logger.warning, inform=logger.info)
            return Detector(
                method,
                store,
                who=self._who,
                policy=config.make_policy(),
                job=self._job,
                # A dry run forgets nothing, and on a server ServerCrawl does it.
                bounds=None if config.dry_run or store.is_shared else config.bounds,
                on_expired=partial(self.notes.count, stats.EXPIRED),
            )
        except BaseException:
            close_store(store)
            raise

    def _begin(self) -> None:
        config, detector, notes, connect = self._config, self._detector, self.notes, self._crawler.signals.connect
        store = detector.store
        if store.is_shared:
            from scrapy_neardup.crawl.server_crawl import ServerCrawl  # most crawls do without its modules

            waits = config.on_store_error == "wait"
            self._server = ServerCrawl(detector, notes, waits=waits, bounds=config.bounds)
        self._watch = SiteWatch(notes, {one.site: one for one in SITES.read(store)})
        # On a server crawls run side by side: nobody knows which of them wrote a feed last.
        past = [one for one in CRAWLS.read(store) if not (store.is_shared and one.ended_well)]
        CRAWLS.write(store, Crawl(detector.generation, self._who))
        log_opening(store, config, notes, self._job)
        source = PageSource(config.fields, config.make_reader(), bodies=detector.bodies)
        self._reader = make_page_reader(source, config, notes)
        self.judge = Judge(source, self._reader, detector, notes, self._watch, wait=config.wait, server=self._server)
        exporter = self._crawler.get_extension(FeedExporter) if config.commit == "feed" else None
        known_pages = store.pages if config.overwritten == "warn" and not config.dry_run else 0
        self._delivery = Delivery(self._server or detector, notes, exporter, known_pages, past)
        self._delivery.listen(self._crawler.signals)
        # Scrapy stores the feeds while it handles spider_closed, and the state must stay open until then.
        connect(self._finish, signals.spider_closed if exporter is None else signals.feed_exporter_closed)
        connect(self._finish, signals.engine_stopped)
        self._updates = create_looping_call(self._update_stats)
        self._updates.start(_PAUSE, now=False)

    def _finish(self) -> Coroutine[Any, Any, None] | None:
        """Every feed is stored: sum up, and close the state. The first signal that comes does it."""
        if self._is_over:
            return None
        self._is_over = True
        self._updates.stop()
        self._delivery.close()
        return self._end()

    async def _end(self) -> None:
        """Run each step, even if others fail, and close the state. Nothing uses a state that has failed."""
        try:
            if self._server is not None:
                with self._report_errors():
                    await self._server.close()
            for step in (self._detector.trim, self._set_stats, self._end_generation, self._remember_counts):
                if not self.notes.state_failed or step == self._set_stats:
                    with self._report_errors():
                        step()
            logger.info("%s", stats.closing_line(self.notes.stats.get_stats(), self._config.lang))
        finally:
            self._close()

    @contextmanager
    def _report_errors(self) -> Iterator[None]:
        """Log and count an error at the end of the crawl."""
        try:
            yield
        except StoreError as error:
            self.notes.report(error, is_over=True)
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
        if self._server is not None:
            self._server.give_up()
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

    def _update_stats(self) -> None:
        """Set the stats of time and state while the crawl runs."""
        store = self._detector.store
        # A server is asked by ServerCrawl. All rows in memory would be counted; a dry run changes nothing.
        is_cheap = store.is_persistent and not store.is_shared and store.snapshot is None
        with suppress(StoreError, OSError):  # the next page reports it
            self._set_stats(of_state=is_cheap and not self.notes.state_failed)

    def _set_stats(self, *, of_state: bool = True) -> None:
        numbers, spent, store = self.notes.stats, self._detector.spent, self._detector.store
        numbers.set_value(stats.TIME_EXTRACTION, round(self._reader.spent if self._reader is not None else 0.0, 3))
        numbers.set_value(stats.TIME_METHOD, round(spent["method"], 3))
        numbers.set_value(stats.TIME_STORE, round(spent["store"], 3))
        if of_state:
            pages = store.pages if store.snapshot is None else store.pages_at_opening
            self.notes.set_state(pages, store.kv.size())

    def _end_generation(self) -> None:
        """End the crawl in the state, and warn of pages that were not sealed."""
        store = self._detector.store
        unsealed = self._detector.end()
        if unsealed and store.snapshot is None:
            log_unsealed(unsealed, self._delivery.unstored(), self.notes, self._job)
        if self._job:
            log_not_requested(store, self.notes, self._job, is_over=True)

    def _remember_counts(self) -> None:
        store, now, counts = self._detector.store, int(time()), stats.own_counts(self.notes.stats.get_stats())
        CRAWLS.write(store, Crawl(self._detector.generation, self._who, now, counts))
        add_site_drops(store, self._watch.counts(), now)
