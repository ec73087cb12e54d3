"""One response, its pages and its items on their way through the pipelines.

Scrapy gives a pipeline only the item, and other pipelines may replace it by another object. So the spider middleware
announces each item with its ``Visit``. The first pipeline of the chain turns that into a ``Ticket`` in a context
variable, because the pipelines of one item and the signals at its end run in one context.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from itemadapter import ItemAdapter

from scrapy_neardup.crawl.event import Event
from scrapy_neardup.crawl.feeds import Feed
from scrapy_neardup.judge.in_flight import Reservation
from scrapy_neardup.model import Verdict
from scrapy_neardup.page.item import Item
from scrapy_neardup.page.response import Served


class End(Enum):
    """How an item leaves the pipelines."""

    #: It came through all of them.
    SCRAPED = "scraped"
    #: A later pipeline dropped it.
    DROPPED = "dropped"
    #: A later pipeline or a feed raised an error, so a wanted item is lost.
    FAILED = "failed"


class Step(Enum):
    """What the state has to do when an item ends."""

    NOTHING = "nothing"
    COMMIT = "commit"
    ROLL_BACK = "roll back"


@dataclass(eq=False, slots=True)
class ResponseItems:
    """Counts the items of one response. A page that they share is not sealed before all of them have ended.

    Otherwise the first item would seal the page, and a kill would lose the others for good. ``is_complete``: the
    callback yields no more items. ``is_cut_off``: it failed, so there might have been more.
    """

    announced: int = 0
    ended: int = 0
    is_complete: bool = True
    is_cut_off: bool = False
    #: Stands for the items that are still to come: their page waits for it as for a feed.
    feed: Feed | None = None
    _callbacks: list[Callable[[], None]] = field(default_factory=list)

    @property
    def are_several(self) -> bool:
        return self.announced + self.is_cut_off > 1

    @property
    def is_last(self) -> bool:
        """Whether the item that ends now is the last one."""
        return self.is_complete and self.ended + 1 >= self.announced

    def when_over(self, call: Callable[[], None]) -> None:
        """Call back when all items have ended. A callback of the spider that breaks off may prevent that."""
        self._callbacks.append(call)

    def complete(self) -> None:
        """The spider's callback yields no more items."""
        self.is_complete = True
        self._call_back()

    def end_item(self) -> None:
        """One item has ended, and its page was handled."""
        self.ended += 1
        self._call_back()

    def _call_back(self) -> None:
        if self.is_complete and self.ended >= self.announced:
            callbacks, self._callbacks = self._callbacks, []
            for call in callbacks:
                call()


@dataclass(eq=False, slots=True)
class JudgedPage:
    """A page with its verdict, and the ends of the items that share it.

    ``reservation``: only of a page that passes and is new to the state. ``feeds`` wrote an item of the page.
    ``response_items``: those of its response, if they share the page. It holds no response, so that none stays in
    memory until the next garbage collection.
    """

    verdict: Verdict
    reservation: Reservation | None = None
    response_items: ResponseItems | None = None
    feeds: set[Feed] = field(default_factory=set)
    is_committed: bool = False
    #: It was rolled back, for good: the next item of the response has it judged anew.
    is_lost: bool = False
    _in_pipelines: int = 0
    _scraped: int = 0
    _failed: int = 0

    def enter(self) -> None:
        """An item goes on to the next pipeline."""
        self._in_pipelines += 1

    def leave(self, end: End) -> Step:
        """An item has ended. When no other is in the pipelines, commit if one came through and none failed."""
        self._in_pipelines -= 1
        self._scraped += end is End.SCRAPED
        self._failed += end is End.FAILED
        if self._in_pipelines or self.is_lost:
            return Step.NOTHING
        if self._failed or not self._scraped:
            self.is_lost = True
            return Step.ROLL_BACK
        if self.is_committed:
            return Step.NOTHING
        self.is_committed = True
        return Step.COMMIT


@dataclass(eq=False, slots=True)
class Visit:
    """One response, or none, and what its items share.

    ``opted_out``: by the request. ``has_no_response``: the add-on is on, and the item came without a response.
    """

    served: Served | None = None
    opted_out: bool = False
    has_no_response: bool = False
    items: ResponseItems = field(default_factory=ResponseItems)
    #: By URL: the pages, or an event while a page is being judged.
    pages: dict[str, JudgedPage | Event] = field(default_factory=dict)
    #: URLs in the items. All are known before the first item without one is judged, unless there are very many.
    urls: set[str] = field(default_factory=set)
    #: An item has neither URL nor content, so the response is its page.
    has_bare: bool = False
    #: Items so far with content and without URL.
    unnamed: int = 0
    #: A hash of the text of each page whose item has URL and text.
    texts: dict[str, int] = field(default_factory=dict)

    @property
    def is_claimed(self) -> bool:
        """Whether an item has the URL of the response, so that no other item may have it."""
        return self.served is not None and self.served.url in self.urls


@dataclass(eq=False, slots=True)
class Ticket:
    """One item on its way. ``page``: only if the state has to know how the item ends."""

    visit: Visit = field(default_factory=Visit)
    page: JudgedPage | None = None
    is_used: bool = False
    is_ended: bool = False


_current: ContextVar[Ticket | None] = ContextVar("neardup_ticket", default=None)


class Tickets:
    """The items between the spider and the pipelines, each with its visit."""

    def __init__(self, *, are_announced: bool = False) -> None:
        """``are_announced``: a middleware announces each item that has a response."""
        self._are_announced = are_announced
        # Keeping the item keeps its id from being reused. A spider may yield the same object twice.
        self._visits: dict[int, deque[tuple[Any, Visit]]] = {}

    def announce(self, item: Any, visit: Visit) -> None:
        """Remember the visit of an item."""
        self._visits.setdefault(id(item), deque()).append((item, visit))

    def issue(self, item: Any) -> None:
        """Make the ticket of an item that enters the pipelines. Without announcement it gets a visit of its own."""
        visits = self._visits.get(id(item))
        if visits is None:
            _current.set(Ticket(Visit(has_no_response=self._are_announced)))
            return
        _, visit = visits.popleft()
        if not visits:
            del self._visits[id(item)]
        _current.set(Ticket(visit))


def use_ticket() -> Ticket:
    """The ticket of the item in our pipeline; a new one where no pipeline before ours made it."""
    ticket = _current.get()
    if ticket is None or ticket.is_used:
        ticket = Ticket()
        _current.set(ticket)
    ticket.is_used = True
    return ticket


def end_ticket() -> Ticket | None:
    """The ticket of the item whose end Scrapy signals; None at every further signal."""
    ticket = _current.get()
    if ticket is None or ticket.is_ended:
        return None
    ticket.is_ended = True
    return ticket


def fields_of(item: Any) -> Item:
    """The fields of an item of any class; empty for anything else."""
    return ItemAdapter(item) if ItemAdapter.is_item(item) else {}
