"""Expiry: forget pages that were not seen for long, and the oldest when there are too many."""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from scrapy_neardup.state import layout
from scrapy_neardup.state.integrity import Tallied
from scrapy_neardup.state.kv import Changes
from scrapy_neardup.state.postings import Postings
from scrapy_neardup.state.record import Record

# ----------------------------------------------------------------------------------------------------------------------
# A page goes with all that points to it, and an unsealed one gives its place to the one before it.


class Removal(Tallied):
    """What a removal has to write, added to the changes of a batch."""

    #: Generations of this opening that may have unsealed pages.
    _running: set[int]
    _postings: Postings

    @abstractmethod
    def _url_key(self, url: str) -> bytes:
        """Where it is written which page is the newest of a URL."""

    @abstractmethod
    def now(self) -> float:
        """Seconds since 1970; a simulation may put another clock in its place."""

    def record(self, id: int) -> Record | None:
        """The record with this id; None if there is none, or no longer."""
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
        """Nobody needs this page any more, if it is not wanted for itself: see ``Expiry``."""

    def _supersede(self, id: int, changes: Changes) -> int:
        """Add the removal of a page in whose place another one is for good, and of those in whose place it was.

        All at once: what was not sealed is off its crawl's list, so nothing done to it later, or to the page in its
        place, touches those before it. Returns how many records that is.
        """
        gone = 0
        while id:
            gone += self._erase(id, changes)
            id = self._off_the_list(id, changes, self._running)
        return gone

    def _off_the_list(self, id: int, changes: Changes, generations: Iterable[int]) -> int:
        """Add that a page is not unsealed any more; returns the one in whose place it was to be, 0 if there is none."""
        for generation in generations:
            journal = layout.journal_key(generation, id)
            if journal not in changes.deletes and (replaced := self._get(journal)) is not None:
                changes.delete(journal)
                return layout.unpack_id(replaced)
        return 0

    def _erase(self, id: int, changes: Changes) -> int:
        """Add the removal of a record with all that points to it; returns how many records that is, 0 or 1."""
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
        """Have a page no longer found by its bytes, unless another one was since."""
        key = layout.body_key(record.body)
        if record.is_found_by_body and self._get(key) == layout.pack_id(record.id):
            changes.delete(key)

    def _kept(self, id: int, changes: Changes) -> Record | None:
        """The record, unless these changes remove it."""
        return self.record(id) if id and layout.record_key(id) not in changes.deletes else None

    def _points_to(self, url: bytes, id: int, changes: Changes) -> bool:
        seen = changes.puts.get(url) or self._get(url)
        return seen is not None and layout.unpack_seen(seen)[0] == id


# ----------------------------------------------------------------------------------------------------------------------
# Pages that were not seen for long are forgotten, a few with each page that comes, so an endless crawl's state ends.
#
# Hands go over the pages in the order in which they were first seen, a few pages at a time, and go on the next time
# where they were: from the beginning a scan would pass whatever was deleted there, and pages that stay would be looked
# at again and again. Where they are is written with what they remove, so that it outlives a crawl.
#
# * One looks for pages that were last seen too long ago. None that was first seen later can be among them, so there it
#   waits, and goes round once more a few times in a TTL, for pages that stayed as they had been seen again.
# * Where there are too many pages the oldest go, and a frontier moves on behind them. It passes over those seen again;
#   a second cursor goes round among these, and where one of them was last seen before the page on the frontier was,
#   it goes first. So about those go that were not seen for longest, and nothing has to be written where a page is seen.
#
# A page that is not sealed stays, as it may be taken back, and so does one in whose place a page is that is not sealed.


#: Where it stands how far the hands have come.
HANDS = layout.meta_key("hands")
_PACKED = struct.Struct(">3Q")
#: Pages that a hand looks at in a step, and those that the frontier passes over at most.
_LOOKS, _PASSES = 4, 16
#: Pages that a step removes at most where there are too many.
_MOST = 4
#: Seconds behind a page's first sight in which its own item arrives: a later sight is another one.
_AGAIN = 60
#: Rounds in a TTL.
_ROUNDS = 16
#: Larger than every id.
_NO_ID = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many seconds a page is known after it was last seen, and how many pages are; None: without bound."""

    ttl: float | None = None
    max_pages: int | None = None

    def exceeded(self, pages: int) -> bool:
        """Whether so many pages are too many."""
        return self.max_pages is not None and pages > self.max_pages


@dataclass(slots=True)
class ScanCursor:
    """A place among the pages by id. ``at``: the next one to be looked at.

    ``kept``: of the pages behind the hand no smaller id is still there; None if none is.
    """

    at: int = 0
    kept: int | None = None

    def keep(self, id: int) -> None:
        """The page with this id is behind the hand, and stays."""
        self.kept = id if self.kept is None else min(self.kept, id)

    def turn(self) -> None:
        """Go back to the first page."""
        self.at, self.kept = self.at if self.kept is None else self.kept, None


class Expiry(Removal):
    """What a store does to hold its bounds."""

    #: The number of pages; a copy is one, and so is a page that could not be judged.
    pages: int
    _newest: int
    _by_time: ScanCursor
    _by_number: ScanCursor
    #: When the first hand last turned, in seconds since 1970.
    _turned = 0.0
    #: No page before this one is there but those that were passed over.
    _frontier: int
    #: Whether it is to be written how far they have come.
    _moved = False

    @abstractmethod
    def _commit(self, changes: Changes) -> None:
        """Write, and now and then wait for the disk."""

    def expire(self, bounds: Bounds) -> int:
        """Take a small step to hold the bounds: remove a few pages at most, and return how many. Call it for each page.

        What is removed was last seen longer ago than ``ttl``, or was too much for ``max_pages``.
        """
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
        # After a clock that was ahead ids do not tell when a page was seen.
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
        """Whether the hand, which has come as far as it can, goes back to the first page."""
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
        """A few of the pages that the frontier has passed over: when they were last seen, and their ids."""
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
        """The next records by id."""
        self._moved = True
        rows = islice(self._rows_from(layout.record_key(id), b"r"), limit)
        return ((layout.last_id(key), packed) for key, packed in rows)

    def _last_seen_if_free(self, record: Record) -> int | None:
        """When a page was last seen; None if it has to stay."""
        written = self._get(self._url_key(record.url))
        if written is None:
            return None
        id, seen = layout.unpack_seen(written)
        return seen if id == record.id and not self._is_unsealed(id) else None

    def _is_unsealed(self, id: int) -> bool:
        running = (generation for generation in self._running if generation < id)
        return any(self._get(layout.journal_key(generation, id)) is not None for generation in running)

    # How far the hands have come.

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
        """The row that tells of the hands, if they have moved since it was written."""
        return {HANDS: self._packed_hands()} if self._moved else {}

    def _may_go(self, id: int) -> None:
        """A page can go from now on; hand and frontier may have passed over it."""
        if id < self._by_time.at or id < self._frontier:
            self._by_time.at = min(self._by_time.at, id)
            self._frontier = min(self._frontier, id)
            self._moved = True

    def _added(self, id: int) -> None:
        """There is a new page; pages arrive later than they got their ids, so the hands may be behind it already."""
        if id < self._by_number.at:
            self._by_number.at = id
        self._may_go(id)
