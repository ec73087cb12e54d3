"""Expiry: forget pages that were not seen for long, and the oldest when there are too many.

Each judged page takes a small step, so the state of an endless crawl stays bounded. Cursors move over the pages by age,
and their places are written with each removal. The first cursor looks for pages last seen too long ago; it waits at
pages that are too young, and restarts a few times in a TTL, because some pages were seen again. If there are too many
pages, a frontier removes the oldest and passes those that were seen again; a second cursor moves among these and
removes what was last seen before the page at the frontier. So roughly the pages unseen for longest go, and a sight
writes nothing extra. Unsealed pages stay, as do the pages that they replace.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from scrapy_neardup.kv.base import NO_ID, Changes, KeyValueStore
from scrapy_neardup.state import layout
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.records import PageRows

#: The key of the cursors.
HANDS = layout.meta_key("hands")
_PACKED = struct.Struct(">3Q")
#: Pages per step of a cursor, and pages that the frontier passes at most.
_LOOKS, _PASSES = 4, 16
#: Surplus pages to remove per step.
_MOST = 4
#: Seconds after a page's first sight that still belong to its own item.
_AGAIN = 60
#: Rounds in a TTL.
_ROUNDS = 16


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seconds that a page is known after its last sight, and the maximum number of pages; None: unbounded."""

    ttl: float | None = None
    max_pages: int | None = None

    def exceeded(self, pages: int) -> bool:
        """Whether there are too many pages."""
        return self.max_pages is not None and pages > self.max_pages


@dataclass(slots=True)
class ScanCursor:
    """A place among the pages by id. ``at``: the next page.

    ``kept``: the smallest id behind the cursor that still exists; None for none.
    """

    at: int = 0
    kept: int | None = 0

    def keep(self, id: int) -> None:
        """Note that a page behind the cursor stays."""
        self.kept = id if self.kept is None else min(self.kept, id)

    def turn(self) -> None:
        """Restart at the first page."""
        self.at, self.kept = self.at if self.kept is None else self.kept, None


@dataclass(slots=True)
class Cursors:
    """The places of the periodic scans.

    ``frontier``: pages before this one exist only if the frontier passed them. ``turned``: when the first cursor last
    restarted, in seconds since 1970. ``moved``: whether they have moved since they were written.
    """

    by_time: ScanCursor
    by_number: ScanCursor
    frontier: int = 0
    turned: float = 0.0
    moved: bool = False

    @classmethod
    def load(cls, kv: KeyValueStore) -> Cursors:
        """Raises StoreDamaged."""
        packed = kv.get(HANDS)
        try:
            by_time, by_number, frontier = _PACKED.unpack(packed or bytes(_PACKED.size))
        except struct.error as error:
            raise kv.damaged(f"the position of its expiry scan cannot be read ({error})") from None
        return cls(ScanCursor(by_time), ScanCursor(by_number), frontier)

    def pack(self) -> bytes:
        """Return the row."""
        return _PACKED.pack(self.by_time.at, self.by_number.at, self.frontier)

    def unwritten(self) -> dict[bytes, bytes]:
        """Return the row, if they have moved."""
        return {HANDS: self.pack()} if self.moved else {}

    def copy(self) -> Cursors:
        """Return a copy that does not move with these."""
        return replace(self, by_time=replace(self.by_time), by_number=replace(self.by_number))

    def add(self, id: int) -> None:
        """Note a new page. Pages arrive after they got their ids, so the cursors may have passed it."""
        if id < self.by_number.at:
            self.by_number.at = id
        self.release(id)

    def release(self, id: int) -> None:
        """Move back to a page that may expire from now on."""
        if id < self.by_time.at or id < self.frontier:
            self.by_time.at = min(self.by_time.at, id)
            self.frontier = min(self.frontier, id)
            self.moved = True


class Expiry:
    """Keeps the bounds of a state."""

    def __init__(self, rows: PageRows, cursors: Cursors, is_unsealed: Callable[[int], bool]) -> None:
        self.cursors = cursors
        self._rows = rows
        self._is_unsealed = is_unsealed

    def expire(self, bounds: Bounds) -> int:
        """Remove a few pages that exceed the bounds; return how many. Call it for each page."""
        changes, before = Changes(), self.cursors.copy()
        try:
            gone = 0 if bounds.ttl is None else self._remove_overdue(bounds.ttl, changes)
            if bounds.max_pages is not None and (surplus := self._rows.pages - gone - bounds.max_pages) > 0:
                gone += self._remove_surplus(min(surplus, _MOST), changes)
            if gone:
                changes.put(HANDS, self.cursors.pack())
                self._rows.apply(changes, added=-gone)
        except BaseException:  # the pages are still there, and are to be looked at again
            self._restore(before)
            raise
        if gone:
            self.cursors.moved = False
        return gone

    def _restore(self, before: Cursors) -> None:
        for name in ("by_time", "by_number", "frontier", "turned", "moved"):
            setattr(self.cursors, name, getattr(before, name))

    def _remove_overdue(self, ttl: float, changes: Changes) -> int:
        now, cursor = self._rows.clock.now(), self.cursors.by_time
        # If the clock was ahead, ids do not tell when a page was seen.
        horizon = int((now - ttl) * 1e9) if self._rows.clock.newest <= now * 1e9 else NO_ID
        if cursor.at >= horizon and not self._turns(now, ttl):
            return 0
        gone = looked = 0
        for id, packed in self._records_from(cursor.at, _LOOKS):
            if id >= horizon:
                cursor.at = id
                break
            looked, cursor.at, record = looked + 1, id + 1, self._rows.unpack_record(id, packed)
            seen = self._last_seen_if_free(record)
            if seen is not None and seen < now - ttl:
                gone += self._rows.erase(id, changes)
            else:
                cursor.keep(id)
        else:
            if looked < _LOOKS:
                cursor.at = max(cursor.at, horizon)
        if cursor.at >= horizon:
            self._turns(now, ttl)
        return gone

    def _turns(self, now: float, ttl: float) -> bool:
        """Restart the first cursor at its end, if enough time has passed; return whether it did."""
        if now < self.cursors.turned + ttl / _ROUNDS:
            return False
        self.cursors.by_time.turn()
        self.cursors.turned = now
        return True

    def _remove_surplus(self, most: int, changes: Changes) -> int:
        gone, cursors, erase = 0, self.cursors, self._rows.erase
        old = sorted(self._behind_frontier(changes))
        for id, packed in self._records_from(cursors.frontier, _PASSES):
            cursors.frontier = id
            if gone == most:
                return gone
            record = self._rows.unpack_record(id, packed)
            seen = None if layout.record_key(id) in changes.deletes else self._last_seen_if_free(record)
            if seen is not None and seen <= record.first_seen + _AGAIN:
                while old and old[0][0] <= seen and gone < most:
                    gone += erase(old.pop(0)[1], changes)
                if gone == most:
                    return gone
                gone += erase(id, changes)
            elif seen is not None:
                old.append((seen, id))
                old.sort()
            cursors.frontier = id + 1
        return gone or (erase(old[0][1], changes) if old else 0)

    def _behind_frontier(self, changes: Changes) -> Iterator[tuple[int, int]]:
        """Yield a few pages that the frontier passed: last seen, id."""
        cursor, frontier, looked = self.cursors.by_number, self.cursors.frontier, 0
        if cursor.at >= frontier:  # its last look ended just there
            cursor.turn()
        if cursor.at >= frontier:
            return
        for id, packed in self._records_from(cursor.at, _LOOKS):
            if id >= frontier:
                break
            looked, cursor.at = looked + 1, id + 1
            if layout.record_key(id) in changes.deletes:
                continue
            cursor.keep(id)
            if (seen := self._last_seen_if_free(self._rows.unpack_record(id, packed))) is not None:
                yield seen, id
        if looked < _LOOKS:
            cursor.at = frontier
            cursor.turn()

    def _records_from(self, id: int, limit: int) -> Iterator[tuple[int, bytes]]:
        """Yield the next records by id."""
        self.cursors.moved = True
        rows = islice(self._rows.kv.scan_from(layout.record_key(id), layout.RECORDS), limit)
        return ((layout.last_id(key), packed) for key, packed in rows)

    def _last_seen_if_free(self, record: Record) -> int | None:
        """Return when a page was last seen; None if it must stay."""
        written = self._rows.kv.get(self._rows.url_key(record.url))
        if written is None:
            return None
        id, seen = layout.unpack_seen(written)
        return seen if id == record.id and not self._is_unsealed(id) else None
