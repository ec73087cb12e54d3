"""A page from the web, asked for as a crawl here would ask."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response
from scrapy.settings import Settings
from scrapy.utils.datatypes import SequenceExclude
from twisted.python.failure import Failure

from scrapy_neardup.commands.wording import line
from scrapy_neardup.crawl.middleware import visit_of
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.page.served import Served

#: What a crawl of one page does without: it is looked at, not kept.
_ONLY_LOOKING = {"NEARDUP_ENABLED": False, "ITEM_PIPELINES": {}, "FEEDS": {}, "JOBDIR": None}


def fetch(url: str, settings: Settings) -> Served:
    """What the server answers, whatever its status; redirects are followed.

    The settings of the project hold: user agent, proxies, robots.txt, middlewares. Works once in a process, as
    Twisted's reactor does. Raises NearDupError if there is no answer.
    """
    own = settings.copy()
    own.setdict(_ONLY_LOOKING, priority="cmdline")
    answers: list[Response | Failure] = []
    process = CrawlerProcess(own)
    process.crawl(OnePage, url=url, answers=answers)
    process.start()
    served = next((visit_of(answer).served for answer in answers if isinstance(answer, Response)), None)
    if served is not None:
        return served
    why = next((line(answer.getErrorMessage()) for answer in answers if isinstance(answer, Failure)), "no answer")
    raise NearDupError(
        f"{line(url)} could not be fetched: {why.rstrip('.')}. Check that it can be reached, or name a file."
    )


class OnePage(Spider):
    """Asks for one page, and hands over what comes of it."""

    name = "neardup-extract"

    def __init__(self, url: str, answers: list[Response | Failure], **kwargs: Any) -> None:
        """``answers`` takes the answer."""
        super().__init__(**kwargs)
        self._url = url
        self._answers = answers

    async def start(self) -> AsyncIterator[Any]:
        """The one request; errors of HTTP are answers, redirects are for Scrapy."""
        yield Request(
            self._url,
            callback=self.parse,
            errback=self._answers.append,
            dont_filter=True,
            meta={"handle_httpstatus_list": SequenceExclude(range(300, 400))},
        )

    def parse(self, response: Response, **kwargs: Any) -> None:
        """Keep it."""
        self._answers.append(response)
