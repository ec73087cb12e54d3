"""The spider middleware connects each item with its response."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response, TextResponse

from scrapy_neardup.crawl.notes import log_refusal
from scrapy_neardup.crawl.turns import Backlog, Event
from scrapy_neardup.crawl.visits import Tickets, Visit, fields_of
from scrapy_neardup.page.item import ItemFields
from scrapy_neardup.page.source import PageResponse
from scrapy_neardup.settings import DEFAULT_FIELDS, item_fields
from scrapy_neardup.untrusted import line_logger, one_line

logger = line_logger(__name__)

#: The key in a request's meta with an earlier response: the page of an article that the request only completes.
FORWARDED = "neardup_response"
#: A response with more items is a table, and no article with its comments: none of its items waits for another.
_MOST_HELD = 1000


class NearDupSpiderMiddleware:
    """Stands next to the engine, so it sees items as all other middlewares left them."""

    def __init__(self, fields: Mapping[str, str] = DEFAULT_FIELDS) -> None:
        """``fields``: NEARDUP_FIELDS."""
        self.tickets = Tickets(are_announced=True)
        self.backlog = Backlog()
        self._fields = ItemFields(fields)
        self._has_warned = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NearDupSpiderMiddleware:
        """Read the settings. A SettingsError keeps the crawl from starting."""
        with log_refusal():
            return cls(item_fields(crawler.settings))

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Items of ``start()`` have no response. What comes next waits while too much is to be judged."""
        async for one in _lighten_requests(start):
            yield one
            if not isinstance(one, Request):
                await Event().wait(0)  # by then the judge has it
            await self.backlog.wait_for_room()

    async def process_spider_output(self, response: Any, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Announce every item.

        The first item waits for a second one or the end, because several items may be a listing. An item without URL
        gets the response's URL only if no other item has it. So it waits, with the items behind it, until another one
        has that URL or the callback ends. An error of the callback loses no item.
        """
        visit = self._visit(response)
        if visit is None:
            async for one in _lighten_requests(result):
                yield one
            return
        items, held, must_wait = visit.items, list[Any](), False
        items.is_complete = False
        try:
            async for one in _lighten_requests(result):
                if one is None or isinstance(one, Request):
                    yield one
                    continue
                self.tickets.announce(one, visit)
                items.announced += 1
                has_url = self._add_url(one, visit)
                must_wait = (must_wait or not has_url) and not visit.is_claimed and items.announced <= _MOST_HELD
                held.append(one)
                if items.announced > 1 and not must_wait:
                    ready, held = held, []
                    for item in ready:
                        yield item
        except Exception:
            items.is_cut_off = True
            items.complete()
            for item in held:
                yield item
            raise
        items.complete()
        for item in held:
            yield item

    def _add_url(self, item: Any, visit: Visit) -> bool:
        """Add the item's URL to its visit; returns whether the item needs none from its response."""
        fields = fields_of(item)
        if url := self._fields.url(fields):
            visit.urls.add(self._fields.article_url(fields, url))
            return True
        if self._fields.part(fields):
            return True
        visit.has_bare |= not self._fields.has_content(fields)
        return False

    def _visit(self, response: Any) -> Visit | None:
        """The visit of a response or of the one that its request forwards; None without both.

        An errback gets a Failure instead of a response. Scrapy gives that the request, too.
        """
        request: Request | None = getattr(response, "request", None)
        forwarded = self._forwarded(request)
        if isinstance(response, Response):
            return visit_of(response, forwarded)
        if forwarded is None or request is None:
            return None
        return Visit(_served(forwarded, frozenset((request.url,))), request.meta.get("neardup") is False)

    def _forwarded(self, request: Request | None) -> Response | None:
        """The earlier response that a request forwards; warns once of anything else in its place."""
        found = None if request is None else request.meta.get(FORWARDED)
        if request is None or found is None or isinstance(found, Response):
            return found
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "meta[%r] of the request for %s is a %s, not one response, so its items are judged by their own "
                "response. Set the response itself: meta={'neardup_response': response}. If an article has several "
                "parts, give the item its text in a field, and name that field in NEARDUP_FIELDS. (Logged once.)",
                FORWARDED,
                one_line(str(request.url)),
                type(found).__name__,
            )
        return None


class ResponsePipeline:
    """The first pipeline: makes the ticket of each item before another pipeline can replace the item."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._tickets = Tickets()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ResponsePipeline:
        """One for each crawler."""
        return cls(crawler)

    def open_spider(self) -> None:
        """Find the middleware. If a project has switched it off, items have no response."""
        middleware = self._crawler.get_spider_middleware(NearDupSpiderMiddleware)
        if middleware is not None:
            self._tickets = middleware.tickets

    def process_item(self, item: Any) -> Any:
        """Make the ticket; the item passes as it is."""
        self._tickets.issue(item)
        return item


def visit_of(response: Response, forwarded: Response | None = None) -> Visit:
    """The visit of a response. If its request ``forwarded`` an earlier one, that is the page of its items."""
    opted_out = response.request is not None and response.meta.get("neardup") is False
    if forwarded is None:
        return Visit(_served(response), opted_out)
    return Visit(_served(forwarded, _urls_before(response) | {str(response.url)}), opted_out)


def _served(response: Response, aliases: frozenset[str] = frozenset()) -> PageResponse:
    """A response without Scrapy; ``aliases``: other URLs that it answers for."""
    content_type = response.headers.get("Content-Type")
    return PageResponse(
        str(response.url),
        response.body,
        response.status,
        content_type.decode("latin-1") if content_type else None,
        _urls_before(response) | aliases,
        isinstance(response, TextResponse),
    )


def _urls_before(response: Response) -> frozenset[str]:
    """The URL of the request, and those that were redirected."""
    if response.request is None:
        return frozenset()
    return frozenset((response.request.url, *response.meta.get("redirect_urls", ())))  # meta is that of the request


async def _lighten_requests(result: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for one in result:
        if isinstance(one, Request):
            lighten(one)
        yield one


def lighten(request: Request) -> None:
    """Replace a forwarded response by a copy that can wait with its request, perhaps in a queue on disk.

    The copy lacks the parsed tree, which is several times as large as the page. It lacks the request, which leads to
    further ones. Neither can be pickled.
    """
    response = request.meta.get(FORWARDED)
    if isinstance(response, Response):
        lead = None
        if response.request is not None:
            lead = Request(response.request.url, meta={"redirect_urls": response.meta.get("redirect_urls", ())})
        request.meta[FORWARDED] = response.replace(request=lead, certificate=None)
