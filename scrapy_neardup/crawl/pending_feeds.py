"""Pages that wait for their feeds to be stored."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import urlsplit

import numpy as np
from scrapy.extensions.feedexport import FeedSlot, FileFeedStorage, GCSFeedStorage, S3FeedStorage, StdoutFeedStorage

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.crawl.outage import Outage
from scrapy_neardup.errors import StoreError
from scrapy_neardup.maintenance.tables import Delivery, deliveries, pages_of, remember
from scrapy_neardup.oneline import line_logger
from scrapy_neardup.state.pages import PageStore

# ----------------------------------------------------------------------------------------------------------------------
# The pages that wait for feeds to be stored: nine bytes a page at most, however many feeds take it.


Feed = TypeVar("Feed", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Released:
    """What a stored feed held: how many pages, their first and last id; ``ready``: those that wait for no other."""

    pages: int
    first: int
    last: int
    ready: array[int] = field(default_factory=lambda: array("Q"))


class PagesAwaitingFeeds(Generic[Feed]):
    """Ids of pages, each in one sorted array: that of the pages which wait for the very same feeds.

    Pages that come one after the other wait for the same feeds, so there are as few arrays as feeds are open, not one
    entry a page. An id is the time at which its page was judged, so nearly every one is put at the end.
    """

    def __init__(self) -> None:
        self._ids: dict[frozenset[Feed], array[int]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._ids.values()))

    def add(self, id: int, feeds: frozenset[Feed]) -> None:
        """The page waits for these feeds, and for those that it waits for already."""
        feeds |= self.remove(id)
        ids = self._ids.get(feeds)
        if ids is None:
            ids = self._ids[feeds] = array("Q")
        insort(ids, id)

    def remove(self, id: int) -> frozenset[Feed]:
        """The page waits no more; returns the feeds that it waited for, none if it did not wait."""
        for feeds, ids in self._ids.items():
            at = bisect_left(ids, id)
            if at < len(ids) and ids[at] == id:
                ids.pop(at)
                if not ids:
                    del self._ids[feeds]
                return feeds
        return frozenset()

    def feeds(self) -> set[Feed]:
        """The feeds that pages wait for."""
        return {feed for feeds in self._ids for feed in feeds}

    def waiting_for(self, feed: Feed) -> int:
        """How many pages wait for this feed."""
        return sum(len(ids) for feeds, ids in self._ids.items() if feed in feeds)

    def stored(self, feed: Feed) -> Released:
        """The feed is stored, and no page waits for it any more."""
        held = {feeds: self._ids.pop(feeds) for feeds in list(self._ids) if feed in feeds}
        ready = held.pop(frozenset((feed,)), array("Q"))
        arrays = [ready] * bool(ready) + list(held.values())
        for feeds, ids in held.items():
            rest = feeds - {feed}
            self._ids[rest] = _merged(self._ids.get(rest), ids)
        return Released(
            sum(map(len, arrays)),
            min((ids[0] for ids in arrays), default=0),
            max((ids[-1] for ids in arrays), default=0),
            ready,
        )

    def failed(self, feed: Feed) -> int:
        """The feed will never be stored: hold its pages no longer; returns how many they were."""
        return sum(len(self._ids.pop(feeds)) for feeds in list(self._ids) if feed in feeds)


def _merged(ids: array[int] | None, more: array[int]) -> array[int]:
    """``ids`` with ``more`` sorted in: what lies before all of that is not touched, so a batch costs what it holds."""
    if ids is None:
        return more
    at = bisect_left(ids, more[0])
    if at < len(ids):
        behind = np.concatenate((np.frombuffer(ids[at:], np.uint64), np.frombuffer(more, np.uint64)))
        behind.sort()
        del ids[at:]
        ids.frombytes(behind.tobytes())
    else:
        ids.extend(more)
    return ids


# ----------------------------------------------------------------------------------------------------------------------
# What is in the feeds of earlier crawls, and goes when this one overwrites them: it is known, so it would not come.
#
# Scrapy overwrites with -O or 'overwrite': True, by default on S3, FTP and Google Cloud, and with %(batch_id)d, which
# begins at 1 in each crawl. A file is emptied at its first item, or at the end if there was none; what is uploaded
# takes the place of the old when it is stored.


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

    def __init__(self, store: PageStore, crawl: int, overwritten: str, notes: Notes, outage: Outage) -> None:
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
