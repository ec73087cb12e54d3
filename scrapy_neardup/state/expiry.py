"""Expiry: forget pages that were not seen for long, and the oldest when there are too many."""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from scrapy_neardup.kv.base import Changes
from scrapy_neardup.state import layout
from scrapy_neardup.state.integrity import Tallied
from scrapy_neardup.state.postings import Postings
from scrapy_neardup.state.record import Record


class Removal(Tallied):
    """Removes a page with all rows that point to it, as changes of a batch."""

    #: Crawls of this process that may have unsealed pages.
    _running: set[int]
    _postings: Postings

    @abstractmethod
    def _url_key(self, url: str) -> bytes:
        """Return the key of a URL row."""

    @abstractmethod
    def now(self) -> float:
        """Return seconds since 1970. A simulation may replace the clock."""

    def record(self, id: int) -> Record | None:
        """Return the record with this id, or None."""
        packed = self._get(layout.record_key(id))
        return None if packed is None else self._unpacked(id, packed)

    def _unpacked(self, id: int, packed: bytes) -> Record:
        try:
            return Record.unpack(id, packed)
        except ValueError as error:
            raise self.damaged(f"the record {id:016x} cannot be read ({error})") from None

    def _withdraw(self, journal: bytes, changes: Changes) -> int:
        id, replaced = layout.last_id(journal), self._get(journal) or b""
        record = self._kept(id, changes)
        changes.delete(journal)
        if record is None:
            return 0
        url = self._url_key(record.url)
        newest = self._points_to(url, id, changes)
        gone = self._erase(id, changes)
        if newest and replaced:
            changes.put(url, layout.pack_seen(layout.unpack_id(replaced), self.now()))
            self._may_go(layout.unpack_id(replaced))
        elif not newest:  # a later version may name it; that one now replaces what this one would have
            for later, names in self._scan(b"j"):
                if names == layout.pack_id(id) and later not in changes.deletes:
                    changes.put(later, replaced)
        return gone

    def _may_go(self, id: int) -> None:
        """A page may expire from now on; see ``Expiry``."""

    def _supersede(self, id: int, changes: Changes) -> int:
        """Remove a page that was replaced permanently, and those that it had replaced. Return how many.

        All in one batch, so later changes of an unsealed page never touch the earlier ones.
        """
        gone = 0
        while id:
            gone += self._erase(id, changes)
            id = self._off_the_list(id, changes, self._running)
        return gone

    def _off_the_list(self, id: int, changes: Changes, generations: Iterable[int]) -> int:
        """Remove a page from the journal; return the page that it replaces, or 0."""
        for generation in generations:
            journal = layout.journal_key(generation, id)
            if journal not in changes.deletes and (replaced := self._get(journal)) is not None:
                changes.delete(journal)
                return layout.unpack_id(replaced)
        return 0

    def _erase(self, id: int, changes: Changes) -> int:
        """Remove a record with all rows that point to it; return 0 or 1."""
        record = self._kept(id, changes)
        if record is None:
            return 0
        changes.delete(layout.record_key(id))
        changes.delete(layout.evidence_key(id))
        if record.former:
            changes.delete(layout.former_key(id))
        self._postings.remove(record.keys, id, changes)
        self._lose_body(record, changes)
        url = self._url_key(record.url)
        if self._points_to(url, id, changes):
            changes.delete(url)
        return 1

    def _lose_body(self, record: Record, changes: Changes) -> None:
        """Remove the row of a page's digest, unless a later page has it."""
        key = layout.body_key(record.body)
        if record.is_found_by_body and self._get(key) == layout.pack_id(record.id):
            changes.delete(key)

    def _kept(self, id: int, changes: Changes) -> Record | None:
        """Return the record, unless these changes remove it."""
        return self.record(id) if id and layout.record_key(id) not in changes.deletes else None

    def _points_to(self, url: bytes, id: int, changes: Changes) -> bool:
        seen = changes.puts.get(url) or self._get(url)
        return seen is not None and layout.unpack_seen(seen)[0] == id


# Each judged page takes a small step, so the state of an endless crawl stays bounded. Cursors move over the pages by
# age, and their places are written with each removal. The first cursor looks for pages last seen too long ago; it waits
# at pages that are too young, and restarts a few times in a TTL, because some pages were seen again. If there are too
# many pages, a frontier removes the oldest and passes those that were seen again; a second cursor moves among these and
# removes what was last seen before the page at the frontier. So roughly the pages unseen for longest go, and a sight
# writes nothing extra. Unsealed pages stay, as do the pages that they replace.


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
#: Larger than every id.
_NO_ID = 2**64 - 1


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
    kept: int | None = None

    def keep(self, id: int) -> None:
        """Note that a page behind the cursor stays."""
        self.kept = id if self.kept is None else min(self.kept, id)

    def turn(self) -> None:
        """Restart at the first page."""
        self.at, self.kept = self.at if self.kept is None else self.kept, None


class Expiry(Removal):
    """Keeps the bounds of a store."""

    #: The number of pages, with copies and unjudged pages.
    pages: int
    _newest: int
    _by_time: ScanCursor
    _by_number: ScanCursor
    #: When the first cursor last restarted, in seconds since 1970.
    _turned = 0.0
    #: Pages before this one exist only if the frontier passed them.
    _frontier: int
    #: Whether the cursors have moved since they were written.
    _moved = False

    @abstractmethod
    def _commit(self, changes: Changes) -> None:
        """Write, and sync now and then."""

    def expire(self, bounds: Bounds) -> int:
        """Remove a few pages that exceed the bounds; return how many. Call it for each page."""
        changes = Changes()
        before = replace(self._by_time), replace(self._by_number), self._frontier, self._turned, self._moved
        try:
            gone = 0 if bounds.ttl is None else self._overdue(bounds.ttl, changes)
            if bounds.max_pages is not None and (surplus := self.pages - gone - bounds.max_pages) > 0:
                gone += self._surplus(min(surplus, _MOST), changes)
            if gone:
                changes.put(HANDS, self._packed_hands())
                self._commit(changes)
        except BaseException:  # the pages are still there, and are to be looked at again
            self._by_time, self._by_number, self._frontier, self._turned, self._moved = before
            raise
        if gone:
            self._moved = False
            self.pages -= gone
        return gone

    def _overdue(self, ttl: float, changes: Changes) -> int:
        now, hand = self.now(), self._by_time
        # If the clock was ahead, ids do not tell when a page was seen.
        horizon = int((now - ttl) * 1e9) if self._newest <= now * 1e9 else _NO_ID
        if hand.at >= horizon and not self._turns(hand, now, ttl):
            return 0
        gone = looked = 0
        for id, packed in self._on_from(hand.at, _LOOKS):
            if id >= horizon:
                hand.at = id
                break
            looked, hand.at, record = looked + 1, id + 1, self._unpacked(id, packed)
            seen = self._last_seen_if_free(record)
            if seen is not None and seen < now - ttl:
                gone += self._erase(id, changes)
            else:
                hand.keep(id)
        else:
            if looked < _LOOKS:
                hand.at = max(hand.at, horizon)
        if hand.at >= horizon:
            self._turns(hand, now, ttl)
        return gone

    def _turns(self, hand: ScanCursor, now: float, ttl: float) -> bool:
        """Restart the cursor at its end, if enough time has passed; return whether it did."""
        if now < self._turned + ttl / _ROUNDS:
            return False
        hand.turn()
        self._turned = now
        return True

    def _surplus(self, most: int, changes: Changes) -> int:
        gone, passed = 0, self._behind_frontier(changes)
        old = sorted(passed)
        for id, packed in self._on_from(self._frontier, _PASSES):
            self._frontier = id
            if gone == most:
                return gone
            record = self._unpacked(id, packed)
            seen = None if layout.record_key(id) in changes.deletes else self._last_seen_if_free(record)
            if seen is not None and seen <= record.first_seen + _AGAIN:
                while old and old[0][0] <= seen and gone < most:
                    gone += self._erase(old.pop(0)[1], changes)
                if gone == most:
                    return gone
                gone += self._erase(id, changes)
            elif seen is not None:
                old.append((seen, id))
                old.sort()
            self._frontier = id + 1
        return gone or (self._erase(old[0][1], changes) if old else 0)

    def _behind_frontier(self, changes: Changes) -> Iterator[tuple[int, int]]:
        """Yield a few pages that the frontier passed: last seen, id."""
        hand, looked = self._by_number, 0
        if hand.at >= self._frontier:  # its last look ended just there
            hand.turn()
        if hand.at >= self._frontier:
            return
        for id, packed in self._on_from(hand.at, _LOOKS):
            if id >= self._frontier:
                break
            looked, hand.at = looked + 1, id + 1
            if layout.record_key(id) in changes.deletes:
                continue
            hand.keep(id)
            if (seen := self._last_seen_if_free(self._unpacked(id, packed))) is not None:
                yield seen, id
        if looked < _LOOKS:
            hand.at = self._frontier
            hand.turn()

    def _on_from(self, id: int, limit: int) -> Iterator[tuple[int, bytes]]:
        """Yield the next records by id."""
        self._moved = True
        rows = islice(self._rows_from(layout.record_key(id), b"r"), limit)
        return ((layout.last_id(key), packed) for key, packed in rows)

    def _last_seen_if_free(self, record: Record) -> int | None:
        """Return when a page was last seen; None if it must stay."""
        written = self._get(self._url_key(record.url))
        if written is None:
            return None
        id, seen = layout.unpack_seen(written)
        return seen if id == record.id and not self._is_unsealed(id) else None

    def _is_unsealed(self, id: int) -> bool:
        running = (generation for generation in self._running if generation < id)
        return any(self._get(layout.journal_key(generation, id)) is not None for generation in running)

    def _load_hands(self) -> None:
        packed = self._get(HANDS)
        try:
            by_time, by_number, self._frontier = _PACKED.unpack(packed or bytes(_PACKED.size))
        except struct.error as error:
            raise self.damaged(f"the position of its expiry scan cannot be read ({error})") from None
        self._by_time, self._by_number = ScanCursor(by_time, kept=0), ScanCursor(by_number, kept=0)

    def _packed_hands(self) -> bytes:
        return _PACKED.pack(self._by_time.at, self._by_number.at, self._frontier)

    def _unwritten_hands(self) -> dict[bytes, bytes]:
        """Return the row of the cursors, if they have moved."""
        return {HANDS: self._packed_hands()} if self._moved else {}

    def _may_go(self, id: int) -> None:
        """Move cursor and frontier back to a page that may expire now."""
        if id < self._by_time.at or id < self._frontier:
            self._by_time.at = min(self._by_time.at, id)
            self._frontier = min(self._frontier, id)
            self._moved = True

    def _added(self, id: int) -> None:
        """Note a new page. Pages arrive after they got their ids, so the cursors may have passed it."""
        if id < self._by_number.at:
            self._by_number.at = id
        self._may_go(id)
