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
    format_count,
    format_data,
    format_parts,
    is_coloured,
    present,
    to_line,
)
from scrapy_neardup.crawl.middleware import visit_of
from scrapy_neardup.errors import NearDupError, PageError, SettingsError
from scrapy_neardup.inspect.extraction import ExtractedPage, inspect_extraction
from scrapy_neardup.judge.recipes import state_recipe
from scrapy_neardup.page.reading import LineRole, Reading
from scrapy_neardup.page.source import PageResponse
from scrapy_neardup.text.marking import Mark, Part
from scrapy_neardup.untrusted import one_line

_STDIN = "-"
_MAIN = "trafilatura's main text has {held} of {letters} of the visible prose"
#: Why a page was read in its way; see ``Reading.explain``.
_READINGS = {
    "extractor": "NEARDUP_EXTRACTOR gave {letters}, which are judged unchanged.",
    "no_prose": "none of its {many} visible lines is prose.",
    "no_text": "it shows no text.",
    "no_main": "trafilatura finds no main text, so only the {letters} of visible prose are judged.",
    "article": "{main}, and is also judged on its own.",
    "menu": "{main}, but it is ignored: more than {share} of it are links, as in a menu.",
    "too_few": "{main}, so it is ignored: it would need {least} letters.",
    "too_little": "{main}, so it is ignored: it would need {share} of them.",
}
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
  article               judged, and part of the article: trafilatura's main text, if it is plausible
  prose                 judged; all text of a page without a clear article, or the text of NEARDUP_EXTRACTOR
  unseen                judged though invisible: a paragraph that a script unfolds
  boilerplate           left out: the state knows it from many pages; within another line {{like this}}
  frame                 left out: navigation or footer by the page's own markup
  links                 left out: nothing but links
  other                 left out: no letters, or not given by NEARDUP_EXTRACTOR

the state:
  The command uses the state of a crawl here, if it exists, is free and has the same settings. It asks only for
  boilerplate. The page is neither compared with the state nor added to it.

examples:
  scrapy neardup extract https://a.example/ferry
  scrapy neardup extract saved.html --url https://a.example/ferry --store sqlite:///var/crawls/state.sqlite
  curl https://a.example/ferry | scrapy neardup extract - --json | jq .reader
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
    data = _data(found)
    present(arguments, data, _lines(found, data, coloured=is_coloured()))
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


def _data(found: ExtractedPage) -> dict[str, Any]:
    page = found.page
    return {
        "url": page.url,
        "title": page.title,
        "headline": page.headline,
        "keywords": list(page.keywords),
        "description": page.description,
        "canonical": page.canonical or None,
        "site": page.site or None,
        "reader": page.reader,
        "why": _describe_reading(found.reading),
        "judged": not found.reason,
        "reason": found.reason or None,
        "letters": found.letters,
        "own_letters": found.own,
        "quoted_letters": found.quoted,
        "store": found.location,
        "why_no_store": found.why_no_state or None,
        "pages_of_site": (found.site.pages if found.site else 0) if found.location else None,
        "text": page.text,
        "main": page.main,
        "lines": [
            {
                "role": one.role.value,
                "text": one.text,
                "boilerplate": [part.text for part in one.parts if part.mark is Mark.BOILERPLATE],
                "pages": one.pages or None,
            }
            for one in found.lines
        ],
    }


def _lines(found: ExtractedPage, data: dict[str, Any], *, coloured: bool) -> Iterator[str]:
    yield to_line(found.page.url) or "standard input"
    yield format_data(data, "url", "text", "main", "lines", indent="  ")
    for one in found.lines:
        pages = f" (on {one.pages:,} pages)" if one.pages else ""
        # Without colours the role says that all of a line is boilerplate.
        parts = [Part(one.text)] if one.role is LineRole.BOILERPLATE and not coloured else one.parts
        text = " ".join(format_parts(parts, coloured=coloured).split())
        yield f"{one.role.value:<{_WIDTH}}  {text}{pages}"
    if not found.lines:
        yield "It shows no text."


def _describe_reading(reading: Reading) -> str:
    """Return why the page was read in this way."""
    name, numbers = reading.explain()
    shown = {key: f"{value:.0%}" if isinstance(value, float) else f"{value:,}" for key, value in numbers.items()}
    if "letters" in numbers:
        shown["letters"] = format_count(int(numbers["letters"]), "letter")
    return _READINGS[name].format(**shown, main=_MAIN.format(**shown) if "held" in shown else "")


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
