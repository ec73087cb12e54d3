"""What is in the feeds of earlier crawls, and goes when this one overwrites them: it is known, so it would not come.

Scrapy overwrites with -O or 'overwrite': True, by default on S3, FTP and Google Cloud, and with %(batch_id)d, which
begins at 1 in each crawl. A file is emptied at its first item, or at the end if there was none; what is uploaded takes
the place of the old when it is stored.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from scrapy.extensions.feedexport import FeedSlot, FileFeedStorage, GCSFeedStorage, S3FeedStorage, StdoutFeedStorage

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.held import Released
from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.crawl.outage import Outage
from scrapy_neardup.errors import StoreError
from scrapy_neardup.oneline import line_logger
from scrapy_neardup.states.deliveries import Delivery, deliveries, pages_of, remember
from scrapy_neardup.stores import Store

logger = line_logger(__name__)

#: A feed with one of these in its name is never overwritten.
_TIMES = ("%(time)s", "%(batch_time)s")

_WILL_BE_GONE = (
    "This crawl overwrites the feed %s. The %d pages that earlier crawls stored there are known, so they do not come "
    "again and may then be in no feed. Give each crawl its own feed with %%(time)s, or set 'overwrite': False if the "
    "storage can append. To get these pages again, run scrapy neardup forget --overwritten after this crawl, or set "
    "NEARDUP_OVERWRITTEN = 'forget' to do so in each crawl. If something else collects the feed after each crawl, set "
    "it to 'known'."
)
_FORGOTTEN = (
    "This crawl overwrites the feed %s. %d pages that earlier crawls stored there are forgotten, with %d copies of "
    "them, because NEARDUP_OVERWRITTEN is 'forget'. They are judged again."
)


class Deliveries:
    """Keeps in the state what is in which feed; a state that fails is reported, not raised."""

    def __init__(self, store: Store, crawl: int, overwritten: str, notes: Notes, outage: Outage) -> None:
        """``crawl`` is smaller than the ids of its pages; ``overwritten``: "warn", "forget" or "known"."""
        self._store = store
        self._crawl = crawl
        self._then = overwritten
        self._notes = notes
        self._outage = outage
        self._feeds: dict[str, Delivery] = {}
        #: Those of them that will be overwritten, and have not been yet.
        self._doomed: set[str] = set()

    def begin(self, slots: Sequence[FeedSlot]) -> None:
        """Scrapy has opened its feeds, and written nothing: say what will be gone."""
        self._try(lambda: self._begin(slots))

    def overwritten(self, feed: str) -> None:
        """In a moment what the feed held before this crawl is gone."""
        if feed in self._doomed:
            self._doomed.remove(feed)
            self._feeds[feed].overwritten(known=self._then == "known")
            self._try(lambda: remember(self._store, self._feeds[feed]))

    def stored(self, feed: str, held: Released) -> None:
        """Pages of this crawl are in the feed; to be told before they are sealed."""
        if feed in self._feeds:
            self._feeds[feed].stored((held.first, held.last, held.pages), self._crawl)
            self._try(lambda: remember(self._store, self._feeds[feed]))

    def _begin(self, slots: Sequence[FeedSlot]) -> None:
        before = {one.feed: one for one in deliveries(self._store)}
        for slot in slots:
            if isinstance(slot.storage, StdoutFeedStorage) or any(time in slot.uri_template for time in _TIMES):
                continue
            feed = name_of(slot)
            self._feeds[feed] = delivery = before.get(feed) or Delivery(feed)
            if not delivery.held:
                continue
            if _was_taken_away(slot):
                delivery.overwritten(known=True)
                remember(self._store, delivery)
            elif _overwrites(slot):
                self._doomed.add(feed)
                self._tell(delivery, f"{feed} and its later batches" if "%(batch_id)" in slot.uri_template else feed)

    def _tell(self, delivery: Delivery, name: str) -> None:
        if self._then == "known":
            return
        pages = sum(many for _, _, many in delivery.held)
        if self._then == "warn":
            self._notes.count(stats.OVERWRITTEN, pages)
            logger.warning(_WILL_BE_GONE, name, pages)
            return
        found = pages_of(self._store, delivery.held)
        self._store.forget(found.ids)
        delivery.overwritten(known=True)
        remember(self._store, delivery)
        self._doomed.remove(delivery.feed)
        self._notes.count(stats.OVERWRITTEN, len(found.ids))
        logger.info(_FORGOTTEN, name, len(found.ids) - found.with_originals, found.with_originals)

    def _try(self, work: Callable[[], None]) -> None:
        if not self._outage.happened:
            try:
                work()
            except StoreError as error:
                self._outage.report(error)


def name_of(slot: FeedSlot) -> str:
    """The feed that a slot is of: its URI without password, or its whole path; of a feed in batches the first one's."""
    parts = urlsplit(slot.uri)
    if isinstance(slot.storage, FileFeedStorage) and (parts.scheme == "file" or "://" not in slot.uri):
        return os.path.realpath(slot.storage.path)
    secret, at, _ = parts.netloc.rpartition("@")
    return slot.uri.replace(secret + at, "", 1)


def empties_at_once(slot: FeedSlot) -> bool:
    """Whether what was in the feed is gone when it is opened, and not only when it is stored."""
    return isinstance(slot.storage, FileFeedStorage)


def _overwrites(slot: FeedSlot) -> bool:
    if isinstance(slot.storage, (S3FeedStorage, GCSFeedStorage)):
        return True
    return bool(slot.feed_options.get("overwrite", not isinstance(slot.storage, FileFeedStorage)))


def _was_taken_away(slot: FeedSlot) -> bool:
    """Whether somebody has moved the file to where it is wanted."""
    if not isinstance(slot.storage, FileFeedStorage):
        return False
    path = Path(slot.storage.path)
    return not path.exists() or not path.stat().st_size
