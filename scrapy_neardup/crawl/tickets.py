"""How the response of an item reaches the pipeline, and how the pipeline knows the item again.

Scrapy gives a pipeline the item alone, and other pipelines may replace it by another object. So the spider
middleware announces each item with its visit, the first pipeline of the chain makes a ticket of that, and the ticket
travels in a context variable: the chain of one item and the signals at its end run in one context.
"""

from __future__ import annotations

from collections import deque
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from scrapy_neardup.crawl.ledger import Account
from scrapy_neardup.crawl.response_items import ResponseItems
from scrapy_neardup.crawl.visits import Visit


@dataclass(eq=False, slots=True)
class Ticket:
    """One item's way through the pipelines.

    ``account``: that of its page, if the state has to know what becomes of the item. ``used``: our pipeline has had it
    before it. ``ended``: its end was told.
    """

    visit: Visit = field(default_factory=Visit)
    account: Account | None = None
    used: bool = False
    ended: bool = False


_current: ContextVar[Ticket | None] = ContextVar("neardup_ticket", default=None)


class Tickets:
    """The items of a crawl that are on their way from the spider to the pipelines, each with its visit."""

    def __init__(self, *, are_handed_over: bool = False) -> None:
        """``are_handed_over``: somebody announces the items that have a response."""
        self._are_handed_over = are_handed_over
        # Holding the item keeps its identity from being given away; the same object may be yielded twice.
        self._announced: dict[int, deque[tuple[Any, Visit]]] = {}

    def announce(self, item: Any, visit: Visit) -> None:
        """Remember which visit an item is of."""
        self._announced.setdefault(id(item), deque()).append((item, visit))

    def issue(self, item: Any) -> None:
        """Make the ticket of an item that enters the pipelines; one that was never announced has a visit to itself."""
        announced = self._announced.get(id(item))
        if announced is None:
            _current.set(Ticket(Visit(is_bare=self._are_handed_over)))
            return
        _, visit = announced.popleft()
        if not announced:
            del self._announced[id(item)]
        _current.set(Ticket(visit))


def ticket_here() -> Ticket:
    """The ticket of the item that our pipeline has before it; a new one where no pipeline before us made it."""
    ticket = _current.get()
    if ticket is None or ticket.used:
        ticket = Ticket()
        _current.set(ticket)
    ticket.used = True
    return ticket


def account_at_the_end() -> Account | None:
    """The account of the item whose end is being signalled; None if that has no bearing on the state."""
    ticket = _current.get()
    if ticket is None or not ticket.used:
        return None
    account, ticket.account = ticket.account, None
    return account


def coming_at_the_end() -> ResponseItems | None:
    """The items of the response of the item whose end was signalled; None if that was told already."""
    ticket = _current.get()
    if ticket is None or ticket.ended:
        return None
    ticket.ended = True
    return ticket.visit.coming
