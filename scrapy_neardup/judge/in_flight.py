"""Pages in flight: they passed, and their items are still in the pipelines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from scrapy_neardup.fast_dataclass import fast_dataclass
from scrapy_neardup.model import Fingerprint, Page, Verdict
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.record import Record


@dataclass(slots=True, eq=False)
class Reservation:
    """A page in flight. Its owner settles it once: it commits or releases the page."""

    verdict: Verdict
    fingerprint: Fingerprint
    record: Record
    evidence: Evidence | None = None
    site: str = ""
    #: The id of the same URL's earlier record, 0 if there is none.
    replaces: int = 0
    #: The earlier pages that a copy copies.
    copied_from: tuple[Record, ...] = ()
    #: Whether it gave up another page in flight, which may have its URL.
    gave_up: bool = False
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
    """The verdict on a page, and what is left to do for it.

    ``reservation``: the page passes and will get a record once its item comes through. ``write``: call it to write what
    the state keeps of a page without reservation. ``page``: what the state knows of a page that was not read.
    ``was_delivered``: the page is dropped as a copy, but an earlier text of its URL was delivered.
    """

    verdict: Verdict
    reservation: Reservation | None = None
    write: Callable[[], None] | None = None
    page: Page | None = None
    was_delivered: bool = False


@fast_dataclass(frozen=True, slots=True)
class Blocked:
    """The verdict depends on a page in flight: judge again once ``by`` is settled."""

    by: Reservation


Ruling = Ruled | Blocked


class PageJudgement(Protocol):
    """One page from its first check until its verdict. On this machine each call completes at once."""

    async def __aenter__(self) -> PageJudgement: ...

    async def __aexit__(self, *_: object) -> None: ...

    @property
    def given_up(self) -> Collection[Reservation]:
        """The pages in flight that took too long; this one is judged without them."""

    async def check(self, page: Page) -> Ruling:
        """Judge the page. If it is blocked, wait and call again. Raises StoreError."""

    async def wait(self, by: Reservation, seconds: float) -> None:
        """Wait until the page that blocks this one is settled, or give it up. Raises StoreError."""


class Outcomes(Protocol):
    """What becomes of the pages of a crawl. On a server these return before they are done."""

    def commit(self, reservation: Reservation, *, sealed: bool) -> None:
        """The item came through: the page counts, permanently if ``sealed``."""

    def release(self, reservation: Reservation) -> None:
        """The item was lost: the page is no longer in flight."""

    def roll_back(self, id: int) -> None:
        """Roll back a committed page."""

    def seal(self, ids: Iterable[int]) -> None:
        """The feeds that hold these pages are stored: keep them permanently."""


class InFlight:
    """The unsettled reservations by URL, digest of their bytes, and key; the earliest comes first."""

    def __init__(self, reservations: Iterable[Reservation] = ()) -> None:
        self._by_url: dict[str, list[Reservation]] = {}
        self._by_body: dict[int, list[Reservation]] = {}
        self._by_key: dict[int, list[Reservation]] = {}
        for one in reservations:
            self.add(one)

    def __bool__(self) -> bool:
        return bool(self._by_url)

    @property
    def urls(self) -> tuple[str, ...]:
        """The URLs of the pages in flight."""
        return tuple(self._by_url)

    def at_url(self, url: str) -> Sequence[Reservation]:
        """The pages at a URL."""
        return self._by_url.get(url, ())

    def with_body(self, body: int) -> Sequence[Reservation]:
        """The pages that were read from a body with this digest."""
        return self._by_body.get(body, ())

    def with_key(self, key: int) -> Sequence[Reservation]:
        """The pages that are filed under a key."""
        return self._by_key.get(key, ())

    def sharing(self, fingerprint: Fingerprint) -> Iterable[Reservation]:
        """The pages that share a key with this one."""
        return dict.fromkeys(one for key in fingerprint.keys for one in self.with_key(key))

    def add(self, reservation: Reservation) -> None:
        """Register a page."""
        for table, name in self._places(reservation):
            table.setdefault(name, []).append(reservation)

    def remove(self, reservation: Reservation) -> None:
        """The page is no longer in flight; does nothing for a page that is not registered."""
        for table, name in self._places(reservation):
            if reservation in (found := table.get(name, [])):
                found.remove(reservation)
                if not found:
                    del table[name]

    def _places(self, reservation: Reservation) -> list[tuple[dict[Any, list[Reservation]], str | int]]:
        """The tables that list a page, each with the name that it has there."""
        record = reservation.record
        keys = dict.fromkeys(reservation.fingerprint.keys)
        places: list[tuple[dict[Any, list[Reservation]], str | int]] = [(self._by_key, key) for key in keys]
        if record.body and record.is_found_by_body:
            places.append((self._by_body, record.body))
        return [(self._by_url, record.url), *places]
