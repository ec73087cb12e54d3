"""Expiry: forget pages that were not seen for long, and those unseen for longest when there are too many.

Pages wait in a queue in the order in which they were last seen. For most pages this is the order of their ids, so the
queue has the records from the *frontier* on, and a row for each page before it that must wait again. Each judged page
takes a small step at the head of the queue. If a page there was seen again meanwhile, it goes back to its place, so a
sight writes nothing extra. Unsealed pages, and those that they replace, leave the queue; a seal or a roll-back puts
them into it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import islice

from scrapy_neardup.kv.base import Changes
from scrapy_neardup.state import layout
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.records import PageRows

#: The key of the frontier: the id of the next record in the queue.
FRONTIER = layout.meta_key("frontier")
#: Pages to look at, and to remove, in a step.
_LOOKS, _MOST = 8, 4
#: Seconds after a page's first sight that still belong to its own item.
_AGAIN = 60
#: Looks in a TTL at a queue in which nothing is due. Other crawlers, and later clocks, may have changed its head.
_ROUNDS = 16

#: A page that waits: its time in the queue, in seconds since 1970; its id; its row, or nothing.
Waiting = tuple[int, int, bytes]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seconds that a page is known after its last sight, and the maximum number of pages; None: unbounded."""

    ttl: float | None = None
    max_pages: int | None = None

    def exceeded(self, pages: int) -> bool:
        """Whether there are too many pages."""
        return self.max_pages is not None and pages > self.max_pages


class Expiry:
    """Keeps the bounds of a state."""

    def __init__(self, rows: PageRows) -> None:
        """Raises StoreDamaged."""
        self._rows = rows
        self._kv = rows.kv
        self._frontier: int | None = None
        self._frontier = self._read_frontier()
        #: No row of the queue is smaller. A scan of LevelDB would pass all deleted rows before it.
        self._first = layout.QUEUE
        #: Nothing is overdue before this time.
        self._next_look = 0.0

    def expire(self, bounds: Bounds, is_unsealed: Callable[[int], bool]) -> int:
        """Remove a few pages that exceed the bounds; return how many. Call it for each page."""
        now, ttl = self._rows.clock.now(), bounds.ttl
        if not bounds.exceeded(self._rows.pages) and (ttl is None or now < self._next_look):
            return 0
        overdue = 0.0 if ttl is None else now - ttl
        changes, gone, first = Changes(), 0, self._first
        head, back, frontier = now, now, self._read_frontier()
        for due, id, row in islice(self._queue(frontier, now), _LOOKS):
            is_too_many = bounds.exceeded(self._rows.pages - gone)
            if gone == _MOST or due > back or (not is_too_many and due >= overdue):
                head = due
                break
            if row:
                changes.delete(row)
                first = row
            else:
                frontier = id + 1
            record = self._rows.kept(id, changes)
            seen = None if record is None or is_unsealed(id) else self._last_seen(record)
            if seen is not None and (seen < overdue or (is_too_many and seen <= due + _AGAIN)):
                gone += self._rows.erase(id, changes)
            elif seen is not None:
                changes.put(layout.queue_key(seen, id), b"")
                back = min(back, seen)
        if frontier > self._read_frontier():
            changes.put(FRONTIER, layout.pack_id(frontier))
        if changes.puts or changes.deletes:
            self._rows.apply(changes, added=-gone)
            self._frontier = frontier
            self._first = min([first, *(key for key in changes.puts if key.startswith(layout.QUEUE))])
        elif ttl is not None:
            self._next_look = min(now + ttl / _ROUNDS, head + ttl)
        return gone

    def requeue(self, id: int, changes: Changes) -> None:
        """Put a page back into the queue if that has passed it: it may expire from now on."""
        if 0 < id < self._read_frontier():
            row = layout.queue_key(id // 10**9, id)
            changes.put(row, b"")
            self._first, self._next_look = min(self._first, row), 0.0

    def _read_frontier(self) -> int:
        """Return the frontier, which other crawls of a shared state move too. Raises StoreDamaged."""
        if self._frontier is not None and not self._kv.is_shared:
            return self._frontier
        packed = self._kv.get(FRONTIER)
        if packed is not None and len(packed) != len(layout.pack_id(1)):
            raise self._kv.damaged("the frontier of its expiry cannot be read")
        return layout.unpack_id(packed or b"")

    def _queue(self, frontier: int, now: float) -> Iterator[Waiting]:
        """Yield pages from the head of the queue on."""
        returned = (key for key, _ in self._kv.scan_from(self._first, layout.QUEUE))
        ids = (layout.last_id(key) for key, _ in self._kv.scan_from(layout.record_key(frontier), layout.RECORDS))
        return merge(
            ((layout.generation_of(key), layout.last_id(key), key) for key in returned),
            # If the clock was ahead, ids do not tell when a page was seen.
            ((id // 10**9 if id <= now * 1e9 else 0, id, b"") for id in ids),
        )

    def _last_seen(self, record: Record) -> int | None:
        """Return when a page was last seen; None if its URL has a later version, and it must stay."""
        written = self._kv.get(self._rows.url_key(record.url))
        if written is None:
            return None
        id, seen = layout.unpack_seen(written)
        return seen if id == record.id else None
