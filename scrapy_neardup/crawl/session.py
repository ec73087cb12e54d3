"""One crawl: opens the state when the spider opens, and closes it at the end."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.signalmanager import SignalManager
from scrapy.utils.defer import deferred_from_coro

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.drop_watch import DropWatch
from scrapy_neardup.crawl.dropped import DroppedFeed
from scrapy_neardup.crawl.feeds import Feed, FeedWatch, NotWritten, take_over_feeds
from scrapy_neardup.crawl.judge import Judge
from scrapy_neardup.crawl.ledger import End, Ledger
from scrapy_neardup.crawl.messages import tell_of_job, tell_opening, tell_unstored
from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.crawl.outage import Outage
from scrapy_neardup.crawl.pending_feeds import Deliveries
from scrapy_neardup.crawl.state_location import page_extractor
from scrapy_neardup.crawl.tagging import Tagger
from scrapy_neardup.crawl.tickets import account_at_the_end, coming_at_the_end
from scrapy_neardup.crawl.turns import AsyncPageReader, make_page_reader
from scrapy_neardup.errors import SettingsError, StoreError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.former import check_tools, state_recipe, take_over
from scrapy_neardup.maintenance.tables import Crawl, add_site_drops, remember_crawl, site_drops
from scrapy_neardup.oneline import line_logger
from scrapy_neardup.page.extraction import Extractor
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.settings import Config
from scrapy_neardup.state.opening import close_store, open_store, parse_url
from scrapy_neardup.state.transaction import Overlay

if TYPE_CHECKING:
    from scrapy_neardup.crawl.server_crawl import Sharing
    from scrapy_neardup.judge.remote_crawl import SharedCrawl


# ----------------------------------------------------------------------------------------------------------------------
# The opening of the state for a crawl: by its settings, and as they were when the state was written.


logger = line_logger(__name__)


def opened_detector(
    config: Config,
    store_url: str,
    extractor: Extractor | None,
    who: str,
    job: str,
    on_expired: Callable[[int], None],
) -> Detector:
    """A detector on the state, which is open from here on. Raises SettingsError or StoreError.

    ``who`` names the crawl; ``job`` and ``on_expired``: see ``Detector``.
    """
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
            # A dry run forgets nothing, and on a server that is done beside the judging.
            bounds=None if config.dry_run or store.is_shared else config.bounds,
            on_expired=on_expired,
        )
    except BaseException:
        close_store(store)
        raise


# ----------------------------------------------------------------------------------------------------------------------
# One crawl on its state, from the opening of the spider until every feed is stored.


async def opened_session(crawler: Crawler, config: Config, store_url: str) -> Session:
    """A session on a server that is waited for if it is gone: where NEARDUP_ON_STORE_ERROR is 'wait'."""
    from scrapy_neardup.crawl.server_crawl import until_it_answers

    await until_it_answers(store_url, Notes(crawler.stats))
    return Session(crawler, config, store_url)


class Session:
    """What the pipeline works with while a spider is open: ``judge`` and ``tagger``, and the ends of items followed.

    Making one opens the state; raises StoreError, which keeps the crawl from starting.
    """

    def __init__(self, crawler: Crawler, config: Config, store_url: str) -> None:
        self.notes = Notes(crawler.stats)
        dropped = {} if config.dry_run else config.dropped_feed
        self._dropped_feed = DroppedFeed(crawler, dropped, config.tag_field, self.notes) if dropped else None
        close_crawl = partial(_close_crawl, crawler)
        self._outage = Outage(
            self.notes, close_crawl if config.on_store_error == "close" else None, config.on_store_error
        )
        extractor = page_extractor(config)
        who = crawler.spider.name if crawler.spider else "unknown"
        job = "" if config.dry_run else crawler.settings.get("JOBDIR")  # where nothing is to be written either
        self._job = str(Path(job).absolute()) if job else ""
        on_expired = partial(self.notes.count, stats.EXPIRED)
        self._detector = opened_detector(config, store_url, extractor, who, self._job, on_expired)
        self._is_over = False
        self._sharing: Sharing | None = None
        self._aside: AsyncPageReader | None = None
        self._who = who
        self._language = config.lang
        try:
            self._begin(crawler, config, extractor)
        except BaseException:
            self._give_up()
            raise

    def _begin(self, crawler: Crawler, config: Config, extractor: Extractor | None) -> None:
        """All that needs the open state."""
        store = self._detector.store
        self._sharing = self._made_sharing(config)
        shared = self._sharing.crawl if self._sharing is not None else None
        self._watch = DropWatch(self.notes, {one.site: one for one in site_drops(store)})
        self._remember_crawl()
        tell_opening(store, config, self.notes, self._job)
        self._aside, self.judge = self._made_judge(config, extractor, shared)
        self.tagger = Tagger(config.tag_field, self.notes, partial(_close_crawl, crawler) if config.tags_all else None)
        exporter = take_over_feeds(crawler) if config.commit == "feed" else None
        deliveries = None
        if exporter is not None and store.lasts:
            deliveries = Deliveries(store, store.new_id(), config.overwritten, self.notes, self._outage)
        self._feeds = FeedWatch(exporter, self._seal, deliveries)
        lost = partial(self.notes.count, stats.ROLLED_BACK)
        self._keeper: Detector | SharedCrawl = self._detector if shared is None else shared
        self._ledger = Ledger(self._keeper, self._feeds, self._outage, lost)
        # The state must outlive the feeds: they are stored while spider_closed is handled.
        self._listen(crawler.signals, signals.spider_closed if exporter is None else signals.feed_exporter_closed)

    def _made_judge(
        self, config: Config, extractor: Extractor | None, shared: SharedCrawl | None
    ) -> tuple[AsyncPageReader, Judge]:
        """What reads pages beside the crawl, and what judges them."""
        source = PageSource(
            config.fields,
            config.max_html,
            extractor,
            max_text=config.max_text,
            is_unchanged=self._detector.is_unchanged if shared is None else _asked_aside,
            bodies=self._detector.bodies,
        )
        hashes = self._detector.store.hashes if shared is None else None
        is_unchanged = shared.is_unchanged if shared is not None else None
        aside = make_page_reader(source, config, self.notes, hashes=hashes, is_unchanged=is_unchanged)
        judge = Judge(
            source,
            self._detector,
            self.notes,
            self._outage,
            config.wait,
            listings=config.listings,
            watch=self._watch,
            aside=aside,
            shared=shared,
        )
        return aside, judge

    def _listen(self, sent: SignalManager, stored: object) -> None:
        """To what becomes of items and feeds; ``stored``: the signal by which every feed is stored."""
        sent.connect(self._feeds.opened, signals.spider_opened)  # behind Scrapy's own feeds, which it opens as well
        sent.connect(self._item_scraped, signals.item_scraped)
        sent.connect(self._item_dropped, signals.item_dropped)
        sent.connect(self._item_error, signals.item_error)
        sent.connect(self._finish, stored)
        sent.connect(self._finish, signals.engine_stopped)

    def _made_sharing(self, config: Config) -> Sharing | None:
        """What the crawl has beside the detector where its state is on a server; modules that others do without."""
        if not self._detector.store.is_shared:
            return None
        from scrapy_neardup.crawl.server_crawl import Sharing

        return Sharing(
            self._detector,
            self.notes,
            waits=config.on_store_error == "wait",
            bounds=config.bounds,
            on_error=self._outage.report,
        )

    # Signals, each handled in the context of its item.

    def _item_scraped(self, item: Any, spider: Spider) -> None:
        try:
            feeds = self._feeds.export(item, spider)
        except NotWritten as error:  # Scrapy would tell it as an error of ours
            cause = error.__cause__
            logger.error(
                "The feed %s could not write an item (%s: %s). Its page does not count and is judged again when it "
                "comes again%s. Check the feed, or what it cannot write in such items.",
                error.feed,
                type(cause).__name__,
                cause,
                f"; {', '.join(sorted(error.others))} has it already and then has it twice" * bool(error.others),
                exc_info=cause if self.notes.is_new("feed") else None,
            )
            self._item_ended(End.FAILED)
        else:
            self._item_ended(End.SCRAPED, feeds)

    def _item_dropped(self) -> None:
        self._item_ended(End.DROPPED)

    def _item_error(self) -> None:
        self._item_ended(End.FAILED)

    def _item_ended(self, end: End, feeds: Set[Feed] = frozenset()) -> None:
        account = account_at_the_end()
        if account is not None and not self._is_over:
            self._ledger.ended(account, end, feeds)
        if (coming := coming_at_the_end()) is not None:
            coming.item_ended()

    def _seal(self, ids: Sequence[int]) -> None:
        if self._outage.happened or self._is_over:
            return
        try:
            self._keeper.seal(ids)
        except StoreError as error:
            self._outage.report(error)

    def _finish(self) -> Coroutine[Any, Any, None] | None:
        """Every feed is stored: seal, sum up, close the state. The first signal that comes does it."""
        if self._is_over:
            return None
        self._is_over = True
        if self._sharing is None:
            self._end()
            return None
        return self._end_shared(self._sharing)

    async def _end_shared(self, sharing: Sharing) -> None:
        try:
            with self._reported():
                await sharing.close()
        finally:
            self._end()

    def _end(self) -> None:
        """Each step runs, whatever becomes of the others; a state that has failed is left alone."""
        count = self._count_at_the_end
        try:
            for step in (self._detector.trim, count, self._end_generation, self._remember_end):
                if step == count or not self._outage.happened:
                    with self._reported():
                        step()
            logger.info("%s", stats.closing_line(self.notes.stats.get_stats(), self._language))
        finally:
            self._close()

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """An error within, at the end of the crawl, is logged and counted, and goes no further."""
        try:
            yield
        except StoreError as error:
            self._outage.report_at_the_end(error)
        except Exception as error:
            self.notes.count(stats.ERRORS)
            logger.exception(
                "A step at the end of the crawl failed (%s: %s). The other steps are done, and the state is closed.",
                type(error).__name__,
                error,
            )

    def _give_up(self) -> None:
        """The crawl does not begin: let go of all that was opened."""
        self._is_over = True
        if self._sharing is not None:
            self._sharing.give_up()
        with suppress(Exception):  # the one that is raised says why
            self._detector.end()
        self._close()

    def _close(self) -> None:
        """Let go of the processes that read pages, and of the state with its lock."""
        with self._reported():
            if self._aside is not None:
                self._aside.close()
        with self._reported():
            close_store(self._detector.store)

    def _count_at_the_end(self) -> None:
        """The closing stats."""
        store, numbers, spent = self._detector.store, self.notes.stats, self._detector.spent
        numbers.set_value(stats.TIME_EXTRACTION, round(self.judge.extraction, 3))
        numbers.set_value(stats.TIME_METHOD, round(spent["method"], 3))
        numbers.set_value(stats.TIME_STORE, round(spent["store"], 3))
        numbers.set_value(stats.STATE_PAGES, store.pages_found if isinstance(store, Overlay) else store.pages)
        numbers.set_value(stats.STATE_BYTES, store.size())

    def _end_generation(self) -> None:
        """The crawl is over; say which pages were not sealed."""
        store = self._detector.store
        unsealed = self._detector.end()
        if unsealed and not isinstance(store, Overlay):
            tell_unstored(unsealed, self._feeds.not_stored(), self.notes, self._job)
        if self._job:
            tell_of_job(store, self.notes, self._job, is_over=True)

    def _remember_end(self) -> None:
        now = int(time())
        self._remember_crawl(now)
        add_site_drops(self._detector.store, self._watch.counted(), now)

    def _remember_crawl(self, ended: int = 0) -> None:
        counts = stats.own_counts(self.notes.stats.get_stats()) if ended else {}
        remember_crawl(self._detector.store, Crawl(self._detector.generation, self._who, ended, counts))


def _asked_aside(url: str, mark: int) -> bool:
    """Nothing is known yet of a page that may take long: the server is asked for it later, and nobody is held up."""
    return False


def _close_crawl(crawler: Crawler, reason: str) -> None:
    """End the crawl in good order; Scrapy's CloseSpider is no more than an item's error in a pipeline."""
    deferred_from_coro(crawler.engine.close_spider_async(reason=reason))
