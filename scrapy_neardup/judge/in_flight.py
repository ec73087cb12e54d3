"""Pages in flight: they passed, and their items are still in the pipelines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TypeVar

from scrapy_neardup.fast_dataclass import fast_dataclass
from scrapy_neardup.model import Fingerprint, Page, Verdict
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.record import Record


@dataclass(slots=True, eq=False)
class Reservation:
    """A page in flight. Its owner settles it once, with ``Detector.commit`` or ``Detector.release``."""

    verdict: Verdict
    fingerprint: Fingerprint
    record: Record
    evidence: Evidence | None = None
    site: str = ""
    #: The id of the same URL's earlier record, 0 if there is none.
    replaces: int = 0
    #: The earlier pages that a copy copies.
    of: tuple[Record, ...] = ()
    #: Whether it gave up another page in flight, which may have its URL.
    gave_up: bool = False
    settled: bool = False
    _callbacks: tuple[Callable[[], None], ...] = ()

    def when_settled(self, call: Callable[[], None]) -> None:
        """Call ``call`` once the page is committed or rolled back."""
        self._callbacks = (*self._callbacks, call)

    def settle(self) -> None:
        """The page is committed or rolled back: call those who wait for it."""
        self.settled = True
        for call in self._callbacks:
            call()


@fast_dataclass(frozen=True, slots=True)
class Ruled:
    """The page is judged. ``reservation``: only if it passes and is new to the state.

    ``page``: what the state knows of a page that was not read. ``was_delivered``: the page is dropped as a copy, but an
    earlier text of its URL was delivered.
    """

    verdict: Verdict
    reservation: Reservation | None = None
    page: Page | None = None
    was_delivered: bool = False


@fast_dataclass(frozen=True, slots=True)
class Blocked:
    """The verdict depends on a near-duplicate in flight: judge again once ``by`` is settled."""

    by: Reservation


#: The answer to ``Detector.check``.
Ruling = Ruled | Blocked


class InFlight:
    """The unsettled reservations by URL, key and body; all crawls of a process on one store share them."""

    #: Pages that the page being judged has given up: they do not block it.
    given_up: Collection[Reservation] = ()

    def __init__(self) -> None:
        self._by_url: dict[str, tuple[Reservation, ...]] = {}
        self._by_body: dict[int, tuple[Reservation, ...]] = {}
        self._by_key: dict[int, tuple[Reservation, ...]] = {}
        #: Not filed by key yet. Most pages of files and scripts are settled before anybody looks for their keys.
        self._unfiled: dict[Reservation, None] = {}

    def __bool__(self) -> bool:
        return bool(self._by_url)

    @property
    def urls(self) -> tuple[str, ...]:
        """The URLs of the pages in flight."""
        return tuple(self._by_url)

    def add(self, reservation: Reservation) -> None:
        """Register a page."""
        record = reservation.record
        _add(self._by_url, record.url, reservation)
        if record.body and record.is_found_by_body:
            _add(self._by_body, record.body, reservation)
        self._unfiled[reservation] = None

    def of_url(self, url: str) -> Reservation | None:
        """The page at a URL."""
        return self._first(self._by_url.get(url, ()))

    def of_body(self, body: int) -> Reservation | None:
        """A page that was read from a body with this digest."""
        return self._first(self._by_body.get(body, ()))

    def sharing(self, fingerprint: Fingerprint) -> list[Reservation]:
        """The pages that share a key with this one."""
        if not self._by_key and not self._unfiled:
            return []
        return list(dict.fromkeys(one for key in fingerprint.keys for one in self.of_key(key)))

    def of_key(self, key: int) -> tuple[Reservation, ...]:
        """The pages with a key, in the order in which they were registered."""
        while self._unfiled:
            reservation = next(iter(self._unfiled))
            del self._unfiled[reservation]
            for one in dict.fromkeys(reservation.fingerprint.keys):
                _add(self._by_key, one, reservation)
        found = self._by_key.get(key, ())
        return tuple(one for one in found if one not in self.given_up) if self.given_up else found

    def remove(self, reservation: Reservation) -> None:
        """The page is no longer in flight."""
        record = reservation.record
        _remove(self._by_url, record.url, reservation)
        _remove(self._by_body, record.body, reservation)
        if reservation in self._unfiled:
            del self._unfiled[reservation]
            return
        for key in dict.fromkeys(reservation.fingerprint.keys):
            _remove(self._by_key, key, reservation)

    def _first(self, found: tuple[Reservation, ...]) -> Reservation | None:
        for one in found:
            if one not in self.given_up:
                return one
        return None


_Name = TypeVar("_Name", str, int)
_Table = dict[_Name, tuple[Reservation, ...]]


def _add(table: _Table[_Name], name: _Name, reservation: Reservation) -> None:
    table[name] = (*table.get(name, ()), reservation)


def _remove(table: _Table[_Name], name: _Name, reservation: Reservation) -> None:
    found = table.get(name, ())
    if found == (reservation,):
        del table[name]
    elif found:
        table[name] = tuple(one for one in found if one is not reservation)


class ReadOnlyInFlight(InFlight):
    """The pages in flight of a store, for a verdict that must leave no trace."""

    def __init__(self, base: InFlight) -> None:
        self._by_url, self._by_body = base._by_url, base._by_body
        self._by_key, self._unfiled = base._by_key, base._unfiled

    def add(self, reservation: Reservation) -> None:
        """Register nothing."""

    def remove(self, reservation: Reservation) -> None:
        """Remove nothing."""


class Earlier(InFlight):
    """The pages in flight on a server that come before one page. The server registers and removes them itself."""

    def show(self, reservations: Iterable[Reservation]) -> None:
        """Replace all pages by these."""
        super().__init__()
        for one in reservations:
            super().add(one)

    def add(self, reservation: Reservation) -> None:
        """The server has it already."""

    def remove(self, reservation: Reservation) -> None:
        """The server removes it."""
