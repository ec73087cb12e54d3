"""One response, its pages and its items on their way through the pipelines.

Scrapy gives a pipeline only the item, and other pipelines may replace it by another object. So the spider middleware
announces each item with its ``Visit``. The first pipeline of the chain turns that into a ``Ticket`` in a context
variable. All pipelines of an item and the signals at its end run in one context.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from itemadapter import ItemAdapter
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.http import Response, TextResponse

from scrapy_neardup.crawl.notes import log_refusal
from scrapy_neardup.judge.in_flight import Reservation
from scrapy_neardup.model import Verdict
from scrapy_neardup.page.item import Item, ItemFields
from scrapy_neardup.page.source import PageResponse
from scrapy_neardup.settings import DEFAULT_FIELDS, read_setting

#: A response with more items is a table, and no article with its comments: none of its items waits for another.
_MOST_HELD = 1000
#: Bytes that are counted for an item at least: about what its task takes.
_LEAST = 10_000
#: Seconds between two looks for room: nothing signals the end of a response. A look takes 0.1 ms.
_PAUSE = 0.01


@dataclass(eq=False, slots=True, kw_only=True)
class Awaited:
    """A file of a feed, or all items of a response. Pages are sealed when it ends.

    ``is_failed``: an item of it may be lost, so its pages do not count.
    """

    name: str = ""
    is_done: bool = False
    is_failed: bool = False


@dataclass(eq=False, slots=True)
class Visit(Awaited):
    """One response and its items; items of ``start()`` have none. A page that they share is sealed when all have ended.

    Otherwise the first item would seal the page, and a kill would lose the others for good.

    ``opted_out``: by the request. ``pages``: those that items share, by URL; ``locks``: one for each, while it is
    judged. ``urls``: of items; all are known before the first item without one is judged, unless there are very many.
    ``unnamed``: items so far with content and without URL. ``is_complete``: the callback yields no more items.
    ``was_cut``: the callback raised an error, so more items might have come. ``is_failed``: one of them may be lost, or
    an earlier pipeline lost an item. ``on_done`` is called when all items have ended.
    """

    served: PageResponse | None = None
    opted_out: bool = False
    pages: dict[str, JudgedPage] = field(default_factory=dict)
    locks: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    urls: set[str] = field(default_factory=set)
    unnamed: int = 0
    announced: int = 0
    ended: int = 0
    is_complete: bool = True
    was_cut: bool = False
    on_done: Callable[[Visit], None] | None = None

    @property
    def is_claimed(self) -> bool:
        """Whether an item has the URL of the response. Then no other item may have it."""
        return self.served is not None and self.served.url in self.urls

    @property
    def has_several(self) -> bool:
        """Whether there are several items, or might have been."""
        return self.announced + self.was_cut > 1

    @property
    def is_last(self) -> bool:
        """Whether the item that ends now is the last one."""
        return self.is_complete and self.ended + 1 >= self.announced

    def complete(self) -> None:
        """The spider's callback yields no more items."""
        self.is_complete = True
        self._check_done()

    def end_item(self) -> None:
        """One item has ended, and its page was handled."""
        self.ended += 1
        self._check_done()

    def _check_done(self) -> None:
        if self.is_complete and self.ended >= self.announced:
            call, self.on_done = self.on_done, None
            if call is not None:
                call(self)
            self.pages.clear()  # each leads back to this visit: the response would stay until a garbage collection


@dataclass(eq=False, slots=True)
class JudgedPage:
    """A page with its verdict, and what happened to the items that share it.

    ``reservation``: only a page that passes and is new to the state has one. ``visit``: its items share the page.
    ``awaited``: the feeds that wrote an item of the page, and the visit. ``is_rolled_back``: for the next item of the
    visit the page is judged again.
    """

    verdict: Verdict
    reservation: Reservation | None = None
    visit: Visit | None = None
    in_pipelines: int = 0
    is_scraped: bool = False
    is_failed: bool = False
    awaited: Set[Awaited] = frozenset()
    is_committed: bool = False
    is_rolled_back: bool = False


def visit_of(response: Response) -> Visit:
    """The visit of a response. It holds no object of Scrapy, so the response can go."""
    content_type, request = response.headers.get("Content-Type"), response.request
    redirects = () if request is None else (request.url, *request.meta.get("redirect_urls", ()))
    served = PageResponse(
        str(response.url),
        response.body,
        response.status,
        content_type.decode("latin-1") if content_type else None,
        frozenset(redirects),
        isinstance(response, TextResponse),
    )
    return Visit(served, opted_out=request is not None and request.meta.get("neardup") is False)


@dataclass(eq=False, slots=True)
class Ticket:
    """One item on its way. ``page``: only if the state has to know how the item ends."""

    visit: Visit = field(default_factory=Visit)
    page: JudgedPage | None = None
    is_used: bool = False
    is_ended: bool = False


_current: ContextVar[Ticket | None] = ContextVar("neardup_ticket", default=None)


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


class NearDupSpiderMiddleware:
    """Stands next to the engine, so it sees items as all other middlewares left them, and knows the visit of each."""

    def __init__(self, crawler: Crawler | None = None, fields: Mapping[str, str] = DEFAULT_FIELDS) -> None:
        """``fields``: NEARDUP_FIELDS."""
        #: The visits of items between spider and pipelines by the item's id, which is not reused while the item is
        #: here. A spider may yield the same object twice.
        self._visits: dict[int, deque[tuple[Any, Visit]]] = {}
        #: The most items of a response so far. If it is one, CloseSpider after an article loses no comment of it.
        self._most_items = 0
        self._crawler = crawler
        self._fields = ItemFields(fields)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NearDupSpiderMiddleware:
        """Read the settings. A SettingsError keeps the crawl from starting."""
        with log_refusal():
            return cls(crawler, read_setting(crawler.settings, "NEARDUP_FIELDS"))

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Pass items and requests of ``start()`` on, one by one while too many items wait for their verdict."""
        async for one in start:
            yield one
            if not isinstance(one, Request):
                await asyncio.sleep(0)  # by then the judge has it
            await _wait_for_room(self._crawler)

    async def process_spider_output(self, response: Any, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Announce every item of a callback. Items of an errback have no response.

        The first item waits for a second one or the end, because several items may be a listing. An item without URL
        gets the response's URL only if no other item has it. So it waits, with the items behind it, until another one
        has that URL or the callback ends. An error of the callback loses no item.
        """
        if not isinstance(response, Response):
            async for one in result:
                yield one
            return
        visit = visit_of(response)
        held, must_wait, failure = list[Any](), False, None
        visit.is_complete = False
        try:
            async for one in result:
                if one is None or isinstance(one, Request):
                    yield one
                    continue
                self.announce(one, visit)
                visit.announced += 1
                held.append(one)
                needs_url = self._needs_url(one, visit)
                must_wait = (must_wait or needs_url) and not visit.is_claimed and visit.announced <= _MOST_HELD
                if visit.announced > 1 and not must_wait:
                    ready, held = held, []
                    for item in ready:
                        yield item
        except Exception as error:
            failure, visit.was_cut = error, True
            visit.is_failed = not isinstance(error, CloseSpider) or not visit.announced == self._most_items == 1
        else:
            self._most_items = max(self._most_items, visit.announced)
        visit.complete()
        for item in held:
            yield item
        try:
            if failure is not None:
                raise failure
        finally:
            del failure  # the error leads to this frame: the response would stay until the next garbage collection

    def announce(self, item: Any, visit: Visit) -> None:
        self._visits.setdefault(id(item), deque()).append((item, visit))

    def issue(self, item: Any) -> None:
        """Make the ticket of an item that enters the pipelines. Without announcement it gets a new visit."""
        if (visits := self._visits.get(id(item))) is None:
            _current.set(Ticket())
            return
        _, visit = visits.popleft()
        if not visits:
            del self._visits[id(item)]
        _current.set(Ticket(visit))

    def _needs_url(self, item: Any, visit: Visit) -> bool:
        """Note the URL of an item in its visit; return whether it has none, so it may take that of the response."""
        try:
            fields = fields_of(item)
        except Exception:  # the judge reports it
            return False
        if url := self._fields.url(fields):
            visit.urls.add(self._fields.article_url(fields, url))
        return not (url or self._fields.part(fields))


class ResponsePipeline:
    """The first pipeline: makes the ticket of each item before another pipeline can replace the item."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ResponsePipeline:
        return cls(crawler)

    def process_item(self, item: Any) -> Any:
        """Make the ticket; the item passes unchanged.

        A project can switch the middleware off. Then each item gets its own visit.
        """
        middleware = self._crawler.get_spider_middleware(NearDupSpiderMiddleware)
        if middleware is None:
            _current.set(Ticket())
        else:
            middleware.issue(item)
        return item


# The backlog: the sizes of items before the judge, in bytes or characters.
#
# Scrapy counts the bytes of responses until their items are through, and sends no further requests above
# SCRAPER_SLOT_MAX_ACTIVE_SIZE. It does not count the content of items and items of ``start()``, so this adds both to
# Scrapy's count. Requests of ``start()`` also wait. Otherwise Scrapy would take all of them into its scheduler. An
# item in another pipeline is not counted, because that pipeline may wait for further items.


@contextmanager
def hold(item: Any, crawler: Crawler) -> Iterator[None]:
    """Count an item while it is judged."""
    slot, size = _slot_of(crawler), _size_of(item)
    if slot is not None:
        slot.active_size += size
    try:
        yield
    finally:
        if slot is not None:
            slot.active_size -= size


async def _wait_for_room(crawler: Crawler | None) -> None:
    """Wait while Scrapy's count is above its limit."""
    while (slot := _slot_of(crawler)) is not None and slot.needs_backout():
        await asyncio.sleep(_PAUSE)


def _slot_of(crawler: Crawler | None) -> Any:
    """Scrapy's scraper slot. None if no engine runs; then nobody sends requests."""
    try:
        return crawler.engine.scraper.slot  # type: ignore[union-attr]
    except (AttributeError, RuntimeError):
        return None


def _size_of(item: Any) -> int:
    """The size of an item's content.

    >>> _size_of({"html": "x" * 30_000, "lines": ["y" * 5_000], "n": 1})
    35000
    """
    try:
        values = list(ItemAdapter(item).values()) if ItemAdapter.is_item(item) else []
    except Exception:  # the judge reports it
        return _LEAST
    parts = (part for value in values for part in (value if isinstance(value, (list, tuple)) else [value]))
    return max(_LEAST, sum(len(part) for part in parts if isinstance(part, (str, bytes))))
