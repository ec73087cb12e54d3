"""What the items of one response share: its pages, each judged once, and the verdicts on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from itemadapter import ItemAdapter

from scrapy_neardup.crawl.event import Event
from scrapy_neardup.crawl.ledger import Account
from scrapy_neardup.crawl.response_items import ResponseItems
from scrapy_neardup.model import Verdict
from scrapy_neardup.page.item import Item
from scrapy_neardup.page.response import PageResponse


@dataclass(frozen=True, slots=True)
class Case:
    """A verdict, and the account of the page if it passes and is new to the state."""

    verdict: Verdict
    account: Account | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the page was taken back: then the next item of the same response is judged anew."""
        return self.account is not None and self.account.lost


@dataclass(eq=False, slots=True)
class PendingVerdict:
    """A page of a visit that is being judged, or was: then it is ``over`` and there is a case."""

    over: Event = field(default_factory=Event)
    case: Case | None = None


@dataclass(eq=False, slots=True)
class Visit:
    """One response, or none, and what its items share: each page of it is judged once.

    ``opted_out``: the request did. ``hearings``: by URL. ``unnamed``: items so far that brought content and no URL.
    ``items``: all that the callback has yielded so far; before the first is judged it is known whether there are more.
    ``urls``: those that items bring along. Before the first item without one is judged, all are known, unless
    there are very many. ``has_bare``: an item brings neither URL nor content, so its page is the response.
    ``texts``: a hash of the text of each page whose item brings URL and text.
    ``coming``: those of them that have not ended. ``is_bare``: there is no response though the add-on is on.
    """

    served: PageResponse | None = None
    opted_out: bool = False
    hearings: dict[str, PendingVerdict] = field(default_factory=dict)
    unnamed: int = 0
    items: int = 0
    urls: set[str] = field(default_factory=set)
    has_bare: bool = False
    texts: dict[str, int] = field(default_factory=dict)
    coming: ResponseItems = field(default_factory=ResponseItems)
    is_bare: bool = False

    @property
    def is_claimed(self) -> bool:
        """Whether an item brings the URL of the response along, so that no other may be known by it."""
        return self.served is not None and self.served.url in self.urls


def fields_of(item: Any) -> Item:
    """What an item of any class holds; nothing where it is no item."""
    return ItemAdapter(item) if ItemAdapter.is_item(item) else {}
