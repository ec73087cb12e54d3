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
#: Nanoseconds by which other crawls may move the frontier of a shared state until it is read again.
_MARGIN = 3600 * 10**9
#: Looks in a TTL at a queue in which nothing is due. Other crawlers, and later clocks, may have changed its head.
_ROUNDS = 16

#: A page that waits: its time in the queue, in seconds since 1970; its id; its row or nothing; its record or nothing.
Waiting = tuple[int, int, bytes, bytes]
#: Behind all rows of the queue.
_NONE = b"p"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seconds that a page is known after its last sight, and the maximum number of pages; None: unbounded."""

    ttl: float | None = None
    max_pages: int | None = None

    def exceeded(self, pages: int) -> bool:
        return self.max_pages is not None and pages > self.max_pages


class Expiry:
    """Keeps the bounds of a state."""

    def __init__(self, rows: PageRows) -> None:
        """Raises StoreDamaged."""
        self._rows = rows
        self._kv = rows.kv
        self._frontier: int | None = None
        #: The frontier that was read last.
        self._last_known = 0
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
        changes, gone, first = Changes(), 0, b""
        head, back, frontier = now, now, self._read_frontier()
        for due, id, row, packed in islice(self._queue(frontier, now), _LOOKS):
            is_too_many = bounds.exceeded(self._rows.pages - gone)
            if gone == _MOST or due > back or (not is_too_many and due >= overdue):
                head = due
                break
            if row:
                changes.delete(row)
                first = row
            else:
                frontier = id + 1
            is_gone = layout.record_key(id) in changes.deletes
            record = None if is_gone else self._rows.unpack_record(id, packed) if packed else self._rows.record(id)
            seen = None if record is None or is_unsealed(id) else self._last_seen(record)
            if record is None or seen is None:
                continue
            if seen < overdue or (is_too_many and seen <= due + _AGAIN):
                self._rows.erase_page(record, changes)
                gone += 1
            else:
                changes.put(layout.queue_key(seen, id), b"")
                back = min(back, seen)
        if frontier > self._read_frontier():
            changes.put(FRONTIER, layout.pack_id(frontier))
        if changes.puts or changes.deletes:
            self._rows.apply(changes, added=-gone)
            self._frontier = frontier
            if not self._kv.is_shared:
                back_rows = (key for key in changes.puts if key.startswith(layout.QUEUE))
                self._first = min([first or self._first, *back_rows])
        elif ttl is not None:
            self._next_look = min(now + ttl / _ROUNDS, head + ttl)
        return gone

    def requeue(self, id: int, changes: Changes, *, is_new: bool = False) -> None:
        """Put a page back into the queue if that has passed it: it may expire from now on.

        ``is_new``: the page is filed just now. Then the frontier of a shared state is not read: each step of another
        crawl would stop the write. A page near the last known frontier gets a row, even if it needs none.
        """
        frontier = self._last_known + _MARGIN if is_new and self._kv.is_shared else self._read_frontier()
        if 0 < id < frontier:
            row = layout.queue_key(id // 10**9, id)
            changes.put(row, b"")
            self._first, self._next_look = min(self._first, row), 0.0

    def _read_frontier(self) -> int:
        """Return the frontier, which other crawls of a shared state move too. Raises StoreDamaged."""
        if self._frontier is not None and not self._kv.is_shared:
            return self._frontier
        packed = self._kv.get(FRONTIER)
        if packed is not None and len(packed) != len(layout.pack_id(1)):
            raise self._kv.damage_error("the frontier of its expiry cannot be read")
        self._last_known = layout.last_id(packed or b"")
        return self._last_known

    def _queue(self, frontier: int, now: float) -> Iterator[Waiting]:
        """Yield pages from the head of the queue on."""
        others = self._kv.scan(layout.RECORDS, start=layout.record_key(frontier))
        rows = ((layout.last_id(key), packed) for key, packed in others)
        # If the clock was ahead, ids do not tell when a page was seen.
        return merge(
            self._returned(), ((id // 10**9 if id <= now * 1e9 else 0, id, b"", packed) for id, packed in rows)
        )

    def _returned(self) -> Iterator[Waiting]:
        """Yield the pages with a row in the queue."""
        if self._first >= _NONE:
            return
        key = b""
        for key, _ in self._kv.scan(layout.QUEUE, start=self._first):
            yield layout.generation_of(key), layout.last_id(key), key, b""
        if not key and not self._kv.is_shared:
            self._first = _NONE

    def _last_seen(self, record: Record) -> int | None:
        """Return when a page was last seen; None if its URL has a later version, and it must stay."""
        written = self._kv.get(self._rows.url_key(record.url))
        if written is None:
            return None
        id, seen = layout.unpack_seen(written)
        return seen if id == record.id else None
