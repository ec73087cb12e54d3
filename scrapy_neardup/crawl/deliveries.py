"""Pages of earlier crawls in feeds that this crawl overwrites: they are known, so they would not come again.

Scrapy overwrites with -O or ``'overwrite': True``, by default on S3, FTP and Google Cloud, and with ``%(batch_id)d``,
which begins at 1 in each crawl. It empties a file at its first item, or at the end if there was none. An upload
replaces the old feed when it is stored.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from scrapy.extensions.feedexport import FeedSlot, FileFeedStorage, GCSFeedStorage, S3FeedStorage, StdoutFeedStorage

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.notes import Notes, Outage
from scrapy_neardup.errors import StoreError
from scrapy_neardup.maintenance.scan import select_within
from scrapy_neardup.maintenance.tables import FEEDS, Delivery
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.untrusted import line_logger

logger = line_logger(__name__)

#: A feed with one of these in its name is never overwritten.
_TIMES = ("%(time)s", "%(batch_time)s")

_WILL_BE_GONE = (
    "This crawl overwrites the feed %s. The %d pages that earlier crawls stored there are known, so they do not come "
    "again. Give each crawl its own feed with %%(time)s. To get these pages again, run scrapy neardup forget "
    "--overwritten after this crawl, or set NEARDUP_OVERWRITTEN = 'forget'. If something else collects the feed, set "
    "it to 'known'."
)
_FORGOTTEN = (
    "This crawl overwrites the feed %s. %d pages that earlier crawls stored there are forgotten, with %d copies of "
    "them, because NEARDUP_OVERWRITTEN is 'forget'."
)


class Deliveries:
    """Keeps in the state which pages are in which feed. It reports a failed state and raises nothing."""

    def __init__(self, store: PageStore, crawl: int, overwritten: str, notes: Notes, outage: Outage) -> None:
        """``crawl`` is smaller than the ids of its pages; ``overwritten``: "warn", "forget" or "known"."""
        self._store = store
        self._crawl = crawl
        self._policy = overwritten
        self._notes = notes
        self._outage = outage
        self._feeds: dict[str, Delivery] = {}
        #: Feeds that this crawl will overwrite, and has not yet.
        self._to_overwrite: set[str] = set()

    def begin(self, slots: Sequence[FeedSlot]) -> None:
        """Scrapy has opened its feeds, and written nothing: warn of pages that will be gone."""
        self._try(lambda: self._begin(slots))

    def overwrite(self, feed: str) -> None:
        """The earlier content of the feed is gone in a moment."""
        if feed in self._to_overwrite:
            self._to_overwrite.remove(feed)
            self._feeds[feed].overwrite(known=self._policy == "known")
            self._try(lambda: self._feeds[feed].write(self._store))

    def store(self, feed: str, pages: tuple[int, int, int]) -> None:
        """Pages of this crawl are in the feed: first id, last id, number. Call it before they are sealed."""
        if feed in self._feeds:
            self._feeds[feed].add(pages, self._crawl)
            self._try(lambda: self._feeds[feed].write(self._store))

    def _begin(self, slots: Sequence[FeedSlot]) -> None:
        earlier = {one.feed: one for one in FEEDS.read(self._store)}
        for slot in slots:
            if isinstance(slot.storage, StdoutFeedStorage) or any(time in slot.uri_template for time in _TIMES):
                continue
            feed = name_of(slot)
            self._feeds[feed] = delivery = earlier.get(feed) or Delivery(feed)
            if not delivery.held:
                continue
            if _was_moved_away(slot):
                delivery.overwrite(known=True)
                delivery.write(self._store)
            elif _overwrites(slot):
                self._to_overwrite.add(feed)
                self._warn(delivery, f"{feed} and its later batches" if "%(batch_id)" in slot.uri_template else feed)

    def _warn(self, delivery: Delivery, name: str) -> None:
        if self._policy == "known":
            return
        pages = sum(many for _, _, many in delivery.held)
        if self._policy == "warn":
            self._notes.count(stats.OVERWRITTEN, pages)
            logger.warning(_WILL_BE_GONE, name, pages)
            return
        found = select_within(self._store, delivery.held)
        self._store.forget(found.ids)
        delivery.overwrite(known=True)
        delivery.write(self._store)
        self._to_overwrite.remove(delivery.feed)
        self._notes.count(stats.OVERWRITTEN, len(found.ids))
        logger.info(_FORGOTTEN, name, len(found.ids) - found.with_originals, found.with_originals)

    def _try(self, work: Callable[[], None]) -> None:
        if not self._outage.happened:
            try:
                work()
            except StoreError as error:
                self._outage.report(error)


def name_of(slot: FeedSlot) -> str:
    """The name of a slot's feed: its whole path, or its URI without password; for batches that of the first one."""
    parts = urlsplit(slot.uri)
    if isinstance(slot.storage, FileFeedStorage) and (parts.scheme == "file" or "://" not in slot.uri):
        return os.path.realpath(slot.storage.path)
    secret, at, _ = parts.netloc.rpartition("@")
    return slot.uri.replace(secret + at, "", 1)


def empties_at_once(slot: FeedSlot) -> bool:
    """Whether opening the feed removes its earlier content; for other feeds storing does."""
    return isinstance(slot.storage, FileFeedStorage)


def _overwrites(slot: FeedSlot) -> bool:
    if isinstance(slot.storage, (S3FeedStorage, GCSFeedStorage)):
        return True
    return bool(slot.feed_options.get("overwrite", not isinstance(slot.storage, FileFeedStorage)))


def _was_moved_away(slot: FeedSlot) -> bool:
    """Whether somebody has collected the file."""
    if not isinstance(slot.storage, FileFeedStorage):
        return False
    path = Path(slot.storage.path)
    return not path.exists() or not path.stat().st_size
