"""The spider middleware: it connects each item with its response."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response, TextResponse

from scrapy_neardup.crawl.backlog import Backlog
from scrapy_neardup.crawl.event import Event
from scrapy_neardup.crawl.messages import told_first
from scrapy_neardup.crawl.response_items import ResponseItems
from scrapy_neardup.crawl.tickets import Tickets
from scrapy_neardup.crawl.visits import Visit, fields_of
from scrapy_neardup.oneline import line_logger, one_line
from scrapy_neardup.page.item import ItemFields
from scrapy_neardup.page.response import PageResponse
from scrapy_neardup.settings import DEFAULT_FIELDS, item_fields

# ----------------------------------------------------------------------------------------------------------------------
# An earlier response that a request hands over: the page of an article that the request only completes.
#
# ``meta={"neardup_response": response}``. The response waits with its request, perhaps in a queue on disk. So what
# waits is a copy without what a spider has made of it: its parsed tree takes several times the room of the page, its
# request leads to further ones, and neither can be pickled.


logger = line_logger(__name__)

#: The key in the request's meta.
HANDED = "neardup_response"


class ForwardedResponse:
    """Finds the responses that requests hand over; the log tells once of what is none."""

    def __init__(self) -> None:
        self._told = False

    def response(self, request: Request | None) -> Response | None:
        """The response that a request hands over, if it does."""
        handed = None if request is None else request.meta.get(HANDED)
        if handed is None or isinstance(handed, Response):
            return handed
        if not self._told:
            self._told = True
            several = isinstance(handed, (list, tuple)) and any(isinstance(one, Response) for one in handed)
            logger.warning(
                "meta[%r] of the request for %s is a %s, not a response, so its items are judged by their own "
                "response. %s (Logged once.)",
                HANDED,
                one_line(str(request.url)) if request is not None else "",
                type(handed).__name__,
                "It takes one response. If an article has several parts, give the item its text in a field, and name "
                "that field for 'text' in NEARDUP_FIELDS."
                if several
                else "Set the response itself: meta={'neardup_response': response}.",
            )
        return None

    def lighten(self, request: Request) -> None:
        """Have a request that is about to wait hold no more of the response than is judged."""
        handed = request.meta.get(HANDED)
        if isinstance(handed, Response):
            request.meta[HANDED] = handed.replace(request=_lead(handed), certificate=None)


def led_here(response: Response) -> frozenset[str]:
    """URLs that led to a response: that of its request, and those that were redirected."""
    if response.request is None:
        return frozenset()
    return frozenset((response.request.url, *response.meta.get("redirect_urls", ())))  # meta is that of the request


def _lead(response: Response) -> Request | None:
    """Of the request of a response what is asked for later."""
    if response.request is None:
        return None
    return Request(response.request.url, meta={"redirect_urls": response.meta.get("redirect_urls", ())})


# ----------------------------------------------------------------------------------------------------------------------
# The two ends of the way on which an item's response is handed over; see ``tickets``.


#: Of more items in one response none waits for another one: that is a table, and no article with its comments.
_MOST_HELD = 1000


class NearDupSpiderMiddleware:
    """Stands next to the engine, so that it sees items as all other middlewares left them."""

    def __init__(self, fields: Mapping[str, str] = DEFAULT_FIELDS) -> None:
        """``fields``: which field of an item holds what."""
        self.tickets = Tickets(are_handed_over=True)
        self.backlog = Backlog()
        self._handed = ForwardedResponse()
        self._fields = ItemFields(fields)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NearDupSpiderMiddleware:
        """One for each crawler; raises SettingsError, which keeps the crawl from starting."""
        with told_first():
            return cls(item_fields(crawler.settings))

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Items of ``start()`` have no response; what comes next waits while too much is to be judged."""
        async for one in start:
            if isinstance(one, Request):
                self._handed.lighten(one)
            yield one
            if not isinstance(one, Request):
                await Event().wait(0)  # by then it is before the judge
            await self.backlog.wait_for_room()

    async def process_spider_output(self, response: Any, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Announce every item; the response of an errback's item is a Failure, and so none, but for one handed over.

        The first item is held back until it is known whether another one comes, for several may be a listing. An item
        without a URL is held back, with those behind it, until another one brings the response's URL or the callback
        ends: it is known by that URL only if no other item is. Nothing is lost with a callback that fails.
        """
        visit = self._visit(response)
        held = _HeldItems(visit or Visit())
        coming = visit.coming if visit is not None else ResponseItems()
        coming.is_read = False
        try:
            async for one in result:
                if isinstance(one, Request):
                    self._handed.lighten(one)
                if visit is None or one is None or isinstance(one, Request):
                    yield one
                    continue
                self.tickets.announce(one, visit)
                visit.items += 1
                coming.announced += 1
                for ready in held.add(one, has_url=self._note(one, visit)):
                    yield ready
        except Exception:
            coming.no_more()
            if rest := held.release():
                held.visit.items += 1  # perhaps there would have been more; as a row it is not dropped for the page
            for ready in rest:
                yield ready
            raise
        coming.no_more()
        for ready in held.release():
            yield ready

    def _note(self, item: Any, visit: Visit) -> bool:
        """Keep the URL that an item brings along; whether it needs none from its response."""
        fields = fields_of(item)
        if url := self._fields.url(fields):
            visit.urls.add(self._fields.article_url(fields, url))
            return True
        if self._fields.part(fields):
            return True
        visit.has_bare |= not self._fields.has_content(fields)
        return False

    def _visit(self, response: Any) -> Visit | None:
        """The visit of a response, or of the one that its request hands over; None where there is neither."""
        request: Request | None = getattr(response, "request", None)  # Scrapy gives a Failure one
        handed = self._handed.response(request)
        if isinstance(response, Response):
            return visit_of(response, handed)
        if handed is None or request is None:
            return None
        return Visit(served_of(handed, frozenset((request.url,))), request.meta.get("neardup") is False)


class _HeldItems:
    """The items of one response that wait until it is known by which URLs all of them are known."""

    def __init__(self, visit: Visit) -> None:
        self.visit = visit
        self._items: list[Any] = []
        self._waits = False

    def add(self, item: Any, *, has_url: bool) -> list[Any]:
        """Add the next item, and return those that go on."""
        self._items.append(item)
        self._waits = (self._waits or not has_url) and not self.visit.is_claimed and self.visit.items <= _MOST_HELD
        return [] if self._waits or self.visit.items == 1 else self.release()

    def release(self) -> list[Any]:
        """All that wait, in their order."""
        items, self._items = self._items, []
        return items


class ResponsePipeline:
    """The first of the chain: makes the ticket of each item before another pipeline can replace the item."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._tickets = Tickets()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ResponsePipeline:
        """One for each crawler."""
        return cls(crawler)

    def open_spider(self) -> None:
        """Find the middleware; where a project has switched it off, items have no response."""
        middleware = self._crawler.get_spider_middleware(NearDupSpiderMiddleware)
        if middleware is not None:
            self._tickets = middleware.tickets

    def process_item(self, item: Any) -> Any:
        """Make the ticket; the item passes as it is."""
        self._tickets.issue(item)
        return item


def visit_of(response: Response, handed: Response | None = None) -> Visit:
    """The visit that a response is the answer to; of its items the response that was ``handed`` over is the page."""
    opted_out = response.request is not None and response.meta.get("neardup") is False
    if handed is None:
        return Visit(served_of(response), opted_out)
    return Visit(served_of(handed, led_here(response) | {str(response.url)}), opted_out)


def served_of(response: Response, aliases: frozenset[str] = frozenset()) -> PageResponse:
    """A response as the rest of the package knows it; ``aliases``: other URLs that it answers for."""
    content_type = response.headers.get("Content-Type")
    return PageResponse(
        str(response.url),
        response.body,
        response.status,
        content_type.decode("latin-1") if content_type else None,
        led_here(response) | aliases,
        isinstance(response, TextResponse),
    )
