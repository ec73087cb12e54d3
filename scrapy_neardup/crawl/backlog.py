"""A bound on the items that wait to be judged: while it is reached, Scrapy sends no further requests.

Scrapy counts the bytes of responses until their items are through, and holds requests back (its setting
SCRAPER_SLOT_MAX_ACTIVE_SIZE). It does not count what an item brings with it, nor items of ``start()``. So a spider that
yields pages faster than they are judged would fill the memory with them. What is counted here is added to Scrapy's own
count. ``start()`` waits, also with requests: else Scrapy would take all of them into its scheduler meanwhile. An item
that another pipeline holds is not counted, as that may wait for further items.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from itemadapter import ItemAdapter

from scrapy_neardup.crawl.event import Event

#: What an item counts at least: the task that carries it takes so much.
_LEAST = 10_000
#: Seconds between two looks: nobody says when a response is done with.
_PAUSE = 0.05


class Backlog:
    """The items before the judge, with their sizes in bytes or characters."""

    def __init__(self) -> None:
        self._slot: Any = None
        self._has_room = Event()

    def join(self, slot: Any) -> None:
        """Count in Scrapy's scraper slot from now on, up to the bound that it has."""
        self._slot = slot

    def add(self, item: Any) -> int:
        """An item comes before the judge; returns its size, which is to be removed again."""
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
        """Wait while too much is there."""
        while self._slot is not None and self._slot.needs_backout():
            self._has_room = Event()
            await self._has_room.wait(_PAUSE)


def _size_of(item: Any) -> int:
    """How much an item brings with it.

    >>> _size_of({"html": "x" * 30_000, "lines": ["y" * 5_000], "n": 1})
    35000
    """
    values: Iterable[Any] = ItemAdapter(item).values() if ItemAdapter.is_item(item) else ()
    return max(_LEAST, sum(map(_length, values)))


def _length(value: Any) -> int:
    if isinstance(value, (str, bytes)):
        return len(value)
    return sum(len(one) for one in value if isinstance(one, (str, bytes))) if isinstance(value, (list, tuple)) else 0
