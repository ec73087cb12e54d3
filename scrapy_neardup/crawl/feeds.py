"""Scrapy's feeds: a page is sealed when the feeds that hold it are stored."""

from __future__ import annotations

import errno
import inspect
import os
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import FeedExporter, FeedSlot, FileFeedStorage
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.project import get_project_settings
from twisted.internet.defer import Deferred
from w3lib.url import file_uri_to_path

from scrapy_neardup.crawl.pending_feeds import Deliveries, PagesAwaitingFeeds, Released, empties_at_once, name_of
from scrapy_neardup.crawl.response_items import ResponseItems
from scrapy_neardup.oneline import line_logger
from scrapy_neardup.state.kv import without_password

# ----------------------------------------------------------------------------------------------------------------------
# Half a line at the end of a feed, from a disk that was full or a power cut: what is appended is spoilt with it.
#
# A killed process leaves whole lines: Scrapy hands each to the file at once, which passes it on whole.


logger = line_logger(__name__)

#: Formats of which a line is an item; in CSV half a quoted field goes on behind whatever is added.
_LINES = ("jsonlines", "jsonl", "jl")


def end_torn_line(slot: FeedSlot) -> None:
    """End the last line of a file to which a feed is to be appended; the page of that half item comes again anyway."""
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


# ----------------------------------------------------------------------------------------------------------------------
# Which pages are safe: those whose items were written by every feed that took them, once these are stored.


_COMMAND_LINE = SETTINGS_PRIORITIES["cmdline"]
#: What a file answers that cannot be synced: a pipe, standard output, some network file systems.
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EROFS)


@dataclass(eq=False, slots=True)
class Feed:
    """One file of a feed (a batch of it).

    ``name``: that of the feed, the same for all its batches. ``beside``: names of feeds that took items of its pages.
    Without a slot and a name it stands for the items of a response that are still to come.
    """

    slot: FeedSlot | None
    name: str
    stored: bool = False
    failed: bool = False
    beside: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Unstored:
    """A feed that was not stored, or some batches of it: how many pages it held, and which feeds took them ``beside``.

    Of the latter, ``FeedWatch.not_stored`` tells those that were stored.
    """

    feed: str
    pages: int = 0
    beside: set[str] = field(default_factory=set)


class NotWritten(Exception):
    """A feed could not write an item, for the cause of this; ``others``: the names of those that did."""

    def __init__(self, feed: str, others: Set[str]) -> None:
        super().__init__(feed)
        self.feed = feed
        self.others = others


def take_over_feeds(crawler: Crawler) -> FeedExporter | None:
    """Scrapy's feed exports, if the crawl has any, which from now on get only the items that ``FeedWatch`` hands them.

    Scrapy sends them ``item_scraped`` like everybody else, and swallows what they raise: nobody would know whether an
    item was written.
    """
    exporter = crawler.get_extension(FeedExporter)
    if exporter is not None:
        crawler.signals.disconnect(exporter.item_scraped, signals.item_scraped)
    return exporter


def keep_feeds_of_command_line(crawler: Crawler) -> list[str]:
    """Keep Scrapy from opening any feed but those of the command line; returns the others, without passwords.

    Scrapy puts the feeds of ``-o`` and ``-O`` into the setting FEEDS, beside those of the project. One that the project
    or the spider names as well, in whatever spelling, is theirs.
    """
    exporter = crawler.get_extension(FeedExporter)
    if exporter is None:
        return []
    project, spider = get_project_settings(), get_project_settings()
    crawler.spidercls.update_settings(spider)
    named = {**_feeds_of(project), **_feeds_of(spider)}
    theirs = {place for uri in named for place in _places(uri, exporter, crawler)}
    asked = {uri for uri, priority in _feeds_of(crawler.settings).items() if priority >= _COMMAND_LINE}
    left = [uri for uri in exporter.feeds if uri not in asked or theirs & _places(uri, exporter, crawler)]
    for uri in left:
        del exporter.feeds[uri]
    return [without_password(uri) for uri in left]


def _feeds_of(settings: BaseSettings) -> dict[str, int]:
    """The URIs of the feeds that settings name, and the priority of each setting."""
    feeds = settings.get("FEEDS")
    each = feeds.getpriority if isinstance(feeds, BaseSettings) else lambda uri: settings.getpriority("FEEDS")
    found = {_text(uri): each(uri) or 0 for uri in settings.getdict("FEEDS")}
    if settings.get("FEED_URI"):  # deprecated, and still read
        found.setdefault(_text(settings["FEED_URI"]), settings.getpriority("FEED_URI") or 0)
    return found


def _text(uri: object) -> str:
    """A URI as Scrapy's exporter has it."""
    return str(uri.absolute()) if isinstance(uri, Path) else str(uri)


def _places(uri: str, exporter: FeedExporter, crawler: Crawler) -> set[str]:
    """Where a feed lies: by its URI, and by that with its placeholders filled."""
    of_feed = exporter.feeds.get(uri, {}).get("uri_params") or crawler.settings["FEED_URI_PARAMS"]
    try:
        filled = uri % exporter._get_uri_params(cast(Spider, crawler.spider), of_feed)
    except (KeyError, TypeError, ValueError):  # a percent sign of the URI itself
        filled = uri
    return {place_of(uri), place_of(filled)}


def place_of(uri: str) -> str:
    """A feed by its URI; a file by its path."""
    scheme = urlsplit(uri).scheme
    if scheme in ("", "file"):
        return os.path.realpath(file_uri_to_path(uri) if scheme else uri)
    return uri


class FeedWatch:
    """Hands items to Scrapy's feeds, and tells which pages can be sealed as feeds (or batches of them) are stored.

    Scrapy sends ``feed_slot_closed`` whether storing worked or not, so the storages themselves are asked.
    """

    def __init__(
        self,
        exporter: FeedExporter | None,
        seal: Callable[[Sequence[int]], None],
        deliveries: Deliveries | None = None,
    ) -> None:
        """``seal`` is called with the ids of pages whose feeds are all stored; without an exporter none has a feed.

        ``deliveries`` is told what becomes of feeds, before the pages in them are sealed.
        """
        self._exporter = exporter
        self._seal = seal
        self._deliveries = deliveries
        #: Those that Scrapy writes to at this moment.
        self._open: list[Feed] = []
        self._held: PagesAwaitingFeeds[Feed] = PagesAwaitingFeeds()
        self._names: dict[str, str] = {}
        self._stored: set[str] = set()
        self._lost: dict[str, Unstored] = {}
        self._rests: WeakKeyDictionary[ResponseItems, Feed] = WeakKeyDictionary()

    def opened(self) -> None:
        """Scrapy has opened its feeds: what was in them, and will be overwritten, is told of before an item comes."""
        if self._exporter is not None:
            self._open = [self._feed(slot) for slot in self._exporter.slots]
            if self._deliveries is not None:
                self._deliveries.begin(self._exporter.slots)

    def export(self, item: Any, spider: Spider) -> Set[Feed]:
        """Have an item written by every feed that takes it; returns these, some of which may be stored by now.

        Each feed gets it by itself: by Scrapy's own way, those behind one that cannot write it would not have it in any
        crawl. When all have had their turn, raises NotWritten for the first that could not.
        """
        if (exporter := self._exporter) is None:
            return frozenset()
        self._open = [self._feed(slot) for slot in exporter.slots]
        took: set[Feed] = set()
        slots: list[FeedSlot] = []
        wrong: tuple[Feed, Exception] | None = None
        for feed, slot in zip(self._open, exporter.slots, strict=True):
            count, exporter.slots = slot.itemcount, [slot]
            try:
                exporter.item_scraped(item, spider)
            except Exception as error:  # whatever a feed raises
                wrong = wrong or (feed, error)
            if slot.itemcount > count:
                took.add(feed)
            slots += exporter.slots
        exporter.slots = slots
        if wrong:
            raise NotWritten(wrong[0].name, {feed.name for feed in took}) from wrong[1]
        return took

    def hold(self, id: int, feeds: Set[Feed], earlier: Set[Feed] = frozenset()) -> None:
        """Seal the page once all these feeds are stored, and those that took ``earlier`` items of it."""
        for feed in feeds:
            feed.beside.update(other.name for other in feeds | earlier if other is not feed and other.slot)
            if feed.stored:
                self._tell(feed, Released(1, id, id))
        waiting = frozenset(feed for feed in feeds | earlier if not feed.stored)
        if not waiting:
            self._seal([id])
        elif any(feed.failed for feed in waiting):
            self._held.remove(id)
            for feed in feeds:
                self._lose(feed, int(feed.failed))
        else:
            self._held.add(id, waiting)

    def rest(self, coming: ResponseItems) -> Feed:
        """What a page waits for as long as items that share it are to come: as if they were a feed."""
        if coming not in self._rests:
            self._rests[coming] = rest = Feed(None, "")
            coming.when_over(partial(self._is_stored, rest))
        return self._rests[coming]

    def drop(self, id: int) -> None:
        """The page was taken back."""
        self._held.remove(id)

    def not_stored(self) -> list[Unstored]:
        """When all feeds are closed: those that were not stored, with the pages in them; these are never sealed."""
        for feed in self._held.feeds():
            self._lose(feed, self._held.waiting_for(feed))
        self._held = PagesAwaitingFeeds()
        return [Unstored(one.feed, one.pages, one.beside & self._stored) for one in self._lost.values()]

    def _feed(self, slot: FeedSlot) -> Feed:
        for known in self._open:
            if known.slot is slot:
                return known
        feed = Feed(slot, self._names.setdefault(slot.uri_template, name_of(slot)))
        self._watch(feed, slot)
        return feed

    def _watch(self, feed: Feed, slot: FeedSlot) -> None:
        storage = slot.storage
        store, open_file = storage.store, storage.open

        def open_and_tell(spider: Spider) -> Any:
            if self._deliveries is not None and empties_at_once(slot):
                self._deliveries.overwritten(feed.name)
            end_torn_line(slot)
            return open_file(spider)

        def stored(result: Any) -> Any:
            self._is_stored(feed)
            return result

        def failed(failure: Any) -> Any:
            self._is_lost(feed)
            return failure

        async def wait(result: Any) -> Any:
            try:
                return stored(await result)
            except BaseException:
                self._is_lost(feed)
                raise

        def store_and_tell(file: Any) -> Any:
            try:
                _to_disk(file)
                if self._deliveries is not None and not empties_at_once(slot):
                    self._deliveries.overwritten(feed.name)
                result: Any = store(file)
            except BaseException:
                self._is_lost(feed)
                raise
            if isinstance(result, Deferred):
                return result.addCallbacks(stored, failed)
            return wait(result) if inspect.isawaitable(result) else stored(result)

        storage.open = open_and_tell  # type: ignore[method-assign]
        storage.store = store_and_tell  # type: ignore[method-assign]

    def _is_stored(self, feed: Feed) -> None:
        feed.stored = True
        self._stored.add(feed.name)
        held = self._held.stored(feed)
        self._tell(feed, held)
        if held.ready:
            self._seal(held.ready)

    def _is_lost(self, feed: Feed) -> None:
        feed.failed = True
        self._lose(feed, self._held.failed(feed))

    def _lose(self, feed: Feed, pages: int) -> None:
        if pages and feed.slot is not None:
            lost = self._lost.setdefault(feed.name, Unstored(feed.name))
            lost.pages += pages
            lost.beside |= feed.beside

    def _tell(self, feed: Feed, held: Released) -> None:
        if self._deliveries is not None and held.pages:
            self._deliveries.stored(feed.name, held)


def _to_disk(file: Any) -> None:
    """A sealed page survives a power cut, so the feed that holds it has to as well. Raises OSError if it cannot."""
    try:
        file.flush()
        os.fsync(file.fileno())
    except (AttributeError, ValueError):  # no file of the system, or one that is closed
        pass
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
