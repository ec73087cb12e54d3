"""The two ends of the way on which an item's response is handed over; see ``tickets``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response, TextResponse

from scrapy_neardup.crawl.coming import Coming
from scrapy_neardup.crawl.handed import HandedOver, led_here
from scrapy_neardup.crawl.tickets import Tickets
from scrapy_neardup.crawl.visits import Visit
from scrapy_neardup.page.served import Served


class NearDupSpiderMiddleware:
    """Stands next to the engine, so that it sees items as all other middlewares left them."""

    def __init__(self) -> None:
        self.tickets = Tickets(are_handed_over=True)
        self._handed = HandedOver()

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Items of ``start()`` have no response."""
        async for one in start:
            if isinstance(one, Request):
                self._handed.lighten(one)
            yield one

    async def process_spider_output(self, response: Any, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Announce every item; the response of an errback's item is a Failure, and so none, but for one handed over.

        The first item is held back until it is known whether another one comes, for several may be a listing. It is not
        lost with a callback that fails.
        """
        visit = self._visit(response)
        first: list[Any] = []
        coming = visit.coming if visit is not None else Coming()
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
                if visit.items == 1:
                    first.append(one)
                    continue
                if first:
                    yield first.pop()
                yield one
        except Exception:
            coming.no_more()
            if first and visit is not None:
                visit.items += 1  # perhaps there would have been more, and as a row it is not dropped for the page
                yield first.pop()
            raise
        coming.no_more()
        if first:
            yield first.pop()

    def _visit(self, response: Any) -> Visit | None:
        """The visit of a response, or of the one that its request hands over; None where there is neither."""
        request: Request | None = getattr(response, "request", None)  # Scrapy gives a Failure one
        handed = self._handed.response(request)
        if isinstance(response, Response):
            return visit_of(response, handed)
        if handed is None or request is None:
            return None
        return Visit(served_of(handed, frozenset((request.url,))), request.meta.get("neardup") is False)


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


def served_of(response: Response, aliases: frozenset[str] = frozenset()) -> Served:
    """A response as the rest of the package knows it; ``aliases``: other URLs that it answers for."""
    content_type = response.headers.get("Content-Type")
    return Served(
        str(response.url),
        response.body,
        response.status,
        content_type.decode("latin-1") if content_type else None,
        led_here(response) | aliases,
        isinstance(response, TextResponse),
    )
