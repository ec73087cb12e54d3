"""Two phases: a page counts once its items came through, and for good once their feeds are stored."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from scrapy_neardup.crawl.feeds import Feed, FeedWatch
from scrapy_neardup.crawl.outage import Outage
from scrapy_neardup.crawl.response_items import ResponseItems
from scrapy_neardup.errors import StoreError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Reservation

if TYPE_CHECKING:
    from scrapy_neardup.judge.remote_crawl import RemoteCrawl


class End(Enum):
    """What becomes of an item behind our pipeline."""

    #: It came through the whole chain.
    SCRAPED = "scraped"
    #: A later pipeline dropped it.
    DROPPED = "dropped"
    #: A later pipeline or a feed raised an error, so an item that was wanted is lost.
    FAILED = "failed"


class Step(Enum):
    """What the end of an item asks of the state."""

    NOTHING = "nothing"
    KEEP = "keep"
    TAKE_BACK = "take back"


@dataclass(eq=False, slots=True)
class Account:
    """A page that passed, and what becomes of the items that stand and fall with it.

    Items that bring no content of their own share the page of their response, and so its account. ``kept``: it was
    committed. ``lost``: it was taken back, for good. ``feeds``: those that wrote an item of the page. ``coming``: the
    items of its response, if they share it.
    """

    reservation: Reservation
    kept: bool = False
    lost: bool = False
    feeds: set[Feed] = field(default_factory=set)
    coming: ResponseItems | None = None
    _under_way: int = 0
    _scraped: int = 0
    _failed: int = 0

    def enter(self) -> None:
        """An item goes on to the next pipeline."""
        self._under_way += 1

    def leave(self, end: End) -> Step:
        """An item has reached its end.

        Once none is on its way, the page is kept if one came through and none was lost by an error.
        """
        self._under_way -= 1
        self._scraped += end is End.SCRAPED
        self._failed += end is End.FAILED
        if self._under_way or self.lost:
            return Step.NOTHING
        if self._failed or not self._scraped:
            self.lost = True
            return Step.TAKE_BACK
        if self.kept:
            return Step.NOTHING
        self.kept = True
        return Step.KEEP


class Ledger:
    """Follows each item of a page to its end, then commits the page or takes it back."""

    def __init__(
        self, detector: Detector | RemoteCrawl, feeds: FeedWatch, outage: Outage, on_lost: Callable[[], None]
    ) -> None:
        """``on_lost`` is called for each page that is taken back."""
        self._detector = detector
        self._feeds = feeds
        self._outage = outage
        self._on_lost = on_lost

    def ended(self, account: Account, end: End, feeds: Set[Feed] = frozenset()) -> None:
        """An item has reached its end, and was written by these feeds; a state that fails is reported, not raised."""
        id, was_kept = account.reservation.record.id, account.kept
        if account.coming is not None and not account.coming.is_last:
            feeds = feeds | {self._feeds.rest(account.coming)}
        earlier, account.feeds = account.feeds, account.feeds | feeds
        try:
            if feeds and was_kept and not account.lost:
                self._feeds.hold(id, feeds, earlier)
            step = account.leave(end)
            if step is Step.KEEP:
                self._detector.commit(account.reservation, sealed=not account.feeds)
                if account.feeds:
                    self._feeds.hold(id, account.feeds)
            elif step is Step.TAKE_BACK:
                self._take_back(account.reservation, was_kept=was_kept)
        except StoreError as error:
            self._outage.report(error)

    def _take_back(self, reservation: Reservation, *, was_kept: bool) -> None:
        self._on_lost()
        if was_kept:
            self._feeds.drop(reservation.record.id)
            self._detector.withdraw(reservation.record.id)
        else:
            self._detector.release(reservation)
