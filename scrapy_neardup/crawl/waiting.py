"""Wait for an event, or for room: items that wait to be judged must not fill the memory."""

from __future__ import annotations

from typing import Any

from itemadapter import ItemAdapter
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

#: The least size of an item: its task takes so much.
_LEAST = 10_000
#: Seconds between two looks: nothing signals the end of a response.
_PAUSE = 0.05


class Event:
    """Happens once, on any event loop that Scrapy supports; any number of tasks may wait for it."""

    def __init__(self) -> None:
        self._happened = False
        self._waiting: list[Deferred[None]] = []

    def happen(self) -> None:
        """Wake all tasks that wait."""
        self._happened = True
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            _fire(one)

    async def wait(self, seconds: float) -> bool:
        """Wait at most so long; returns whether it has happened."""
        if self._happened:
            return True
        arrived: Deferred[None] = Deferred()
        self._waiting.append(arrived)
        timer = call_later(seconds, _fire, arrived)
        try:
            await maybe_deferred_to_future(arrived)
        finally:
            timer.cancel()
        return self._happened


def _fire(deferred: Deferred[None]) -> None:
    if not deferred.called:
        deferred.callback(None)


class Backlog:
    """Counts the sizes of items before the judge, in bytes or characters.

    Scrapy counts the bytes of responses until their items are through, and sends no further requests above
    SCRAPER_SLOT_MAX_ACTIVE_SIZE. It counts neither the content of items nor items of ``start()``, so this adds them.
    ``start()`` waits with requests, too, or Scrapy would take all of them into its scheduler. An item in another
    pipeline is not counted, because that pipeline may wait for further items.
    """

    def __init__(self) -> None:
        self._slot: Any = None
        self._has_room = Event()

    def join(self, slot: Any) -> None:
        """Count in Scrapy's scraper slot from now on, up to its bound."""
        self._slot = slot

    def add(self, item: Any) -> int:
        """Add an item; returns its size, for ``remove``."""
        size = _size_of(item)
        if self._slot is not None:
            self._slot.active_size += size
        return size

    def remove(self, size: int) -> None:
        """The item is judged."""
        if self._slot is not None:
            self._slot.active_size -= size
            self._has_room.happen()

    async def wait_for_room(self) -> None:
        """Wait while there is too much."""
        while self._slot is not None and self._slot.needs_backout():
            self._has_room = Event()
            await self._has_room.wait(_PAUSE)


def _size_of(item: Any) -> int:
    """The size of an item's content.

    >>> _size_of({"html": "x" * 30_000, "lines": ["y" * 5_000], "n": 1})
    35000
    """
    values = ItemAdapter(item).values() if ItemAdapter.is_item(item) else ()
    parts = (part for value in values for part in (value if isinstance(value, (list, tuple)) else [value]))
    return max(_LEAST, sum(len(part) for part in parts if isinstance(part, (str, bytes))))
