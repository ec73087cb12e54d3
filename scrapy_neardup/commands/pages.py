"""Pages that a user names to a command."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import AsyncIterator, Iterator, Sized
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response
from scrapy.settings import Settings
from scrapy.utils.datatypes import SequenceExclude
from twisted.python.failure import Failure

from scrapy_neardup.commands.output import line
from scrapy_neardup.crawl.middleware import visit_of
from scrapy_neardup.crawl.state_location import page_extractor
from scrapy_neardup.errors import AnyReason, ExtractionError, NearDupError, PageError, Reason, SettingsError
from scrapy_neardup.evaluation.documents import FeedReader, is_text, read_documents
from scrapy_neardup.inputs import FORMATS, STDIN, Entry, read_input
from scrapy_neardup.inputs.documents import HTML
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.oneline import one_line
from scrapy_neardup.page.extraction import decode_body, extract
from scrapy_neardup.page.html import is_risky
from scrapy_neardup.page.limits import limit_page
from scrapy_neardup.page.response import PageContent, PageResponse
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.settings import DEFAULT_FIELDS, Config
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from scrapy_neardup.text.prose import why_unjudged

# ----------------------------------------------------------------------------------------------------------------------
# A page of HTML as a crawl would read it: within the same limits.


def read_bounded(html: str, url: str, config: Config) -> Page:
    """The page; raises ExtractionError if there is none, or it is too much to be read or judged."""
    risky_pool = config.make_risky_pool() if len(html) <= config.max_html and is_risky(html) else None
    if risky_pool is not None:
        with closing(risky_pool):
            page = risky_pool.read(PageContent(url, html))
    else:
        page = extract(html, url, max_html=config.max_html, extractor=page_extractor(config))
    return within_bounds(page, config)


def within_bounds(page: Page, config: Config) -> Page:
    """As much of the page as is judged; raises ExtractionError if its text is too much."""
    page = limit_page(page, config.max_text)
    if page.unread:
        raise ExtractionError(page.unread, f"its text has more than {config.max_text:,} characters (NEARDUP_MAX_TEXT)")
    return page


# ----------------------------------------------------------------------------------------------------------------------
# A page before it is held against any other: its fingerprint, or why it cannot be judged.


_WHY_NOT: dict[Reason, str] = {
    "no_text": "has no text",
    "too_short": "has fewer than {} letters in lines long enough for prose",
    "boilerplate": "has fewer than {} letters besides boilerplate",
    "quotes": "has fewer than {} letters besides quotes and boilerplate",
}


def prejudge(
    method: Method, page: Page, min_letters: int, store: PageStore | None
) -> tuple[Fingerprint | None, AnyReason]:
    """The page as a crawl has it before it looks for others, and the reason for which it cannot be judged, or nothing.

    ``store`` knows what is boilerplate. The fingerprint is None where the text is not enough for one. Raises
    LexiconNeeded if the method cannot read it.
    """
    if reason := why_unjudged(page.text, min_letters):
        return None, reason
    known = store.on_site(page.site) if store else None
    fingerprint = method.for_state(page, known)
    return fingerprint, fingerprint.why_unjudged(min_letters)


def why_not(reason: Reason, min_letters: int) -> str:
    """What is the matter with a page that cannot be judged, as the rest of a sentence that names it.

    >>> why_not("too_short", 40)
    'has fewer than 40 letters in lines long enough for prose'
    """
    return _WHY_NOT[reason].format(min_letters)


# ----------------------------------------------------------------------------------------------------------------------
# The pages that are named to a command by their URLs: one by one, or as a list.


def add_urls(parser: argparse.ArgumentParser) -> None:
    """The options that name pages."""
    parser.add_argument(
        "urls",
        metavar="URL",
        nargs="*",
        help="a page, by its URL as crawled; -: read URLs from standard input, one per line",
    )
    parser.add_argument("--from", dest="file", metavar="FILE", help="the pages in the field url of a file of records")
    parser.add_argument("--format", choices=FORMATS, default="", help="format of FILE (default: by suffix)")


def named(arguments: argparse.Namespace) -> list[str]:
    """The URLs, each once; raises NearDupError where there is none, or a list cannot be read."""
    urls = [one for url in arguments.urls for one in (_lines() if url == STDIN else [url])]
    if arguments.file:
        urls += _records(arguments.file, arguments.format)
    if not urls:
        raise SettingsError("No page is named. Give URLs, or - for standard input, or --from FILE.")
    return list(dict.fromkeys(urls))


def _lines() -> Iterator[str]:
    """URLs from standard input, as they are or as JSON lines."""
    for text in sys.stdin:
        if text.lstrip().startswith("{"):
            try:
                yield _url(json.loads(text), "standard input")
            except ValueError:
                raise NearDupError(f"{text.strip()[:80]!r} is no JSON. Give one URL or JSON object per line.") from None
        elif text.strip():
            yield text.strip()


def _records(file: str, format: str) -> Iterator[str]:
    for record in read_input(file, format):
        if isinstance(record, Entry):
            yield _url(record.fields, record.place)
        else:
            raise NearDupError(f"{record.place} cannot be read: {record.why}. Nothing is changed.")


def _url(fields: object, place: str) -> str:
    url = fields.get("url") if hasattr(fields, "get") else None
    if not isinstance(url, str) or not url.strip():
        raise NearDupError(f"{place} has no url, but each record needs one. Nothing is changed.")
    return url.strip()


# ----------------------------------------------------------------------------------------------------------------------
# A page from the web, asked for as a crawl here would ask.


#: What a crawl of one page does without: it is looked at, not kept.
_ONLY_LOOKING = {"NEARDUP_ENABLED": False, "ITEM_PIPELINES": {}, "FEEDS": {}, "JOBDIR": None}


def fetch(url: str, settings: Settings) -> PageResponse:
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


# ----------------------------------------------------------------------------------------------------------------------
# The documents of a feed for commands that look at whole corpora, read as a crawl with these settings would.


@contextmanager
def opened_feed(config: Config) -> Iterator[FeedReader]:
    """What reads feeds; pages that may take long are read in a process of their own, which ends with it."""
    risky_pool = config.make_risky_pool()
    with closing(risky_pool) if risky_pool else nullcontext():
        source = PageSource(
            config.fields,
            config.max_html,
            page_extractor(config),
            max_text=config.max_text,
            read_risky=risky_pool.read if risky_pool else None,
        )
        yield FeedReader(config.fields, source, renamed=dict(config.fields) != DEFAULT_FIELDS)


def check_read(command: str, feed: FeedReader, documents: Sized, name: str) -> None:
    """A line on standard error if records were left out; raises NearDupError if there is no document."""
    if feed.left_out:
        why = ", ".join(f"{count:,} {one_line(reason)}" for reason, count in feed.left_out.most_common())
        sys.stderr.write(f"{command}: left out of the feed: {why}.\n")
    if not len(documents):
        read = "standard input" if name == STDIN else name
        raise NearDupError(
            f"{read} contains no document with a text. Check that it is the right file. If the text has another "
            "field, name it in NEARDUP_FIELDS."
        )


# ----------------------------------------------------------------------------------------------------------------------
# What two pages can be compared from: an HTML file, a text, a document of a corpus, a page of the state.


_URL = re.compile(r"[a-z][a-z0-9+.-]*://|text:[0-9a-f]{16}$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Side:
    """One of two pages, with the name that it was asked for by: a ``page``, or a ``record`` of the state, or both.

    A record is what is compared by, if there is one; the page beside it is what the state tells of it.
    """

    name: str
    page: Page | None = None
    record: Record | None = None

    @property
    def site(self) -> str:
        """Whose page it is, empty where that is not known."""
        return self.page.site if self.page else site_of(self.record.url) if self.record else ""


def read_page(name: str, config: Config, *, or_url: bool = False) -> Page | None:
    """The page of a file, or of a document that is written FILE#ID; None for what looks like a URL.

    ``or_url``: whatever is no file is taken for a URL, as that of an item may be any string. Raises NearDupError if
    there is no such file or document, or no page can be made of it.
    """
    if _URL.match(name):
        return None
    if _exists(name):
        return _from_file(Path(name), config)
    for at, char in enumerate(name):
        if char == "#" and at and _exists(name[:at]):
            return _from_many(Path(name[:at]), name[at + 1 :])
    if or_url:
        return None
    raise NearDupError(
        f"{name} does not exist. Name a file of HTML (.html, .htm) or text (.txt), one document in JSON lines "
        "(FILE#ID), or the URL of a page in the state."
    )


def read_side(url: str, store: PageStore) -> Side:
    """What the state holds of a URL, with its text if that was kept; raises NearDupError if nothing can be compared."""
    record = store.find(url)
    if record is None:
        raise NearDupError(
            f"The state at {store.location} has no page {url}. Write the URL as crawled, or name a file."
        )
    kept = store.evidence(record.id)
    page = Page(record.url, kept.title, text=kept.text, site=site_of(record.url)) if kept and kept.text else None
    compared = bool(record.sketch) and not record.is_light
    if compared or page:
        return Side(url, page, record if compared else None)
    if record.former:
        raise NearDupError(
            f"The state has no fingerprint of {url} by this method, because it was migrated and the page has not come "
            "again since. Name a file, or run: scrapy neardup migrate --from FEED"
        )
    original = store.record(record.original)
    whose = (
        f" of {original.url}, similarity {record.similarity:.2f}" if original else " of a page no longer in the state"
    )
    raise NearDupError(
        f"The state has no text of {url}. It knows only that it is a copy{whose}. Compare it with its original, name "
        'a file with its text, or set NEARDUP_KEEP = "texts" before the next crawl.'
    )


def _from_file(path: Path, config: Config) -> Page:
    if path.name.lower().endswith(HTML):
        return _from_html(path, config)
    if path.is_file() and is_text(path):
        return next(read_documents(path)).page()
    raise NearDupError(
        f"{path} is neither HTML (.html, .htm) nor text (.txt). For JSON lines, name a document: {path}#ID."
    )


def _from_html(path: Path, config: Config) -> Page:
    """The page as a crawl would extract it; which site's it is, is not known."""
    try:
        html = decode_body(path.read_bytes())
        url = path.absolute().as_uri()
        return read_bounded(html, url, config)
    except OSError as error:
        raise NearDupError(f"{path} cannot be read: {error}. Check the file.") from None
    except PageError as error:
        raise NearDupError(f"{path} has no readable page: {error} ({error.reason}). Name another file.") from None


def _from_many(path: Path, id: str) -> Page:
    first = ""
    for document in read_documents(path):
        if document.id == id:
            return document.page()
        first = first or document.id
    example = f", for example {path}#{first}" if first else ""
    raise NearDupError(f"{path} has no document with the id {id!r}. Name one that exists{example}.")


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):  # too long for a name, or with a character that no name can have
        return False
