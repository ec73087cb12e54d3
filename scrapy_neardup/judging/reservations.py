"""Pages that passed and whose items are still on their way: nobody knows yet whether they count."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from scrapy_neardup.model import Fingerprint, Page, Verdict
from scrapy_neardup.quick import quick
from scrapy_neardup.stores import Evidence, Record


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


@quick(frozen=True, slots=True)
class Ruled:
    """The page is judged; there is a ``reservation`` if it passes and is new to the state.

    ``page``: what is known of one that was not read.
    """

    verdict: Verdict
    reservation: Reservation | None = None
    page: Page | None = None


@quick(frozen=True, slots=True)
class Blocked:
    """The verdict depends on what becomes of a near-duplicate that is on its way: ask again once that is settled."""

    by: Reservation


#: The answer to ``Detector.check``.
Ruling = Ruled | Blocked


class InFlight:
    """The reservations that are not settled, by URL, by key and by body; all crawls on one store share them.

    By key they are found from the first time on that somebody asks: who has no items on their way settles each before.
    """

    def __init__(self) -> None:
        self.by_url: dict[str, Reservation] = {}
        self.by_body: dict[int, Reservation] = {}
        self._by_key: dict[int, tuple[Reservation, ...]] = {}
        #: Those that are not found by their keys yet.
        self._latest: dict[Reservation, None] = {}

    def add(self, reservation: Reservation) -> None:
        """A page is on its way from now on."""
        record = reservation.record
        self.by_url[record.url] = reservation
        if record.body and record.is_found_by_body:
            self.by_body[record.body] = reservation
        self._latest[reservation] = None

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
                self._by_key[one] = (*self._by_key.get(one, ()), latest)
        return self._by_key.get(key, ())

    def remove(self, reservation: Reservation) -> None:
        """It has arrived, or was lost."""
        record = reservation.record
        if self.by_url.get(record.url) is reservation:
            del self.by_url[record.url]
        if record.body and self.by_body.get(record.body) is reservation:
            del self.by_body[record.body]
        if reservation in self._latest:
            del self._latest[reservation]
            return
        for key in dict.fromkeys(reservation.fingerprint.keys):
            sharing = self._by_key.pop(key)
            if len(sharing) > 1:
                self._by_key[key] = tuple(one for one in sharing if one is not reservation)


class Earlier(InFlight):
    """Those that one page has seen on a server: the pages of other machines and those of this crawl are one."""

    def show(self, reservations: Iterable[Reservation]) -> None:
        """From now on these are on their way, and no others."""
        self.by_url, self._by_key, self._latest = {}, {}, {}
        for one in reservations:
            super().add(one)

    def add(self, reservation: Reservation) -> None:
        """It is on the server already."""

    def remove(self, reservation: Reservation) -> None:
        """It goes from there."""
