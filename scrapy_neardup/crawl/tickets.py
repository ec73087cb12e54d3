"""How the response of an item reaches the pipeline, and how the pipeline knows the item again.

Scrapy gives a pipeline the item alone, and other pipelines may replace it by another object. So the spider
middleware notes item and response under the item's identity, the first pipeline of the chain turns the note
into a ticket, and the ticket travels in a context variable: the chain of one item and the signals at its end
run in one context.
"""

from __future__ import annotations

from collections import deque
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_neardup.crawl.ledger import Case


class Ticket:
    """One item's way through the pipelines; ``case`` is what the pipeline notes of it."""

    __slots__ = ("case", "response", "used")

    def __init__(self, response: Response | None) -> None:
        self.response = response
        self.used = False
        self.case: Case | None = None


_current: ContextVar[Ticket | None] = ContextVar("neardup_ticket", default=None)
_tables: WeakKeyDictionary[Crawler, dict[int, deque[tuple[Any, Response]]]] = WeakKeyDictionary()


def note(crawler: Crawler, item: Any, response: Response) -> None:
    """Remember which response an item is of. Holding the item keeps its identity from being given away."""
    _tables.setdefault(crawler, {}).setdefault(id(item), deque()).append((item, response))


def draw(crawler: Crawler, item: Any) -> None:
    """Make the ticket of an item that enters the pipelines; one that was never noted has no response."""
    table = _tables.get(crawler, {})
    noted = table.get(id(item))
    response = None
    if noted:
        _, response = noted.popleft()
        if not noted:
            del table[id(item)]
    _current.set(Ticket(response))


def punch() -> Ticket:
    """The ticket of the item that is here now; a new one where no pipeline before us drew it."""
    ticket = _current.get()
    if ticket is None or ticket.used:
        ticket = Ticket(None)
        _current.set(ticket)
    ticket.used = True
    return ticket


def current() -> Ticket | None:
    """The ticket of the item whose signal is being sent, if it came as far as our pipeline."""
    ticket = _current.get()
    return ticket if ticket is not None and ticket.used else None
