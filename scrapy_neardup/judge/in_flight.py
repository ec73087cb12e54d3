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
    """A page that passed and whose item is still on its way through the pipelines.

    Whoever got it settles it once, with ``Detector.commit`` or ``Detector.release``.
    """

    verdict: Verdict
    fingerprint: Fingerprint
    record: Record
    evidence: Evidence | None = None
    site: str = ""
    #: The id of the same URL's earlier record, 0 if there is none.
    replaces: int = 0
    #: Of a copy: the earlier pages by which it is one.
    of: tuple[Record, ...] = ()
    #: Whether it gave up another page that is on its way, which may have its URL.
    gave_up: bool = False
    settled: bool = False
    _waiting: tuple[Callable[[], None], ...] = ()

    def when_settled(self, call: Callable[[], None]) -> None:
        """Have ``call`` called once it is known what became of the page."""
        self._waiting = (*self._waiting, call)

    def settle(self) -> None:
        """The outcome is known: tell those who wait for it."""
        self.settled = True
        for call in self._waiting:
            call()


@fast_dataclass(frozen=True, slots=True)
class Ruled:
    """The page is judged; there is a ``reservation`` if it passes and is new to the state.

    ``page``: what is known of one that was not read. ``was_delivered``: a copy is dropped whose URL was delivered
    before, with another text.
    """

    verdict: Verdict
    reservation: Reservation | None = None
    page: Page | None = None
    was_delivered: bool = False


@fast_dataclass(frozen=True, slots=True)
class Blocked:
    """The verdict depends on what becomes of a near-duplicate that is on its way: ask again once that is settled."""

    by: Reservation


#: The answer to ``Detector.check``.
Ruling = Ruled | Blocked


class InFlight:
    """The reservations that are not settled, by URL, by key and by body; all crawls on one store share them.

    By key they are found from the first time on that somebody asks: who has no items on their way settles each before.
    """

    #: Those that the page which is judged now has given up: they do not block it.
    overlooked: Collection[Reservation] = ()

    def __init__(self) -> None:
        self._by_url: dict[str, tuple[Reservation, ...]] = {}
        self._by_body: dict[int, tuple[Reservation, ...]] = {}
        self._by_key: dict[int, tuple[Reservation, ...]] = {}
        #: Those that are not found by their keys yet.
        self._latest: dict[Reservation, None] = {}

    def __bool__(self) -> bool:
        return bool(self._by_url)

    @property
    def urls(self) -> tuple[str, ...]:
        """The URLs of the pages in flight."""
        return tuple(self._by_url)

    def add(self, reservation: Reservation) -> None:
        """A page is on its way from now on."""
        record = reservation.record
        _enter(self._by_url, record.url, reservation)
        if record.body and record.is_found_by_body:
            _enter(self._by_body, record.body, reservation)
        self._latest[reservation] = None

    def of_url(self, url: str) -> Reservation | None:
        """The page at a URL."""
        return self._first(self._by_url.get(url, ()))

    def of_body(self, body: int) -> Reservation | None:
        """A page that was made from a body with this digest."""
        return self._first(self._by_body.get(body, ()))

    def sharing(self, fingerprint: Fingerprint) -> list[Reservation]:
        """The pages that share a key with this one."""
        if not self._by_key and not self._latest:
            return []
        return list(dict.fromkeys(one for key in fingerprint.keys for one in self.of_key(key)))

    def of_key(self, key: int) -> tuple[Reservation, ...]:
        """The pages that have a key, in the order in which they came."""
        while self._latest:
            latest = next(iter(self._latest))
            del self._latest[latest]
            for one in dict.fromkeys(latest.fingerprint.keys):
                _enter(self._by_key, one, latest)
        found = self._by_key.get(key, ())
        return tuple(one for one in found if one not in self.overlooked) if self.overlooked else found

    def remove(self, reservation: Reservation) -> None:
        """It has arrived, or was lost."""
        record = reservation.record
        _leave(self._by_url, record.url, reservation)
        _leave(self._by_body, record.body, reservation)
        if reservation in self._latest:
            del self._latest[reservation]
            return
        for key in dict.fromkeys(reservation.fingerprint.keys):
            _leave(self._by_key, key, reservation)

    def _first(self, found: tuple[Reservation, ...]) -> Reservation | None:
        return next((one for one in found if one not in self.overlooked), None)


_Name = TypeVar("_Name", str, int)
_Named = dict[_Name, tuple[Reservation, ...]]


def _enter(named: _Named[_Name], name: _Name, reservation: Reservation) -> None:
    named[name] = (*named.get(name, ()), reservation)


def _leave(named: _Named[_Name], name: _Name, reservation: Reservation) -> None:
    left = tuple(one for one in named.get(name, ()) if one is not reservation)
    if left:
        named[name] = left
    else:
        named.pop(name, None)


class ReadOnlyInFlight(InFlight):
    """The pages in flight of a store, for a look that leaves no trace: nothing is added or removed."""

    def __init__(self, base: InFlight) -> None:
        self._by_url, self._by_body = base._by_url, base._by_body
        self._by_key, self._latest = base._by_key, base._latest

    def add(self, reservation: Reservation) -> None:
        """The page is only looked at."""

    def remove(self, reservation: Reservation) -> None:
        """It was never added."""


class Earlier(InFlight):
    """Those that one page has seen on a server: the pages of other machines and those of this crawl are one."""

    def show(self, reservations: Iterable[Reservation]) -> None:
        """From now on these are on their way, and no others."""
        super().__init__()
        for one in reservations:
            super().add(one)

    def add(self, reservation: Reservation) -> None:
        """It is on the server already."""

    def remove(self, reservation: Reservation) -> None:
        """It goes from there."""
