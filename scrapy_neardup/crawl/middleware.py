"""Hands the pipeline the response of each item; see ``handoff``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_neardup.crawl import tickets as handoff


class NearDupSpiderMiddleware:
    """Stands next to the engine, so that it sees items as all other middlewares left them."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NearDupSpiderMiddleware:
        """One for each crawler."""
        return cls(crawler)

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Items of ``start()`` have no response."""
        async for one in start:
            yield one

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Note every item; the response of an errback's item is a Failure, which is none."""
        async for one in result:
            if one is not None and not isinstance(one, Request) and isinstance(response, Response):
                handoff.note(self._crawler, one, response)
            yield one
