"""Pages in flight: they passed, and their items are still in the pipelines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from scrapy_neardup.fast_dataclass import fast_dataclass
from scrapy_neardup.model import Fingerprint, Verdict
from scrapy_neardup.state.record import Evidence, Record


@dataclass(slots=True, eq=False)
class Reservation:
    """A page in flight. Its owner settles it once: it commits or releases the page."""

    record: Record
    fingerprint: Fingerprint
    evidence: Evidence | None = None
    site: str = ""
    #: The id of the same URL's earlier record, 0 if there is none.
    replaces: int = 0
    #: The earlier pages that a copy copies.
    copied_from: tuple[Record, ...] = ()
    _callbacks: tuple[Callable[[], None], ...] = ()

    def when_settled(self, call: Callable[[], None]) -> None:
        """Call ``call`` once the page is committed or rolled back."""
        self._callbacks = (*self._callbacks, call)

    def settle(self) -> None:
        """The page is committed or rolled back: call those who wait for it."""
        for call in self._callbacks:
            call()


@fast_dataclass(frozen=True, slots=True)
class Ruled:
    """The verdict on a page, and the work that is left.

    ``reservation``: the page passes and will get a record once its item comes through. ``write``: call it to write what
    the state keeps of a page without reservation. ``was_delivered``: the page is dropped as a copy, but an earlier text
    of its URL was delivered.
    """

    verdict: Verdict
    reservation: Reservation | None = None
    write: Callable[[], None] | None = None
    was_delivered: bool = False


@fast_dataclass(frozen=True, slots=True)
class Blocked:
    """The verdict depends on a page in flight: judge again once ``by`` is settled."""

    by: Reservation


Ruling = Ruled | Blocked


class InFlight:
    """The unsettled reservations by URL and by key; the earliest comes first."""

    def __init__(self, reservations: Iterable[Reservation] = ()) -> None:
        self._pages: dict[str | int, list[Reservation]] = {}
        for one in reservations:
            self.add(one)

    def __bool__(self) -> bool:
        return bool(self._pages)

    def under(self, name: str | int) -> Sequence[Reservation]:
        """The pages at a URL, or filed under a key."""
        return self._pages.get(name, ())

    def sharing(self, fingerprint: Fingerprint) -> Iterable[Reservation]:
        """The pages that share a key with this one."""
        return dict.fromkeys(one for key in fingerprint.keys for one in self.under(key))

    def add(self, reservation: Reservation) -> None:
        for name in self._names(reservation):
            self._pages.setdefault(name, []).append(reservation)

    def remove(self, reservation: Reservation) -> None:
        """The page is no longer in flight; does nothing for a page that is not registered."""
        for name in self._names(reservation):
            found = self._pages.get(name, [])
            if reservation in found:
                found.remove(reservation)
                if not found:
                    del self._pages[name]

    def _names(self, reservation: Reservation) -> Collection[str | int]:
        return dict.fromkeys((reservation.record.url, *reservation.fingerprint.keys))
