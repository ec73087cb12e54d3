"""The spider middleware connects each item with its response."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from itemadapter import ItemAdapter
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response, TextResponse

from scrapy_neardup.crawl.notes import log_refusal
from scrapy_neardup.crawl.visits import Tickets, Visit, fields_of
from scrapy_neardup.page.item import ItemFields
from scrapy_neardup.page.source import PageResponse
from scrapy_neardup.settings import DEFAULT_FIELDS, read_setting

#: A response with more items is a table, and no article with its comments: none of its items waits for another.
_MOST_HELD = 1000
#: Bytes that are counted for an item at least: about what its task takes.
_LEAST = 10_000
#: Seconds between two looks for room: nothing signals the end of a response. A look takes 0.1 ms.
_PAUSE = 0.01


# The backlog: the sizes of items before the judge, in bytes or characters.
#
# Scrapy counts the bytes of responses until their items are through, and sends no further requests above
# SCRAPER_SLOT_MAX_ACTIVE_SIZE. It does not count the content of items and items of ``start()``, so this adds both to
# Scrapy's count. ``start()`` also waits with requests. Otherwise Scrapy would take all of them into its scheduler. An
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


class NearDupSpiderMiddleware:
    """Stands next to the engine, so it sees items as all other middlewares left them."""

    def __init__(self, crawler: Crawler | None = None, fields: Mapping[str, str] = DEFAULT_FIELDS) -> None:
        """``fields``: NEARDUP_FIELDS."""
        self.tickets = Tickets()
        self._crawler = crawler
        self._fields = ItemFields(fields)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NearDupSpiderMiddleware:
        """Read the settings. A SettingsError keeps the crawl from starting."""
        with log_refusal():
            return cls(crawler, read_setting(crawler.settings, "NEARDUP_FIELDS"))

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Items of ``start()`` have no response. The next ones wait while too many pages wait for the judge."""
        async for one in start:
            yield one
            if not isinstance(one, Request):
                await asyncio.sleep(0)  # by then the judge has it
            await _wait_for_room(self._crawler)

    async def process_spider_output(self, response: Any, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Announce every item. Items of an errback have no response.

        The first item waits for a second one or the end, because several items may be a listing. An item without URL
        gets the response's URL only if no other item has it. So it waits, with the items behind it, until another one
        has that URL or the callback ends. An error of the callback loses no item.
        """
        if not isinstance(response, Response):
            async for one in result:
                yield one
            return
        visit = visit_of(response)
        items, held, must_wait, failure = visit.items, list[Any](), False, None
        items.is_complete = False
        try:
            async for one in result:
                if one is None or isinstance(one, Request):
                    yield one
                    continue
                self.tickets.announce(one, visit)
                items.announced += 1
                held.append(one)
                needs_url = self._needs_url(one, visit)
                must_wait = (must_wait or needs_url) and not visit.is_claimed and items.announced <= _MOST_HELD
                if items.announced > 1 and not must_wait:
                    ready, held = held, []
                    for item in ready:
                        yield item
        except Exception as error:
            failure = error
            items.is_lost = True
        items.complete()
        for item in held:
            yield item
        try:
            if failure is not None:
                raise failure
        finally:
            del failure  # the error leads to this frame: the response would stay until the next garbage collection

    def _needs_url(self, item: Any, visit: Visit) -> bool:
        """Whether the item may take the URL of its response. An item's own URL is added to its visit."""
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
        """Make the ticket; the item passes unchanged."""
        self._tickets.issue(item)
        return item


def visit_of(response: Response) -> Visit:
    """The visit of a response, which is kept without Scrapy."""
    content_type = response.headers.get("Content-Type")
    aliases: frozenset[str] = frozenset()
    opted_out = False
    if response.request is not None:
        aliases = frozenset((response.request.url, *response.meta.get("redirect_urls", ())))
        opted_out = response.meta.get("neardup") is False
    served = PageResponse(
        str(response.url),
        response.body,
        response.status,
        content_type.decode("latin-1") if content_type else None,
        aliases,
        isinstance(response, TextResponse),
    )
    return Visit(served, opted_out)
