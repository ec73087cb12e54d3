"""A page goes with all that points to it, and an unsealed one gives its place to the one before it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from scrapy_neardup.stores import layout
from scrapy_neardup.stores.changes import Changes
from scrapy_neardup.stores.postings import Postings
from scrapy_neardup.stores.record import Record
from scrapy_neardup.stores.tallied import Tallied


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
