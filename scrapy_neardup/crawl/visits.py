"""One response, its pages and its items on their way through the pipelines.

Scrapy gives a pipeline only the item, and other pipelines may replace it by another object. So the spider middleware
announces each item with its ``Visit``. The first pipeline of the chain turns that into a ``Ticket`` in a context
variable. All pipelines of an item and the signals at its end run in one context.
"""

from __future__ import annotations

from asyncio import Lock
from collections import defaultdict, deque
from collections.abc import Callable, Set
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from itemadapter import ItemAdapter

from scrapy_neardup.judge.in_flight import Reservation
from scrapy_neardup.model import Verdict
from scrapy_neardup.page.item import Item
from scrapy_neardup.page.source import PageResponse


@dataclass(eq=False, slots=True)
class Awaited:
    """A page waits for this until it is sealed: a file of a feed, or all items of its response.

    ``is_lost``: an item of it is lost, so its pages do not count.
    """

    name: str = ""
    is_done: bool = False
    is_lost: bool = False


@dataclass(eq=False, slots=True)
class ResponseItems(Awaited):
    """Counts the items of one response. A page that they share is not sealed before all of them have ended.

    Otherwise the first item would seal the page, and a kill would lose the others for good. ``is_lost``: the callback
    failed, so there might have been more, or an earlier pipeline lost one. ``is_complete``: the callback yields no more
    items. ``on_done`` is called when all items have ended.
    """

    announced: int = 0
    ended: int = 0
    is_complete: bool = True
    on_done: Callable[[Awaited], None] | None = None

    @property
    def are_several(self) -> bool:
        return self.announced + self.is_lost > 1

    @property
    def is_last(self) -> bool:
        """Whether the item that ends now is the last one."""
        return self.is_complete and self.ended + 1 >= self.announced

    def complete(self) -> None:
        """The spider's callback yields no more items."""
        self.is_complete = True
        self._call_back()

    def end_item(self) -> None:
        """One item has ended, and its page was handled."""
        self.ended += 1
        self._call_back()

    def _call_back(self) -> None:
        if self.on_done is not None and self.is_complete and self.ended >= self.announced:
            call, self.on_done = self.on_done, None
            call(self)


@dataclass(eq=False, slots=True)
class JudgedPage:
    """A page with its verdict, and what happened to the items that share it.

    ``reservation``: only a page that passes and is new to the state has one. ``response_items``: the items of its
    response, if they share the page. ``awaited``: the feeds that wrote an item of the page, and what else it waits for.
    ``is_lost``: it was rolled back; for the next item of the response the page is judged again. It holds no visit:
    responses would stay in memory until the next garbage collection.
    """

    verdict: Verdict
    reservation: Reservation | None = None
    response_items: ResponseItems | None = None
    in_pipelines: int = 0
    is_scraped: bool = False
    is_failed: bool = False
    awaited: Set[Awaited] = frozenset()
    is_committed: bool = False
    is_lost: bool = False


@dataclass(eq=False, slots=True)
class Visit:
    """One response, or none, and what its items share.

    ``opted_out``: by the request. ``pages``: by URL; ``locks``: one for each, while it is judged. ``urls``: of items;
    all are known before the first item without one is judged, unless there are very many. ``unnamed``: items so far
    with content and without URL.
    """

    served: PageResponse | None = None
    opted_out: bool = False
    items: ResponseItems = field(default_factory=ResponseItems)
    pages: dict[str, JudgedPage] = field(default_factory=dict)
    locks: defaultdict[str, Lock] = field(default_factory=lambda: defaultdict(Lock))
    urls: set[str] = field(default_factory=set)
    unnamed: int = 0

    @property
    def is_claimed(self) -> bool:
        """Whether an item has the URL of the response. Then no other item may have it."""
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

    def __init__(self) -> None:
        # Keeping the item keeps its id from being reused. A spider may yield the same object twice.
        self._visits: dict[int, deque[tuple[Any, Visit]]] = {}

    def announce(self, item: Any, visit: Visit) -> None:
        """Remember the visit of an item."""
        self._visits.setdefault(id(item), deque()).append((item, visit))

    def issue(self, item: Any) -> None:
        """Make the ticket of an item that enters the pipelines. Without announcement it gets a new visit."""
        visits = self._visits.get(id(item))
        if visits is None:
            _current.set(Ticket())
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
    """The ticket of the item that ends, by a signal of Scrapy; None at every further signal."""
    ticket = _current.get()
    if ticket is None or ticket.is_ended:
        return None
    ticket.is_ended = True
    return ticket


def fields_of(item: Any) -> Item:
    """The fields of an item of any class that have a value; empty for anything else."""
    if isinstance(item, dict):
        return item
    return dict(ItemAdapter(item)) if ItemAdapter.is_item(item) else {}
