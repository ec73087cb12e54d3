"""Scrapy's feeds: a page is sealed when every feed with an item of it is stored."""

from __future__ import annotations

import errno
import inspect
import os
from array import array
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import FeedExporter, FeedSlot, FileFeedStorage
from twisted.internet.defer import Deferred

from scrapy_neardup.crawl.deliveries import Deliveries, empties_at_once, name_of
from scrapy_neardup.maintenance.tables import Span
from scrapy_neardup.untrusted import line_logger

logger = line_logger(__name__)

#: Errors of files that cannot be synced: pipes, standard output, some network file systems.
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EROFS)
#: Formats with an item on each line. In CSV a broken quoted field would swallow whatever follows it.
_LINES = ("jsonlines", "jsonl", "jl")


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
        self._unstored: Counter[str] = Counter()

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
            for feed in feeds:
                self._count_unstored(feed, int(feed.is_failed))
        else:
            self._waiting.add(id, waiting)

    def remove(self, id: int) -> None:
        """The page was rolled back."""
        self._waiting.remove(id)

    def unstored(self) -> Mapping[str, int]:
        """When all feeds are closed: those that were not stored, each with its pages, which are never sealed."""
        for feed in self._waiting.feeds():
            self._count_unstored(feed, self._waiting.count(feed))
        self._waiting = PagesAwaitingFeeds()
        return self._unstored

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
        self._count_unstored(feed, self._waiting.fail(feed))

    def _count_unstored(self, feed: Feed, pages: int) -> None:
        if pages and feed.name:
            self._unstored[feed.name] += pages

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
        open_file, store_file, keeps_file = storage.open, storage.store, not empties_at_once(slot)

        def overwrite() -> None:
            if self._deliveries is not None:
                self._deliveries.overwrite(feed.name)

        def open_and_watch(spider: Spider) -> Any:
            if not keeps_file:
                overwrite()
            _end_torn_line(slot)
            return open_file(spider)

        def store_and_watch(file: Any) -> Any:
            with self._failures_of(feed):
                _sync(file)
                if keeps_file:
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

    def count(self, feed: FeedT) -> int:
        """The number of pages that wait for this feed."""
        return sum(len(ids) for feeds, ids in self._ids.items() if feed in feeds)

    def store(self, feed: FeedT) -> tuple[Span | None, array[int]]:
        """The feed is stored, and no page waits for it any more.

        Returns the span of its pages, None if there are none, and those that wait for no other feed.
        """
        arrays = {feeds: self._ids.pop(feeds) for feeds in list(self._ids) if feed in feeds}
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

    def fail(self, feed: FeedT) -> int:
        """The feed will never be stored: forget its pages; returns their number."""
        return sum(len(self._ids.pop(feeds)) for feeds in list(self._ids) if feed in feeds)


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
