"""The two ends of the way on which an item's response is handed over; see ``tickets``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response, TextResponse

from scrapy_neardup.crawl.coming import Coming
from scrapy_neardup.crawl.tickets import Tickets
from scrapy_neardup.crawl.visits import Visit
from scrapy_neardup.page.served import Served


class NearDupSpiderMiddleware:
    """Stands next to the engine, so that it sees items as all other middlewares left them."""

    def __init__(self) -> None:
        self.tickets = Tickets()

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Items of ``start()`` have no response."""
        async for one in start:
            yield one

    async def process_spider_output(self, response: Any, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Announce every item; the response of an errback's item is a Failure, which is none.

        The first item is held back until it is known whether another one comes, for several may be a listing. It is not
        lost with a callback that fails.
        """
        visit = visit_of(response) if isinstance(response, Response) else None
        first: list[Any] = []
        coming = visit.coming if visit is not None else Coming()
        coming.is_read = False
        try:
            async for one in result:
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


def visit_of(response: Response) -> Visit:
    """The visit that a response is the answer to."""
    content_type = response.headers.get("Content-Type")
    aliases: frozenset[str] = frozenset()
    opted_out = False
    if response.request is not None:  # meta is that of the request
        aliases = frozenset((response.request.url, *response.meta.get("redirect_urls", ())))
        opted_out = response.meta.get("neardup") is False
    served = Served(
        str(response.url),
        response.body,
        response.status,
        content_type.decode("latin-1") if content_type else None,
        aliases,
        isinstance(response, TextResponse),
    )
    return Visit(served, opted_out)
