"""Two phases: a page counts once its items came through, and for good once their feeds are stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from scrapy_neardup.crawl.feeds import FeedWatch
from scrapy_neardup.crawl.waiting import Event
from scrapy_neardup.errors import StoreError
from scrapy_neardup.judging.detector import Detector
from scrapy_neardup.judging.reservations import Reservation
from scrapy_neardup.model import Verdict


@dataclass(eq=False, slots=True)
class Case:
    """A page, its verdict, and the items that stand and fall with it.

    Items that bring no content of their own share the page of their response, and so its case.
    """

    verdict: Verdict | None = None
    reservation: Reservation | None = None
    judged: Event = field(default_factory=Event)
    #: Set once the page was taken back: the next item of the same response is judged anew.
    lost: bool = False
    _under_way: int = 0
    _scraped: int = 0
    _failed: bool = False
    _kept: bool = False
    _slots: set[Any] = field(default_factory=set)

    def close(self, verdict: Verdict, reservation: Reservation | None) -> None:
        """The verdict has been reached."""
        self.verdict, self.reservation = verdict, reservation
        self.judged.happen()


class Ledger:
    """Follows each item of a page to its end, then commits the page or takes it back."""

    def __init__(
        self,
        detector: Detector,
        feeds: FeedWatch | None,
        on_error: Callable[[StoreError], None],
        on_lost: Callable[[], None],
    ) -> None:
        """``feeds`` tells when pages can be sealed; without it they are sealed at once."""
        self._detector = detector
        self._feeds = feeds
        self._on_error = on_error
        self._on_lost = on_lost

    def enter(self, case: Case) -> None:
        """An item of this page goes on to the next pipeline."""
        case._under_way += 1

    def scraped(self, case: Case) -> None:
        """An item came through the whole chain."""
        case._scraped += 1
        slots = self._feeds.slots() if self._feeds else set()
        case._slots |= slots
        if case._kept and self._feeds and case.reservation and not case.lost:
            self._feeds.hold(case.reservation.record.id, slots)
        self._leave(case)

    def dropped(self, case: Case) -> None:
        """A later pipeline dropped an item."""
        self._leave(case)

    def failed(self, case: Case) -> None:
        """A later pipeline raised an error, so an item that was wanted is lost."""
        case._failed = True
        self._leave(case)

    def _leave(self, case: Case) -> None:
        """Once no item is on its way, keep the page if one came through and none was lost by an error."""
        case._under_way -= 1
        if case._under_way or case.reservation is None or case.lost:
            return
        try:
            if case._failed or not case._scraped:
                case.lost = True
                self._take_back(case, case.reservation)
            elif not case._kept:
                self._keep(case, case.reservation)
        except StoreError as error:
            self._on_error(error)

    def _keep(self, case: Case, reservation: Reservation) -> None:
        case._kept = True
        self._detector.commit(reservation, sealed=not case._slots)
        if case._slots and self._feeds:
            self._feeds.hold(reservation.record.id, case._slots)

    def _take_back(self, case: Case, reservation: Reservation) -> None:
        self._on_lost()
        if not case._kept:
            self._detector.release(reservation)
            return
        if self._feeds:
            self._feeds.drop(reservation.record.id)
        self._detector.withdraw(reservation.record.id)
