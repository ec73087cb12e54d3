"""Scrapy's feeds: which pages wait for them, which feeds this crawl overwrites, and which a dry run leaves out.

A page is sealed when every feed with an item of it is stored. The state also remembers which pages are in which feed:
if a later crawl overwrites a feed, these pages are known, so they would not come again.
"""

from __future__ import annotations

import errno
import inspect
import os
from array import array
from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import (
    FeedExporter,
    FeedSlot,
    FileFeedStorage,
    GCSFeedStorage,
    S3FeedStorage,
    StdoutFeedStorage,
)
from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.utils.project import get_project_settings
from twisted.internet.defer import Deferred

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.notes import Notes, Outage
from scrapy_neardup.kv.base import without_password
from scrapy_neardup.maintenance.scan import select_within
from scrapy_neardup.maintenance.tables import FEEDS, Delivery, Span
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.untrusted import line_logger

logger = line_logger(__name__)

#: Errors of files that cannot be synced: pipes, standard output, some network file systems.
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EROFS)
#: Formats with an item on each line. In CSV a broken quoted field would swallow whatever follows it.
_LINES = ("jsonlines", "jsonl", "jl")
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


@dataclass(eq=False, slots=True)
class Feed:
    """One file of a feed (a batch of it).

    ``name``: the same for all batches; empty for a stand-in that is no feed of Scrapy's.
    """

    slot: FeedSlot | None
    name: str
    is_stored: bool = False
    is_failed: bool = False


class NotWritten(Exception):
    """The feed of this name could not write an item, for the cause of this."""


def take_over_feeds(crawler: Crawler) -> FeedExporter | None:
    """Scrapy's feed exports, if the crawl has any. From now on only ``FeedWatch`` gives them items.

    Scrapy swallows what they raise on ``item_scraped``: nobody would know whether an item was written.
    """
    exporter = crawler.get_extension(FeedExporter)
    if exporter is not None:
        crawler.signals.disconnect(exporter.item_scraped, signals.item_scraped)
    return exporter


def leave_out_feeds(crawler: Crawler) -> None:
    """For a dry run: open only the feeds of the command line, and log the others.

    With ``-o`` and ``-O`` Scrapy adds the feeds of the project to those of the command line.
    """
    exporter, settings = crawler.get_extension(FeedExporter), crawler.settings
    if exporter is None:
        return
    left_out = list(exporter.feeds)
    if settings["FEEDS"].maxpriority() >= SETTINGS_PRIORITIES["cmdline"]:
        of_settings = (*get_project_settings().getdict("FEEDS"), settings["FEED_URI"] or "")
        names = {str(uri.absolute()) if isinstance(uri, Path) else str(uri) for uri in of_settings}
        left_out = [uri for uri in left_out if uri in names]
    for uri in left_out:
        del exporter.feeds[uri]
    if left_out:
        logger.warning(
            "Dry run: the feeds of the settings are not written (%s). To get the items, name a file on the command "
            "line, for example -O dry.jsonl.",
            ", ".join(map(without_password, left_out)),
        )


class FeedWatch:
    """Gives items to Scrapy's feeds, and seals pages as feeds (or batches of them) are stored.

    Scrapy sends ``feed_slot_closed`` whether storing worked or not, so this wraps the storages themselves.
    """

    def __init__(
        self, exporter: FeedExporter | None, seal: Callable[[Sequence[int]], None], deliveries: Deliveries | None = None
    ) -> None:
        """``seal`` gets the ids of pages whose feeds are all stored. ``deliveries`` hears of stored feeds before."""
        self._exporter = exporter
        self._seal = seal
        self._deliveries = deliveries
        #: Those that Scrapy writes to at this moment.
        self._open: list[Feed] = []
        self._waiting: PagesAwaitingFeeds[Feed] = PagesAwaitingFeeds()
        self._names: dict[str, str] = {}
        self._failed: set[str] = set()

    def begin(self) -> None:
        """Scrapy has opened its feeds: warn of content that it will overwrite before an item comes."""
        if self._exporter is not None:
            self._open = [self._feed(slot) for slot in self._exporter.slots]
            if self._deliveries is not None:
                self._deliveries.begin(self._exporter.slots)

    def export(self, item: Any, spider: Spider) -> Set[Feed]:
        """Have every feed that takes the item write it; returns these, some of which may be stored by now.

        Each feed gets it separately, so that a feed that fails does not keep it from the next. When all have had their
        turn, raises NotWritten for the first that failed.
        """
        if (exporter := self._exporter) is None:
            return frozenset()
        self._open = [self._feed(slot) for slot in exporter.slots]
        writers: set[Feed] = set()
        slots: list[FeedSlot] = []
        failure: tuple[Feed, Exception] | None = None
        for feed, slot in zip(self._open, exporter.slots, strict=True):
            count, exporter.slots = slot.itemcount, [slot]
            try:
                exporter.item_scraped(item, spider)
            except Exception as error:  # whatever a feed raises
                failure = failure or (feed, error)
            if slot.itemcount > count:
                writers.add(feed)
            slots += exporter.slots
        exporter.slots = slots
        if failure:
            raise NotWritten(failure[0].name) from failure[1]
        return writers

    def add(self, id: int, feeds: Set[Feed], earlier: Set[Feed] = frozenset()) -> None:
        """Seal the page once all these feeds are stored, and those with ``earlier`` items of it."""
        for feed in feeds:
            if feed.is_stored:
                self._deliver(feed, (id, id, 1))
        waiting = frozenset(feed for feed in feeds | earlier if not feed.is_stored)
        if not waiting:
            self._seal([id])
        elif any(feed.is_failed for feed in waiting):
            self._waiting.remove(id)
        else:
            self._waiting.add(id, waiting)

    def remove(self, id: int) -> None:
        """The page was rolled back."""
        self._waiting.remove(id)

    def unstored(self) -> list[str]:
        """The names of feeds that were not stored, once all feeds are closed."""
        return sorted({*self._failed, *(feed.name for feed in self._waiting.feeds())} - {""})

    def mark_stored(self, feed: Feed) -> None:
        """The feed is stored: seal the pages that waited only for it."""
        feed.is_stored = True
        pages, ready = self._waiting.store(feed)
        if pages is not None:
            self._deliver(feed, pages)
        if ready:
            self._seal(ready)

    def _mark_failed(self, feed: Feed) -> None:
        feed.is_failed = True
        self._failed.add(feed.name)
        self._waiting.forget(feed)

    def _deliver(self, feed: Feed, pages: Span) -> None:
        if self._deliveries is not None:
            self._deliveries.store(feed.name, pages)

    def _feed(self, slot: FeedSlot) -> Feed:
        for known in self._open:
            if known.slot is slot:
                return known
        feed = Feed(slot, self._names.setdefault(slot.uri_template, name_of(slot)))
        self._wrap_storage(feed, slot)
        return feed

    def _wrap_storage(self, feed: Feed, slot: FeedSlot) -> None:
        storage = slot.storage
        open_file, store_file = storage.open, storage.store
        is_emptied_at_once = isinstance(storage, FileFeedStorage)  # other feeds are replaced when they are stored

        def overwrite() -> None:
            if self._deliveries is not None:
                self._deliveries.overwrite(feed.name)

        def open_and_watch(spider: Spider) -> Any:
            if is_emptied_at_once:
                overwrite()
            _end_torn_line(slot)
            return open_file(spider)

        def store_and_watch(file: Any) -> Any:
            with self._failures_of(feed):
                _sync(file)
                if not is_emptied_at_once:
                    overwrite()
                result: Any = store_file(file)
            if isinstance(result, Deferred):
                return result.addCallbacks(stored, failed)
            return wait(result) if inspect.isawaitable(result) else stored(result)

        async def wait(result: Any) -> Any:
            with self._failures_of(feed):
                return stored(await result)

        def stored(result: Any) -> Any:
            self.mark_stored(feed)
            return result

        def failed(failure: Any) -> Any:
            self._mark_failed(feed)
            return failure

        storage.open = open_and_watch  # type: ignore[method-assign]
        storage.store = store_and_watch  # type: ignore[method-assign]

    @contextmanager
    def _failures_of(self, feed: Feed) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._mark_failed(feed)
            raise


FeedT = TypeVar("FeedT", bound=Hashable)


class PagesAwaitingFeeds(Generic[FeedT]):
    """Ids of pages that wait for feeds: at most nine bytes a page, however many feeds take it.

    There is one sorted array for each set of feeds. Successive pages wait for the same feeds, so there are as few
    arrays as feeds are open. An id is the time at which its page was judged, so nearly every one comes last.
    """

    def __init__(self) -> None:
        self._ids: dict[frozenset[FeedT], array[int]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._ids.values()))

    def add(self, id: int, feeds: frozenset[FeedT]) -> None:
        """The page waits for these feeds, and for those that it waits for already."""
        insort(self._ids.setdefault(feeds | self.remove(id), array("Q")), id)

    def remove(self, id: int) -> frozenset[FeedT]:
        """The page waits no more; returns the feeds that it waited for, none if it did not wait."""
        for feeds, ids in self._ids.items():
            at = bisect_left(ids, id)
            if at < len(ids) and ids[at] == id:
                ids.pop(at)
                if not ids:
                    del self._ids[feeds]
                return feeds
        return frozenset()

    def feeds(self) -> set[FeedT]:
        """The feeds that pages wait for."""
        return {feed for feeds in self._ids for feed in feeds}

    def forget(self, feed: FeedT) -> dict[frozenset[FeedT], array[int]]:
        """Forget the pages of a feed; returns them by all their feeds."""
        return {feeds: self._ids.pop(feeds) for feeds in list(self._ids) if feed in feeds}

    def store(self, feed: FeedT) -> tuple[Span | None, array[int]]:
        """The feed is stored, and no page waits for it any more.

        Returns the span of its pages, None if there are none, and those that wait for no other feed.
        """
        arrays = self.forget(feed)
        if not arrays:
            return None, array("Q")
        span = min(ids[0] for ids in arrays.values()), max(ids[-1] for ids in arrays.values())
        pages = sum(map(len, arrays.values()))
        ready = arrays.pop(frozenset((feed,)), array("Q"))
        for feeds, ids in arrays.items():
            others = self._ids.setdefault(feeds - {feed}, array("Q"))
            for id in ids:
                insort(others, id)
        return (*span, pages), ready


class Deliveries:
    """Keeps in the state which pages are in which feed. It reports a failed state and raises nothing.

    Scrapy overwrites with -O or ``'overwrite': True``, by default on S3, FTP and Google Cloud, and with
    ``%(batch_id)d``, which begins at 1 in each crawl. It empties a file at its first item, or at the end if there was
    none. An upload replaces the old feed when it is stored.
    """

    def __init__(self, store: PageStore, overwritten: str, notes: Notes, outage: Outage) -> None:
        """``overwritten``: "warn", "forget" or "known"."""
        self._store = store
        self._crawl = store.new_id()  # smaller than the ids of all pages of this crawl
        self._policy = overwritten
        self._notes = notes
        self._outage = outage
        self._feeds: dict[str, Delivery] = {}
        #: Feeds that this crawl will overwrite, and has not yet.
        self._to_overwrite: set[str] = set()

    def begin(self, slots: Sequence[FeedSlot]) -> None:
        """Scrapy has opened its feeds, and written nothing: warn of pages that will be gone."""
        self._outage.attempt(lambda: self._begin(slots))

    def overwrite(self, feed: str) -> None:
        """The earlier content of the feed is gone in a moment."""
        if feed in self._to_overwrite:
            self._to_overwrite.remove(feed)
            self._empty(self._feeds[feed], known=self._policy == "known")

    def store(self, feed: str, pages: Span) -> None:
        """Pages of this crawl are in the feed. Call it before they are sealed."""
        if feed in self._feeds:
            self._feeds[feed].add(pages, self._crawl)
            self._write(self._feeds[feed])

    def _begin(self, slots: Sequence[FeedSlot]) -> None:
        earlier = {one.feed: one for one in FEEDS.read(self._store)}
        for slot in slots:
            if not isinstance(slot.storage, StdoutFeedStorage) and not any(
                time in slot.uri_template for time in _TIMES
            ):
                feed = name_of(slot)
                self._feeds[feed] = delivery = earlier.get(feed) or Delivery(feed)
                if delivery.held:
                    self._check(slot, delivery)

    def _check(self, slot: FeedSlot, delivery: Delivery) -> None:
        """Warn of earlier pages in a feed, or forget them, if this crawl overwrites it."""
        if _was_moved_away(slot):
            self._empty(delivery, known=True)
        elif _overwrites(slot):
            name = f"{delivery.feed} and its later batches" if "%(batch_id)" in slot.uri_template else delivery.feed
            pages = sum(many for _, _, many in delivery.held)
            if self._policy == "forget":
                found = select_within(self._store, delivery.held)
                self._store.forget(found.ids)
                self._empty(delivery, known=True)
                logger.info(_FORGOTTEN, name, len(found.ids) - found.with_originals, found.with_originals)
                self._notes.count(stats.OVERWRITTEN, len(found.ids))
                return
            self._to_overwrite.add(delivery.feed)
            if self._policy == "warn":
                logger.warning(_WILL_BE_GONE, name, pages)
                self._notes.count(stats.OVERWRITTEN, pages)

    def _empty(self, delivery: Delivery, *, known: bool) -> None:
        delivery.overwrite(known=known)
        self._write(delivery)

    def _write(self, delivery: Delivery) -> None:
        self._outage.attempt(lambda: delivery.write(self._store))


def name_of(slot: FeedSlot) -> str:
    """The name of a slot's feed: its whole path, or its URI without password; for batches that of the first one."""
    parts = urlsplit(slot.uri)
    if isinstance(slot.storage, FileFeedStorage) and (parts.scheme == "file" or "://" not in slot.uri):
        return os.path.realpath(slot.storage.path)
    secret, at, _ = parts.netloc.rpartition("@")
    return slot.uri.replace(secret + at, "", 1)


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


def _sync(file: Any) -> None:
    """Write a feed to disk: a sealed page survives a power cut, so its feed has to as well. Raises OSError."""
    try:
        file.flush()
        os.fsync(file.fileno())
    except (AttributeError, ValueError):  # no file of the system, or a closed one
        pass
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def _end_torn_line(slot: FeedSlot) -> None:
    """End a half line in a file to append to, or the next item would be spoilt, too. Its page comes again anyway.

    Full disks and power cuts leave half lines. A killed process does not: Scrapy writes each item at once.
    """
    storage = slot.storage
    if (
        not isinstance(storage, FileFeedStorage)
        or storage.write_mode != "ab"
        or slot.format not in _LINES
        or "postprocessing" in slot.feed_options
        or not Path(storage.path).is_file()
    ):
        return
    with Path(storage.path).open("r+b") as file:
        if not file.seek(0, os.SEEK_END):
            return
        file.seek(-1, os.SEEK_END)
        if file.read(1) == b"\n":
            return
        file.write(b"\n")
    logger.warning(
        "The feed %s ended within a line, as after a full disk. A line end is added, so the items of this crawl are "
        "complete. Remove the half item before them.",
        storage.path,
    )
