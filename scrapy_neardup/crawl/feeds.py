"""Which pages' items are safe: those whose every feed has been stored."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import FeedExporter, FeedSlot
from twisted.internet.defer import Deferred


class FeedWatch:
    """Tells which pages can be sealed, as feeds (or batches of them) are stored.

    Scrapy sends ``feed_slot_closed`` whether storing worked or not, so the storages themselves are asked.
    """

    def __init__(self, crawler: Crawler, seal: Callable[[list[int]], None]) -> None:
        self._crawler = crawler
        self._seal = seal
        self._exporter: FeedExporter | None = None
        self._slots_of: dict[int, set[FeedSlot]] = {}
        self._pages_in: dict[FeedSlot, set[int]] = {}
        # A crawl may go through thousands of batches; those that are done must not stay in memory for this.
        self._watched: WeakSet[FeedSlot] = WeakSet()
        self._stored: WeakSet[FeedSlot] = WeakSet()

    def open(self, item_scraped: Callable[..., Any]) -> bool:
        """Connect a handler of item_scraped before the exporter's; returns whether there are feeds.

        Before it, because exporting an item can close the batch that holds it and open the next one.
        """
        connect = self._crawler.signals.connect
        self._exporter = self._crawler.get_extension(FeedExporter)
        if self._exporter is not None:
            self._crawler.signals.disconnect(self._exporter.item_scraped, signals.item_scraped)
        connect(item_scraped, signals.item_scraped)
        if self._exporter is not None:
            connect(self._exporter.item_scraped, signals.item_scraped)
        return self._exporter is not None

    def slots(self) -> set[FeedSlot]:
        """The feeds that may take the item whose ``item_scraped`` is being handled.

        A feed's filter may refuse it; asking the filter twice could change its answer, so the page then waits for
        one feed more than it had to.
        """
        if self._exporter is None:
            return set()
        for slot in self._exporter.slots:
            if slot not in self._watched:
                self._watched.add(slot)
                self._watch(slot)
        return set(self._exporter.slots)

    def hold(self, id: int, slots: set[FeedSlot]) -> None:
        """Seal the page once all these feeds are stored."""
        waiting = {slot for slot in slots if slot not in self._stored}
        if not waiting:
            self._seal([id])
            return
        self._slots_of.setdefault(id, set()).update(waiting)
        for slot in waiting:
            self._pages_in.setdefault(slot, set()).add(id)

    def drop(self, id: int) -> None:
        """The page was taken back."""
        for slot in self._slots_of.pop(id, ()):
            self._pages_in[slot].discard(id)

    def close(self) -> None:
        """All feeds are done: those without items, which no one stores, hold nothing back."""
        for slot in [slot for slot in self._pages_in if not slot.itemcount]:
            self._is_stored(slot)

    def _watch(self, slot: FeedSlot) -> None:
        store = slot.storage.store

        def stored(result: Any) -> Any:
            self._is_stored(slot)
            return result

        def store_and_tell(file: Any) -> Any:
            _to_disk(file)
            result: Any = store(file)
            if isinstance(result, Deferred):
                return result.addCallback(stored)
            if inspect.isawaitable(result):
                return _then(result, stored)
            return stored(result)

        slot.storage.store = store_and_tell  # type: ignore[method-assign]

    def _is_stored(self, slot: FeedSlot) -> None:
        self._stored.add(slot)
        ready = []
        for id in sorted(self._pages_in.pop(slot, ())):
            self._slots_of[id].discard(slot)
            if not self._slots_of[id]:
                del self._slots_of[id]
                ready.append(id)
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
