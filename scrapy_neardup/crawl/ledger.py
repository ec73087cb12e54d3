"""The ledger: a page is committed once its items came through all pipelines, and sealed once its feeds are stored.

A committed page counts as seen. A sealed page counts permanently, also after a kill.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import partial
from typing import Any

from scrapy import Spider, signals
from scrapy.extensions.feedexport import FeedExporter
from scrapy.signalmanager import SignalManager

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.feeds import Feed, FeedWatch, NotWritten
from scrapy_neardup.crawl.notes import Notes, Outage
from scrapy_neardup.crawl.visits import End, JudgedPage, ResponseItems, end_ticket
from scrapy_neardup.errors import StoreError
from scrapy_neardup.judge.in_flight import Outcomes
from scrapy_neardup.untrusted import line_logger

logger = line_logger(__name__)

_OVERWRITES = (
    "This crawl overwrites the feed %s. The state knows %d pages, and those that earlier crawls delivered do not come "
    "again. Give each crawl its own feed with %%(time)s. If each feed is to hold everything, set NEARDUP_STORE = "
    "'memory:'. If something else collects the feed, or another placeholder names it anew for each crawl, set "
    "NEARDUP_OVERWRITTEN = 'known'."
)


class Ledger:
    """Follows each item to its end, then commits, rolls back or seals the page of the item.

    It reports a StoreError to the outage instead of raising it.
    """

    def __init__(
        self,
        detector: Outcomes,
        notes: Notes,
        outage: Outage,
        exporter: FeedExporter | None = None,
        known_pages: int = 0,
    ) -> None:
        """``exporter``: writes the feeds that pages wait for. Without it pages wait for no feed.

        ``known_pages``: if the state knows pages, a feed that this crawl overwrites causes a warning.
        """
        self.feeds = FeedWatch(exporter, self._seal)
        self._known_pages = known_pages
        self._detector = detector
        self._notes = notes
        self._outage = outage
        self._is_closed = False

    def listen(self, manager: SignalManager) -> None:
        """Connect to Scrapy's signals.

        Scrapy sends the signals of an item in the context of its pipelines. So ``end_ticket`` finds its ticket in a
        context variable.
        """
        manager.connect(self._feeds_opened, signals.spider_opened)  # connected last, so the feeds are open
        manager.connect(self._item_scraped, signals.item_scraped)
        manager.connect(self._item_dropped, signals.item_dropped)
        manager.connect(self._item_error, signals.item_error)

    def close(self) -> None:
        """Leave the state alone from now on."""
        self._is_closed = True

    def _feeds_opened(self) -> None:
        overwritten = self.feeds.begin()
        for feed in overwritten if self._known_pages else ():
            self._notes.count(stats.OVERWRITTEN)
            logger.warning(_OVERWRITES, feed, self._known_pages)

    def _item_scraped(self, item: Any, spider: Spider) -> None:
        try:
            feeds = self.feeds.export(item, spider)  # in place of Scrapy's exporter, to learn which feeds took it
        except NotWritten as error:  # raised further, Scrapy would blame this package
            cause = error.__cause__
            logger.error(
                "The feed %s could not write an item (%s: %s). Its page does not count and is judged again when it "
                "comes again; other feeds then have it twice. Check the feed, or what it cannot write in such items.",
                error,
                type(cause).__name__,
                cause,
                exc_info=cause if self._notes.mark_logged("feed") else None,
            )
            self._end_item(End.FAILED)
        else:
            self._end_item(End.SCRAPED, feeds)

    def _item_dropped(self) -> None:
        self._end_item(End.DROPPED)

    def _item_error(self) -> None:
        self._end_item(End.FAILED)

    def _end_item(self, end: End, feeds: Set[Feed] = frozenset()) -> None:
        ticket = end_ticket()
        if ticket is None:
            return
        if ticket.page is not None and not self._is_closed:
            self.end(ticket.page, end, feeds)
        ticket.visit.items.end_item()

    def end(self, page: JudgedPage, end: End, feeds: Set[Feed] = frozenset()) -> None:
        """Note that an item of a page ended, and which feeds wrote it.

        The page is settled once none of its items is in the pipelines. It is committed if one came through and none
        failed. Otherwise it is rolled back, even if it was committed for earlier items.
        """
        page.in_pipelines -= 1
        page.is_scraped |= end is End.SCRAPED
        page.is_failed |= end is End.FAILED
        items = page.response_items
        if items is not None and not items.is_last:  # more items of the response may share the page
            feeds = feeds | {self._rest(items)}
        earlier, page.feeds = page.feeds, page.feeds | feeds
        try:
            self._settle(page, feeds, earlier)
        except StoreError as error:
            self._outage.report(error)

    def _settle(self, page: JudgedPage, feeds: Set[Feed], earlier: Set[Feed]) -> None:
        reservation = page.reservation
        if reservation is None or page.is_lost:
            return
        id = reservation.record.id
        if page.is_committed and feeds:
            self.feeds.add(id, feeds, earlier)
        if page.in_pipelines:
            return
        if page.is_failed or not page.is_scraped:
            page.is_lost = True
            self._notes.count(stats.ROLLED_BACK)
            if page.is_committed:
                self.feeds.remove(id)
                self._detector.roll_back(id)
            else:
                self._detector.release(reservation)
        elif not page.is_committed:
            page.is_committed = True
            self._detector.commit(reservation, sealed=not page.feeds)
            if page.feeds:
                self.feeds.add(id, page.feeds)

    def _rest(self, items: ResponseItems) -> Feed:
        """Return a feed that stands for the rest of a response: it counts as stored once the response is over."""
        if items.rest is None:
            items.rest = Feed(None, "")
            items.on_over = partial(self.feeds.mark_stored, items.rest)
        return items.rest

    def _seal(self, ids: Sequence[int]) -> None:
        if not self._is_closed:
            self._outage.attempt(lambda: self._detector.seal(ids))
