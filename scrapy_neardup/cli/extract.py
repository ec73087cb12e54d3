"""``scrapy neardup extract``: show the text of a page that would be judged, and why."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response
from scrapy.settings import Settings
from scrapy.utils.datatypes import SequenceExclude
from twisted.python.failure import Failure

from scrapy_neardup.cli.command import JSON, STATE, STRICT, command, config_of, option
from scrapy_neardup.cli.opening import snapshot_if_exists
from scrapy_neardup.cli.output import (
    format_data,
    format_parts,
    is_coloured,
    present,
    to_line,
)
from scrapy_neardup.crawl.middleware import visit_of
from scrapy_neardup.errors import NearDupError, PageError, SettingsError
from scrapy_neardup.inspect import as_data
from scrapy_neardup.inspect.extraction import ExtractedPage, inspect_extraction
from scrapy_neardup.judge.recipes import state_recipe
from scrapy_neardup.page.reading import LineRole
from scrapy_neardup.page.source import PageResponse
from scrapy_neardup.report.words import ENGLISH
from scrapy_neardup.text.marking import Part
from scrapy_neardup.untrusted import one_line

_STDIN = "-"
#: Length of the longest role.
_WIDTH = max(len(role.value) for role in LineRole)


@command(
    "extract",
    option("source URL|FILE", "a page: a URL to fetch as a crawl would, an HTML file, or -"),
    option("--url URL", "the address of the page in a file; it shows the site"),
    *STATE,
    STRICT,
    JSON,
    examples="""\
roles of a line:
  article, prose        judged
  unseen                judged though invisible: a paragraph that a script unfolds
  boilerplate           left out: the state knows it from many pages; within another line {{like this}}
  frame, links, other   left out: navigation and footer, nothing but links, no letters

examples:
  scrapy neardup extract https://a.example/ferry
  scrapy neardup extract saved.html --url https://a.example/ferry --store sqlite:///var/crawls/state.sqlite
""",
)
def extract_text(arguments: argparse.Namespace) -> int:
    """Print the text of the page, and why it is read so."""
    config = config_of(arguments)
    method = config.make_method()
    served = _read_source(arguments)
    recipe = state_recipe(method, config.make_extractor())
    with snapshot_if_exists(arguments.store, config, recipe) as (store, why_no_state):
        try:
            found = inspect_extraction(served, method, config, store, why_no_state)
        except PageError as error:
            raise NearDupError(
                f"{to_line(arguments.source)} has no readable page: {to_line(str(error)).rstrip('.')} "
                f"({error.reason}). In a crawl its items pass unjudged."
            ) from None
    present(arguments, found, _lines(found, coloured=is_coloured()))
    return 0


def _read_source(arguments: argparse.Namespace) -> PageResponse:
    source: str = arguments.source
    if source.partition("://")[0].lower() in ("http", "https"):
        if arguments.url:
            raise SettingsError("--url is for a page in a file. A fetched page has its own URL; leave --url out.")
        return fetch(source, arguments.settings)
    if source == _STDIN:
        return PageResponse(arguments.url or "", sys.stdin.buffer.read())
    path = Path(source)
    try:
        return PageResponse(arguments.url or path.absolute().as_uri(), path.read_bytes())
    except (OSError, ValueError) as error:  # ValueError: the name has a NUL
        raise NearDupError(
            f"{one_line(source)} cannot be read: {one_line(str(error))}. Name an HTML file, a URL with http:// "
            "or https://, or - for standard input."
        ) from None


def _lines(found: ExtractedPage, *, coloured: bool) -> Iterator[str]:
    yield to_line(found.url) or "standard input"
    data = {**as_data(found), "judged": "yes" if found.judged else f"no: {ENGLISH(f'reason.{found.reason}')}"}
    yield format_data(data, "url", "text", "main", "lines", indent="  ")
    for one in found.lines:
        pages = f" (on {one.pages:,} pages)" if one.pages else ""
        # Without colours the role says that all of a line is boilerplate.
        is_marked = coloured or one.role != LineRole.BOILERPLATE.value
        text = " ".join(format_parts(one.parts if is_marked else (Part(one.text),), coloured=coloured).split())
        yield f"{one.role:<{_WIDTH}}  {text}{pages}"
    if not found.lines:
        yield "It shows no text."


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
    why = "no answer"
    for answer in answers:
        if isinstance(answer, Failure):
            why = to_line(answer.getErrorMessage())
        elif served := visit_of(answer).served:
            return served
    raise NearDupError(
        f"{to_line(url)} could not be fetched: {why.rstrip('.')}. Check that it can be reached, or name a file."
    )


class OnePageSpider(Spider):
    """Fetches one page and appends the answer to a list. HTTP errors are answers; Scrapy follows redirects."""

    name = "neardup-extract"

    def __init__(self, url: str, answers: list[Response | Failure], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._url = url
        self._answers = answers

    async def start(self) -> AsyncIterator[Any]:
        keep = self._answers.append
        meta = {"handle_httpstatus_list": SequenceExclude(range(300, 400))}
        yield Request(self._url, callback=keep, errback=keep, dont_filter=True, meta=meta)
