"""Fetch one page as a crawl would."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response
from scrapy.settings import Settings
from scrapy.utils.datatypes import SequenceExclude
from twisted.python.failure import Failure

from scrapy_neardup.cli.output import to_line
from scrapy_neardup.crawl.middleware import visit_of
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.page.source import PageResponse

#: A crawl of one page must leave no trace.
_NO_TRACE = {"NEARDUP_ENABLED": False, "ITEM_PIPELINES": {}, "FEEDS": {}, "JOBDIR": None}


def fetch(url: str, settings: Settings) -> PageResponse:
    """Fetch a page with the settings of the project; any status will do, redirects are followed.

    Works once in a process, because Twisted's reactor does. Raises NearDupError if there is no answer.
    """
    own = settings.copy()
    own.setdict(_NO_TRACE, priority="cmdline")
    answers: list[Response | Failure] = []
    process = CrawlerProcess(own)
    process.crawl(OnePageSpider, url=url, answers=answers)
    process.start()
    served = next((visit_of(answer).served for answer in answers if isinstance(answer, Response)), None)
    if served is not None:
        return served
    why = next((to_line(answer.getErrorMessage()) for answer in answers if isinstance(answer, Failure)), "no answer")
    raise NearDupError(
        f"{to_line(url)} could not be fetched: {why.rstrip('.')}. Check that it can be reached, or name a file."
    )


class OnePageSpider(Spider):
    """Fetches one page and appends the answer to a list."""

    name = "neardup-extract"

    def __init__(self, url: str, answers: list[Response | Failure], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._url = url
        self._answers = answers

    async def start(self) -> AsyncIterator[Any]:
        """Request the page. HTTP errors are answers; Scrapy follows redirects."""
        yield Request(
            self._url,
            callback=self.parse,
            errback=self._answers.append,
            dont_filter=True,
            meta={"handle_httpstatus_list": SequenceExclude(range(300, 400))},
        )

    def parse(self, response: Response, **kwargs: Any) -> None:
        """Keep the response."""
        self._answers.append(response)
