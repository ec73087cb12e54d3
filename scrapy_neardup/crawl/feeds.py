"""Which pages' items are safe: those whose every feed has been stored."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import FeedExporter, FeedSlot
from twisted.internet.defer import Deferred


@dataclass(eq=False, slots=True)
class Feed:
    """One file of a feed (a batch of it), and the pages that wait until it is stored, by their ids."""

    slot: FeedSlot
    pages: set[int] = field(default_factory=set)
    stored: bool = False


def connect_before_feeds(crawler: Crawler, item_scraped: Callable[..., Any]) -> FeedExporter | None:
    """Connect a handler of item_scraped before that of Scrapy's feed exports; returns these, if the crawl has any.

    Before it, because exporting an item can close the batch that holds it and open the next one.
    """
    exporter = crawler.get_extension(FeedExporter)
    if exporter is not None:
        crawler.signals.disconnect(exporter.item_scraped, signals.item_scraped)
    crawler.signals.connect(item_scraped, signals.item_scraped)
    if exporter is not None:
        crawler.signals.connect(exporter.item_scraped, signals.item_scraped)
    return exporter


class FeedWatch:
    """Tells which pages can be sealed, as feeds (or batches of them) are stored.

    Scrapy sends ``feed_slot_closed`` whether storing worked or not, so the storages themselves are asked.
    """

    def __init__(self, exporter: FeedExporter | None, seal: Callable[[list[int]], None]) -> None:
        """``seal`` is called with the ids of pages whose feeds are all stored; without an exporter none has a feed."""
        self._exporter = exporter
        self._seal = seal
        #: Those that Scrapy writes to at this moment.
        self._open: list[Feed] = []
        self._waits_for: dict[int, set[Feed]] = {}

    def open_feeds(self) -> set[Feed]:
        """The feeds that may take the item whose ``item_scraped`` is being handled.

        A feed's filter may refuse it; asking the filter twice could change its answer, so the page then waits for
        one feed more than it had to.
        """
        slots = self._exporter.slots if self._exporter is not None else []
        self._open = [self._feed(slot) for slot in slots]
        return set(self._open)

    def hold(self, id: int, feeds: set[Feed]) -> None:
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

    def close(self) -> None:
        """All feeds are done: those without items, which no one stores, hold nothing back."""
        for feed in self._open:
            if not feed.slot.itemcount:
                self._is_stored(feed)

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
    """A sealed page survives a power cut, so the feed that holds it has to as well."""
    try:
        file.flush()
        os.fsync(file.fileno())
    except (AttributeError, OSError, ValueError):  # standard output, or no file of the system
        pass
