"""Pages that were not seen for long are forgotten, a few with each page that comes, so an endless crawl's state ends.

Two hands go over the pages in the order in which they were first seen, a few pages at a time, and go on the next time
where they were: from the beginning a scan would pass whatever was deleted there, and pages that stay would be looked at
again and again. Where they are is written with what they remove, so that it outlives a crawl.

* One looks for pages that were last seen too long ago. None that was first seen later can be among them, so there it
  waits, and goes round once more a few times in a TTL, for pages that stayed as they had been seen again.
* The other one removes the oldest where there are too many, but for those that were seen again since it last came by:
  those have another turn, as long as it finds others near.

A page that is not sealed stays, as it may be taken back, and so does one in whose place a page is that is not sealed.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from scrapy_neardup.stores import layout
from scrapy_neardup.stores.changes import Changes
from scrapy_neardup.stores.layout import Record
from scrapy_neardup.stores.removal import Removal

#: Where it stands how far the hands have come.
HANDS = layout.meta_key("hands")
_PACKED = struct.Struct(">4Q")
#: Pages that a step looks at: for those that are overdue, and where there are too many.
_LOOKS, _LOOKS_MANY = 4, 16
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
class Hand:
    """A place among the pages by id. ``at``: the next one to be looked at; ``first``: no page has a smaller id.

    ``kept``: of the pages behind the hand no smaller id is still there; None if none is.
    """

    at: int = 0
    first: int = 0
    kept: int | None = None

    def keep(self, id: int) -> None:
        """The page with this id is behind the hand, and stays."""
        self.kept = id if self.kept is None else min(self.kept, id)

    def added(self, id: int) -> None:
        """There is a new page; its id may be smaller than others that have gone."""
        if id < self.at:
            self.keep(id)
        self.first = min(self.first, id)

    def turn(self) -> None:
        """Go back to the first page."""
        self.first = self.at if self.kept is None else self.kept
        self.at, self.kept = self.first, None


class Expiry(Removal):
    """What a store does to hold its bounds."""

    #: The number of pages; a copy is one, and so is a page that could not be judged.
    pages: int
    _newest: int
    #: Generations of this opening that may have unsealed pages.
    _running: set[int]
    _by_time: Hand
    _by_number: Hand
    #: When the first hand last turned, in seconds since 1970.
    _turned = 0.0
    #: When the other one began its round before this one, and this one.
    _spare_since: int
    _round_since: int
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
        gone = 0 if bounds.ttl is None else self._overdue(bounds.ttl, changes)
        if bounds.max_pages is not None and (surplus := self.pages - gone - bounds.max_pages) > 0:
            gone += self._surplus(min(surplus, _MOST), changes)
        if gone:
            changes.put(HANDS, self._packed_hands())
            self._commit(changes)
            self._moved = False
            self.pages -= gone
        return gone

    def _overdue(self, ttl: float, changes: Changes) -> int:
        now, hand = self.now(), self._by_time
        # After a clock that was ahead ids do not tell when a page was seen.
        horizon = int((now - ttl) * 1e9) if self._newest <= now * 1e9 else _NO_ID
        if hand.at >= horizon:
            if now < self._turned + ttl / _ROUNDS:
                return 0
            hand.turn()
            self._turned = now
        gone = looked = 0
        for id, packed in self._on_from(hand, _LOOKS):
            if id >= horizon:
                hand.at = id
                return gone
            looked, hand.at, record = looked + 1, id + 1, self._unpacked(id, packed)
            seen = self._last_seen_if_free(record)
            if seen is not None and seen < now - ttl:
                gone += self._erase(id, changes)
            else:
                hand.keep(id)
        if looked < _LOOKS:
            hand.at = max(hand.at, horizon)
        return gone

    def _surplus(self, most: int, changes: Changes) -> int:
        hand, gone, looked = self._by_number, 0, 0
        spared: list[tuple[int, int]] = []
        for id, packed in self._on_from(hand, _LOOKS_MANY):
            looked, hand.at = looked + 1, id + 1
            if layout.record_key(id) in changes.deletes:
                continue
            record = self._unpacked(id, packed)
            seen = self._last_seen_if_free(record)
            if seen is None:
                hand.keep(id)
            elif seen > max(record.first_seen + _AGAIN, self._spare_since):
                hand.keep(id)
                spared.append((seen, id))
            else:
                gone += self._erase(id, changes)
            if gone == most:
                return gone
        if looked < _LOOKS_MANY:
            hand.turn()
            self._spare_since, self._round_since = self._round_since, int(self.now())
        if not gone and spared:
            gone = self._erase(min(spared)[1], changes)
        return gone

    def _on_from(self, hand: Hand, limit: int) -> Iterator[tuple[int, bytes]]:
        """The next records by id."""
        self._moved = True
        rows = islice(self._rows_from(layout.record_key(hand.at), b"r"), limit)
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
            by_time, by_number, self._spare_since, self._round_since = _PACKED.unpack(packed or bytes(_PACKED.size))
        except struct.error as error:
            raise self.damaged(f"how far its expiry has come cannot be read ({error})") from None
        self._by_time, self._by_number = Hand(by_time, kept=0), Hand(by_number, kept=0)

    def _packed_hands(self) -> bytes:
        return _PACKED.pack(self._by_time.at, self._by_number.at, self._spare_since, self._round_since)

    def _unwritten_hands(self) -> dict[bytes, bytes]:
        """The row that tells of the hands, if they have moved since it was written."""
        return {HANDS: self._packed_hands()} if self._moved else {}

    def _added(self, id: int) -> None:
        self._by_time.added(id)
        self._by_number.added(id)
