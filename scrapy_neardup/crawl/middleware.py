"""The two ends of the way on which an item's response is handed over; see ``tickets``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response, TextResponse

from scrapy_neardup.config import DEFAULT_FIELDS, item_fields
from scrapy_neardup.crawl.backlog import Backlog
from scrapy_neardup.crawl.coming import Coming
from scrapy_neardup.crawl.handed import HandedOver, led_here
from scrapy_neardup.crawl.telling import told_first
from scrapy_neardup.crawl.tickets import Tickets
from scrapy_neardup.crawl.visits import Visit, fields_of
from scrapy_neardup.crawl.waiting import Event
from scrapy_neardup.page.item import ItemFields
from scrapy_neardup.page.served import Served

#: Of more items in one response none waits for another one: that is a table, and no article with its comments.
_MOST_HELD = 1000


class NearDupSpiderMiddleware:
    """Stands next to the engine, so that it sees items as all other middlewares left them."""

    def __init__(self, fields: Mapping[str, str] = DEFAULT_FIELDS) -> None:
        """``fields``: which field of an item holds what."""
        self.tickets = Tickets(are_handed_over=True)
        self.backlog = Backlog()
        self._handed = HandedOver()
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
            visit.urls.add(self._fields.named(fields, url))
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
