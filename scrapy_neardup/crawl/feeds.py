"""Scrapy's feeds: a page is sealed (it counts permanently) when every feed with an item of it is stored.

Also, which feeds this crawl overwrites, and which a dry run leaves out.
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

from scrapy_neardup.kv.base import without_password
from scrapy_neardup.untrusted import line_logger

logger = line_logger(__name__)

#: Errors of files that cannot be synced: pipes, standard output, some network file systems.
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EROFS)
#: Formats with an item on each line. In CSV a broken quoted field would swallow whatever follows it.
_LINES = ("jsonlines", "jsonl", "jl")
#: A feed with one of these in its name is never overwritten.
_TIMES = ("%(time)s", "%(batch_time)s")


@dataclass(eq=False, slots=True)
class Feed:
    """One file of a feed (a batch of it).

    ``name`` is empty for the stand-in of a response's further items (``Ledger``), which is no feed of Scrapy's.
    """

    slot: FeedSlot | None
    name: str
    is_stored: bool = False
    is_failed: bool = False


class NotWritten(Exception):
    """The feed of this name could not write an item; ``__cause__`` is its error."""


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

    def __init__(self, exporter: FeedExporter | None, seal: Callable[[Sequence[int]], None]) -> None:
        """``seal`` gets the ids of pages whose feeds are all stored."""
        self._exporter = exporter
        self._seal = seal
        #: Those that Scrapy writes to at this moment.
        self._open: list[Feed] = []
        self._waiting: PagesAwaitingFeeds[Feed] = PagesAwaitingFeeds()
        self._failed: set[str] = set()

    def begin(self) -> list[str]:
        """Scrapy has opened its feeds, and written nothing; returns those whose earlier content it will overwrite."""
        if self._exporter is None:
            return []
        self._open = [self._feed(slot) for slot in self._exporter.slots]
        return [feed.name for feed in self._open if feed.slot is not None and _overwrites(feed.slot)]

    def export(self, item: Any, spider: Spider) -> Set[Feed]:
        """Have every feed that takes the item write it, and return these feeds. A full batch is stored by then.

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
        if ready := self._waiting.store(feed):
            self._seal(ready)

    def _mark_failed(self, feed: Feed) -> None:
        feed.is_failed = True
        self._failed.add(feed.name)
        self._waiting.forget(feed)

    def _feed(self, slot: FeedSlot) -> Feed:
        for known in self._open:
            if known.slot is slot:
                return known
        feed = Feed(slot, name_of(slot))
        self._wrap_storage(feed, slot)
        return feed

    def _wrap_storage(self, feed: Feed, slot: FeedSlot) -> None:
        storage = slot.storage
        open_file, store_file = storage.open, storage.store

        def open_and_watch(spider: Spider) -> Any:
            _end_torn_line(slot)
            return open_file(spider)

        def store_and_watch(file: Any) -> Any:
            with self._failures_of(feed):
                _sync(file)
                result: Any = store_file(file)
            if isinstance(result, Deferred):
                return result.addCallbacks(stored, failed)
            return wait(result) if inspect.isawaitable(result) else stored(result)

        async def wait(result: Any) -> Any:
            with self._failures_of(feed):
                answer = await result
            return stored(answer)

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

    def store(self, feed: FeedT) -> array[int]:
        """The feed is stored, and no page waits for it any more; returns those that wait for no other feed."""
        arrays = self.forget(feed)
        ready = arrays.pop(frozenset((feed,)), array("Q"))
        for feeds, ids in arrays.items():
            others = self._ids.setdefault(feeds - {feed}, array("Q"))
            for id in ids:
                insort(others, id)
        return ready


def name_of(slot: FeedSlot) -> str:
    """The name of a slot's feed: its whole path, or its URI without password."""
    parts = urlsplit(slot.uri)
    if isinstance(slot.storage, FileFeedStorage) and (parts.scheme == "file" or "://" not in slot.uri):
        return os.path.realpath(slot.storage.path)
    secret, at, _ = parts.netloc.rpartition("@")
    return slot.uri.replace(secret + at, "", 1)


def _overwrites(slot: FeedSlot) -> bool:
    """Whether the feed may have earlier content, and this crawl replaces it.

    Scrapy overwrites with -O or ``'overwrite': True``, and by default on S3, FTP and Google Cloud, also batches:
    ``%(batch_id)d`` begins at 1 in each crawl.
    """
    storage = slot.storage
    if isinstance(storage, StdoutFeedStorage) or any(time in slot.uri_template for time in _TIMES):
        return False
    if isinstance(storage, (S3FeedStorage, GCSFeedStorage)):
        return True
    if not isinstance(storage, FileFeedStorage):
        return bool(slot.feed_options.get("overwrite", True))
    path = Path(storage.path)
    return bool(slot.feed_options.get("overwrite")) and path.exists() and path.stat().st_size > 0


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
