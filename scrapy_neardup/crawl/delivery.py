"""From the end of an item to a sealed page, through Scrapy's signals and feeds.

A page is committed once its items came through all pipelines, and counts as seen. It is sealed once the feeds with its
items are stored, and counts permanently, also after a kill.
"""

from __future__ import annotations

import errno
import os
from array import array
from bisect import bisect_left, insort
from bz2 import BZ2File
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from functools import partial
from gzip import GzipFile
from itertools import count
from lzma import LZMAFile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
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
from scrapy.extensions.postprocessing import Bz2Plugin, GzipPlugin, LZMAPlugin
from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.signalmanager import SignalManager
from scrapy.utils.defer import ensure_awaitable
from scrapy.utils.misc import load_object
from scrapy.utils.project import get_project_settings

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.crawl.visits import Awaited, JudgedPage, Visit, end_ticket
from scrapy_neardup.errors import StoreError
from scrapy_neardup.files.compression import FAILURES
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.kv.base import without_password
from scrapy_neardup.maintenance.tables import Crawl
from scrapy_neardup.untrusted import line_logger

if TYPE_CHECKING:
    from scrapy_neardup.judge.remote import RemoteCrawl

logger = line_logger(__name__)

#: Errors of files that cannot be synced: pipes, standard output, some network file systems.
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EROFS)
#: A later crawl may append to feeds of these formats.
_APPENDABLE = ("jsonlines", "jsonl", "jl", "csv")
#: The plugins that compress a feed, and what reads it.
_UNPACK: dict[Any, Any] = {GzipPlugin: GzipFile, Bz2Plugin: BZ2File, LZMAPlugin: LZMAFile}
_BLOCK = 1_000_000
#: The end of a crawl and the time of a file are rounded, to two seconds at most.
_ROUNDED = 2.0
#: A feed with one of these in its name is never overwritten.
_TIME_PLACEHOLDERS = ("%(time)s", "%(batch_time)s")
_OVERWRITES = (
    "This crawl overwrites the feed %s. The state knows %d pages, and those that earlier crawls delivered do not come "
    "again. Give each crawl its own feed with %%(time)s. If each feed is to hold everything, set NEARDUP_STORE = "
    "'memory:'. If something else collects the feed, or another placeholder names it anew for each crawl, set "
    "NEARDUP_OVERWRITTEN = 'known'."
)
_HALF_LINE = (
    "The feed %s ended within a line, as after a full disk. A line end is added, so the items of this crawl are "
    "complete. Remove the half item before them."
)
_BREAKS_OFF = (
    "The feed %s breaks off, as after a kill or a full disk, and no program could read what follows. It is renamed to "
    "%s, which has all items before the break. This crawl begins a new file."
)


#: How an item leaves the pipelines: it came through; a pipeline after ours dropped it; such a pipeline or a feed raised
#: an error, so a wanted item is lost.
End = Literal["scraped", "dropped", "failed"]


class Delivery:
    """Follows each item to its end, then commits, rolls back or seals the page of the item.

    It reports a StoreError to the notes instead of raising it.
    """

    def __init__(
        self,
        detector: Detector | RemoteCrawl,
        notes: Notes,
        exporter: FeedExporter | None = None,
        known_pages: int = 0,
        past: Sequence[Crawl] = (),
    ) -> None:
        """``exporter``: writes the feeds that pages wait for. Without it pages wait for no feed.

        ``known_pages``: pages in the state. If there are any, a feed that this crawl overwrites causes a warning.
        ``past``: the crawls that may have written these feeds, the last one last.
        """
        self._detector = detector
        self._notes = notes
        self._exporter = exporter
        self._known_pages = known_pages
        self._is_closed = False
        self._past = past
        #: The feeds of Scrapy at this moment.
        self._feeds: dict[FeedSlot, Awaited] = {}
        self._waiting = WaitingPages()

    def listen(self, manager: SignalManager) -> None:
        """Connect to Scrapy's signals.

        Scrapy sends the signals of an item in the context of its pipelines. So ``end_ticket`` finds its ticket in a
        context variable.

        Scrapy only logs an error of a feed on ``item_scraped``, so this class would not know whether an item was
        written. From now on feeds get items only from ``export``.
        """
        if self._exporter is not None:
            manager.disconnect(self._exporter.item_scraped, signals.item_scraped)
        manager.connect(self.begin, signals.spider_opened)  # after Scrapy's feeds
        manager.connect(self._item_scraped, signals.item_scraped)
        for signal in (signals.item_dropped, signals.item_error):
            manager.connect(self._item_lost, signal)

    def close(self) -> None:
        """From now on touch the state no more."""
        self._is_closed = True

    def unstored(self) -> list[str]:
        """The names of the feeds that pages still wait for: once all feeds are closed, those that were not stored."""
        return sorted({one.name for one in self._waiting.awaited()} - {""})  # a visit has no name

    # Items

    def _item_scraped(self, item: Any, spider: Spider) -> None:
        feeds, is_written = self.export(item, spider)
        self._end_item("scraped" if is_written else "failed", feeds)

    def _item_lost(self, signal: object) -> None:
        self._end_item("dropped" if signal is signals.item_dropped else "failed")

    def _end_item(self, how: End, feeds: Set[Awaited] = frozenset()) -> None:
        ticket = end_ticket()
        if ticket is None:
            return
        ticket.visit.is_failed |= how == "failed" and not ticket.is_used  # before it reached our pipeline
        if ticket.page is not None and not self._is_closed:
            self.note_end(ticket.page, how, feeds)
        ticket.visit.end_item()

    def note_end(self, page: JudgedPage, how: End, feeds: Set[Awaited] = frozenset()) -> None:
        """Note how an item of a page ended, and which feeds wrote it.

        The page is settled once none of its items is in the pipelines. It is committed if one came through and none
        failed. Otherwise it is rolled back, even if it was committed for earlier items.
        """
        page.in_pipelines, awaited = page.in_pipelines - 1, page.awaited | feeds
        page.is_scraped |= how == "scraped"
        page.is_failed |= how == "failed"
        if (visit := page.visit) is not None:
            page.is_failed |= visit.is_failed
            visit.on_done = self._end_visit
            if not visit.is_last:  # more items of the response may share the page
                awaited = awaited | {visit}
        page.awaited = awaited
        try:
            self._settle(page)
        except StoreError as error:
            self._notes.report(error)

    def _settle(self, page: JudgedPage) -> None:
        reservation = page.reservation
        if reservation is None or page.is_rolled_back:
            return
        id = reservation.record.id
        if page.is_committed and page.awaited:  # one more item of it came through, so it waits for its feeds too
            self._wait(id, page.awaited)
        if page.in_pipelines:
            return
        if page.is_failed or not page.is_scraped:
            page.is_rolled_back = True
            self._notes.count(stats.ROLLED_BACK)
            if page.is_committed:
                self._waiting.remove(id)
                self._detector.roll_back(id)
            else:
                self._detector.release(reservation)
        elif not page.is_committed:
            page.is_committed = True
            self._detector.commit(reservation, sealed=not page.awaited)
            if page.awaited:
                self._wait(id, page.awaited)

    # Feeds

    def begin(self) -> None:
        """Warn of the feeds that Scrapy will overwrite. It has made them, and opened no file yet."""
        self._watch_feeds()
        for slot, feed in self._feeds.items() if self._known_pages else ():
            if _overwrites(slot):
                self._notes.count(stats.OVERWRITTEN)
                logger.warning(_OVERWRITES, feed.name, self._known_pages)

    def export(self, item: Any, spider: Spider) -> tuple[Set[Awaited], bool]:
        """Have every feed that takes the item write it. Scrapy may close a full batch during this call.

        Each feed gets it separately: if one fails, the next ones get it all the same. Returns the feeds that wrote it,
        and whether none has failed.
        """
        if (exporter := self._exporter) is None:
            return frozenset(), True
        self._watch_feeds()
        writers: set[Awaited] = set()
        slots: list[FeedSlot] = []
        is_written = True
        for slot, feed in self._feeds.items():
            before, exporter.slots = slot.itemcount, [slot]  # the exporter writes to all its slots
            try:
                exporter.item_scraped(item, spider)
            except Exception as error:  # raised further, Scrapy would blame this package
                is_written = False
                logger.error(
                    "The feed %s could not write an item (%s: %s). Its page does not count and is judged again when it "
                    "comes again; other feeds then have it twice. Check the feed, or what it cannot write in such "
                    "items.",
                    feed.name,
                    type(error).__name__,
                    error,
                    exc_info=self._notes.mark_logged("feed"),
                )
            if slot.itemcount > before:
                writers.add(feed)
            slots += exporter.slots
        exporter.slots = slots
        return writers, is_written

    def _watch_feeds(self) -> None:
        slots = self._exporter.slots if self._exporter is not None else ()
        self._feeds = {slot: self._feeds.get(slot) or self._watch_feed(slot) for slot in slots}

    def _watch_feed(self, slot: FeedSlot) -> Awaited:
        """The feed of a slot, which seals its pages when it is stored.

        Scrapy sends ``feed_slot_closed`` whether storing worked or not, so this wraps the storage itself.
        """
        feed, storage = Awaited(name=name_of(slot)), slot.storage
        open_file, store_file = storage.open, storage.store

        def open_and_mend(spider: Spider) -> Any:
            _mend(slot, self._past)
            return open_file(spider)

        async def store_and_seal(file: Any) -> Any:
            _sync(file)
            result: Any = await ensure_awaitable(store_file(file))  # if it raises, pages wait for it to the end
            self._free_pages(feed)
            return result

        storage.open = open_and_mend  # type: ignore[method-assign]
        storage.store = store_and_seal  # type: ignore[method-assign,assignment]
        return feed

    # Sealing

    def _wait(self, id: int, awaited: Set[Awaited]) -> None:
        """Seal the page once all these are done. It waits for nothing else any more."""
        self._waiting.remove(id)
        if waiting := frozenset(one for one in awaited if not one.is_done):
            self._waiting.add(id, waiting)
        else:
            self._seal_or_roll_back([id])

    def _end_visit(self, visit: Visit) -> None:
        """All items of a response have ended, so its pages wait for no more of them."""
        comes_twice = visit.is_failed or any(page.is_failed and page.is_scraped for page in visit.pages.values())
        if comes_twice and visit.served is not None:
            self._notes.warn_once(
                "shared pages",
                "The next crawl delivers the items of %s again, also those that a feed has, because one of them may be "
                "lost. A pipeline or a feed failed, or the callback raised an error or CloseSpider. Mend the error "
                "that the log shows, or raise CloseSpider before the first item of a response.",
                visit.served.url,
            )
        self._free_pages(visit)

    def _free_pages(self, awaited: Awaited) -> None:
        """Seal the pages that waited only for this; roll them back if it has failed."""
        awaited.is_done = True
        for all_of_them, ids in self._waiting.pop(awaited).items():
            others = all_of_them - {awaited}
            if awaited.is_failed or not others:
                self._seal_or_roll_back(ids, is_failed=awaited.is_failed)
                continue
            for id in ids:
                self._waiting.add(id, others)

    def _seal_or_roll_back(self, ids: Sequence[int], *, is_failed: bool = False) -> None:
        """Seal pages, or roll them back."""
        if self._is_closed or self._notes.state_failed:
            return
        try:
            if not is_failed:
                self._detector.seal(ids)
            else:
                for id in ids:
                    self._notes.count(stats.ROLLED_BACK)
                    self._detector.roll_back(id)
        except StoreError as error:
            self._notes.report(error)


class WaitingPages:
    """Ids of pages that wait: at most nine bytes a page, however many feeds take it.

    There is one sorted array for each set of feeds and responses. Successive pages wait for the same feeds, so there
    are few arrays. An id is the time at which its page was judged, so a new one is nearly always the largest.
    """

    def __init__(self) -> None:
        self._ids: dict[frozenset[Awaited], array[int]] = {}

    def add(self, id: int, awaited: frozenset[Awaited]) -> None:
        """A page that does not wait yet waits for all of these."""
        insort(self._ids.setdefault(awaited, array("Q")), id)

    def remove(self, id: int) -> None:
        """The page waits no more, if it did."""
        for awaited, ids in self._ids.items():
            at = bisect_left(ids, id)
            if at < len(ids) and ids[at] == id:
                ids.pop(at)
                if not ids:
                    del self._ids[awaited]
                return

    def pop(self, awaited: Awaited) -> dict[frozenset[Awaited], array[int]]:
        """Remove the pages that wait for this; returns them by the set that they wait for."""
        return {all_of_them: self._ids.pop(all_of_them) for all_of_them in list(self._ids) if awaited in all_of_them}

    def awaited(self) -> set[Awaited]:
        return {one for all_of_them in self._ids for one in all_of_them}


def leave_out_feeds(crawler: Crawler) -> None:
    """For a dry run, before the spider opens: leave only the feeds of the command line, and log the others.

    With ``-o`` and ``-O`` Scrapy writes the feeds of the command line and of the project.
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


def name_of(slot: FeedSlot) -> str:
    """The name of a slot's feed: its whole path, or its URI without password."""
    parts = urlsplit(slot.uri)
    if isinstance(slot.storage, FileFeedStorage) and (parts.scheme == "file" or "://" not in slot.uri):
        return os.path.realpath(slot.storage.path)
    return without_password(slot.uri)


def _overwrites(slot: FeedSlot) -> bool:
    """Whether the feed may have earlier content, and this crawl replaces it.

    Scrapy overwrites with -O or ``'overwrite': True``, and by default on S3, FTP and Google Cloud, also batches:
    ``%(batch_id)d`` begins at 1 in each crawl. Files on S3 and Google Cloud are not looked at.
    """
    storage = slot.storage
    if isinstance(storage, StdoutFeedStorage) or any(time in slot.uri_template for time in _TIME_PLACEHOLDERS):
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
    except (AttributeError, ValueError):  # not a real file, or a closed one
        pass
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def _mend(slot: FeedSlot, past: Sequence[Crawl]) -> None:
    """Repair a file that breaks off, so readers find what this crawl appends. Pages of its last items come again.

    Full disks and power cuts leave half items. A kill does not: a buffer is written with whole items. But it leaves
    half of a compressed file, and perhaps an open quote. To find these, the whole file is read.
    """
    storage, options = slot.storage, slot.feed_options
    if not isinstance(storage, FileFeedStorage) or storage.write_mode != "ab":
        return
    path = Path(os.path.realpath(storage.path))  # a link stays a link
    if not path.is_file() or not path.stat().st_size:
        return
    if options.get("postprocessing"):
        swallows = _may_be_cut(path, past) and _is_cut_stream(path, options)
    elif slot.format in _APPENDABLE and len("\n".encode(options["encoding"] or "utf-8")) == 1:
        is_half, is_csv = _ends_within_line(path), slot.format == "csv"
        swallows = is_csv and (is_half or (_may_be_cut(path, past) and _has_open_quote(path, options)))
        if is_half and not is_csv:
            with path.open("ab") as file:
                file.write(b"\n")
            logger.warning(_HALF_LINE, path)
    else:
        return
    if swallows:  # what follows would belong to the half field or stream
        broken = next(one for number in count(1) if not (one := Path(f"{path}.broken-{number}")).exists())
        path.rename(broken)
        logger.warning(_BREAKS_OFF, path, broken)


def _may_be_cut(path: Path, past: Sequence[Crawl]) -> bool:
    """Whether a killed crawl, or one with a feed that was not stored, may have been the last to write a file.

    After such a crawl the time of the file does not count: the clock may have jumped.
    """
    if all(one.ended_well for one in past):
        return False
    written = path.stat().st_mtime
    last = next((one for one in reversed(past) if one.begun <= written + _ROUNDED), None)
    if last is None or not (past[-1].ended_well and last.ended_well):
        return True
    return not last.begun + _ROUNDED < written <= last.ended + _ROUNDED  # else the crawl before may have written it


def _is_cut_stream(path: Path, options: Mapping[str, Any]) -> bool:
    unpack = _UNPACK.get(load_object(options["postprocessing"][-1]))
    if unpack is None or "lzma_filters" in options:  # a file need not name its filters
        return False
    with suppress(*FAILURES), unpack(path) as file:
        while file.read(_BLOCK):
            pass
        return False
    return True


def _has_open_quote(path: Path, options: Mapping[str, Any]) -> bool:
    if options["item_export_kwargs"]:  # they may name other quotes
        return False
    with path.open("rb") as file:
        return sum(block.count(b'"') for block in iter(partial(file.read, _BLOCK), b"")) % 2 > 0


def _ends_within_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() not in (b"\n", b"\r")
