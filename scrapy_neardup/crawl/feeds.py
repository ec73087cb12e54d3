"""Which pages are safe: those whose items were written by every feed that took them, once these are stored."""

from __future__ import annotations

import errno
import inspect
import os
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from typing import Any

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import FeedExporter, FeedSlot
from twisted.internet.defer import Deferred

#: What a file answers that cannot be synced: a pipe, standard output, some network file systems.
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EROFS)


@dataclass(eq=False, slots=True)
class Feed:
    """One file of a feed (a batch of it), and the pages that wait until it is stored, by their ids."""

    slot: FeedSlot
    pages: set[int] = field(default_factory=set)
    stored: bool = False


def take_over_feeds(crawler: Crawler) -> FeedExporter | None:
    """Scrapy's feed exports, if the crawl has any, which from now on get only the items that ``FeedWatch`` hands them.

    Scrapy sends them ``item_scraped`` like everybody else, and swallows what they raise: nobody would know whether an
    item was written.
    """
    exporter = crawler.get_extension(FeedExporter)
    if exporter is not None:
        crawler.signals.disconnect(exporter.item_scraped, signals.item_scraped)
    return exporter


class FeedWatch:
    """Hands items to Scrapy's feeds, and tells which pages can be sealed as feeds (or batches of them) are stored.

    Scrapy sends ``feed_slot_closed`` whether storing worked or not, so the storages themselves are asked.
    """

    def __init__(self, exporter: FeedExporter | None, seal: Callable[[list[int]], None]) -> None:
        """``seal`` is called with the ids of pages whose feeds are all stored; without an exporter none has a feed."""
        self._exporter = exporter
        self._seal = seal
        #: Those that Scrapy writes to at this moment.
        self._open: list[Feed] = []
        self._waits_for: dict[int, set[Feed]] = {}

    def export(self, item: Any, spider: Spider) -> Set[Feed]:
        """Have an item written by every feed that takes it; returns these. Raises whatever one of them raises.

        Then the others may have written it or not; and a feed that was full is perhaps stored by now.
        """
        if self._exporter is None:
            return frozenset()
        self._open = [self._feed(slot) for slot in self._exporter.slots]
        before = [(feed, feed.slot.itemcount) for feed in self._open]
        self._exporter.item_scraped(item, spider)
        return frozenset(feed for feed, count in before if feed.slot.itemcount > count)

    def hold(self, id: int, feeds: Set[Feed]) -> None:
        """Seal the page once all these feeds are stored."""
        waiting = {feed for feed in feeds if not feed.stored}
        if not waiting:
            self._seal([id])
            return
        self._waits_for.setdefault(id, set()).update(waiting)
        for feed in waiting:
            feed.pages.add(id)

    def drop(self, id: int) -> None:
        """The page was taken back."""
        for feed in self._waits_for.pop(id, ()):
            feed.pages.discard(id)

    def _feed(self, slot: FeedSlot) -> Feed:
        for known in self._open:
            if known.slot is slot:
                return known
        feed = Feed(slot)
        self._watch(feed)
        return feed

    def _watch(self, feed: Feed) -> None:
        store = feed.slot.storage.store

        def stored(result: Any) -> Any:
            self._is_stored(feed)
            return result

        def store_and_tell(file: Any) -> Any:
            _to_disk(file)
            result: Any = store(file)
            if isinstance(result, Deferred):
                return result.addCallback(stored)
            if inspect.isawaitable(result):
                return _then(result, stored)
            return stored(result)

        feed.slot.storage.store = store_and_tell  # type: ignore[method-assign]

    def _is_stored(self, feed: Feed) -> None:
        feed.stored = True
        ready = []
        for id in sorted(feed.pages):
            self._waits_for[id].discard(feed)
            if not self._waits_for[id]:
                del self._waits_for[id]
                ready.append(id)
        feed.pages.clear()
        if ready:
            self._seal(ready)


async def _then(result: Any, call: Callable[[Any], Any]) -> Any:
    return call(await result)


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
