"""Pages that a user names: by URL, as a file, in a feed, on the web, in a state."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sized
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

from scrapy_neardup.cli.output import describe_missing, to_line, warn
from scrapy_neardup.crawl.middleware import visit_of
from scrapy_neardup.errors import AnyReason, ExtractionError, NearDupError, PageError, Reason, SettingsError
from scrapy_neardup.files import FORMATS, STDIN, Entry, read_input
from scrapy_neardup.files.folders import HTML
from scrapy_neardup.inspect.lookup import near_urls
from scrapy_neardup.lab.documents import FeedReader, is_text, read_documents
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.page.extraction import decode_body, extract
from scrapy_neardup.page.limits import is_risky, limit_page
from scrapy_neardup.page.source import PageContent, PageResponse, PageSource
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.settings import DEFAULT_FIELDS, Config
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from scrapy_neardup.text.prose import why_unjudged
from scrapy_neardup.untrusted import one_line

_WHY_UNJUDGED: dict[Reason, str] = {
    "no_text": "has no text",
    "too_short": "has fewer than {} letters in lines long enough for prose",
    "boilerplate": "has fewer than {} letters besides boilerplate",
    "quotes": "has fewer than {} letters besides quotes and boilerplate",
}
_URL = re.compile(r"[a-z][a-z0-9+.-]*://|text:[0-9a-f]{16}$", re.IGNORECASE)
#: A crawl of one page must leave no trace.
_NO_TRACE = {"NEARDUP_ENABLED": False, "ITEM_PIPELINES": {}, "FEEDS": {}, "JOBDIR": None}


def add_urls(parser: argparse.ArgumentParser) -> None:
    """Add the options that name pages by their URLs."""
    parser.add_argument(
        "urls",
        metavar="URL",
        nargs="*",
        help="a page, by its URL as crawled; -: read URLs from standard input, one per line",
    )
    parser.add_argument("--from", dest="file", metavar="FILE", help="the pages in the field url of a file of records")
    parser.add_argument("--format", choices=FORMATS, default="", help="format of FILE (default: by suffix)")


def read_urls(arguments: argparse.Namespace) -> list[str]:
    """Return the URLs, each once; raises NearDupError if there is none, or if a list cannot be read."""
    urls = [one for url in arguments.urls for one in (_urls_of_lines() if url == STDIN else [url])]
    if arguments.file:
        urls += _urls_of_records(arguments.file, arguments.format)
    if not urls:
        raise SettingsError("No page is named. Give URLs, or - for standard input, or --from FILE.")
    return list(dict.fromkeys(urls))


def _urls_of_lines() -> Iterator[str]:
    """Read standard input, where a line is a URL or a JSON object."""
    for text in sys.stdin:
        if text.lstrip().startswith("{"):
            try:
                yield _url_of(json.loads(text), "standard input")
            except ValueError:
                raise NearDupError(f"{text.strip()[:80]!r} is no JSON. Give one URL or JSON object per line.") from None
        elif text.strip():
            yield text.strip()


def _urls_of_records(file: str, format: str) -> Iterator[str]:
    for record in read_input(file, format):
        if not isinstance(record, Entry):
            raise NearDupError(f"{record.place} cannot be read: {record.why}. Nothing is changed.")
        yield _url_of(record.fields, record.place)


def _url_of(fields: object, place: str) -> str:
    url = fields.get("url") if hasattr(fields, "get") else None
    if not isinstance(url, str) or not url.strip():
        raise NearDupError(f"{place} has no url, but each record needs one. Nothing is changed.")
    return url.strip()


def find_pages(store: PageStore, urls: Iterable[str]) -> tuple[list[Record], list[str]]:
    """Return the records of URLs, and the URLs without one. Each of those is a warning with similar URLs."""
    found, missing = [], []
    for url in urls:
        if (record := store.find(url)) is not None:
            found.append(record)
        else:
            missing.append(url)
            sys.stderr.write(describe_missing(url, near_urls(store, url), store.location))
    return found, missing


def read_html(html: str, url: str, config: Config) -> Page:
    """Read HTML as a crawl would; raises ExtractionError if it has no page, or a larger one than the limits allow."""
    risky_pool = config.make_risky_pool() if len(html) <= config.max_html and is_risky(html) else None
    if risky_pool is not None:
        with closing(risky_pool):
            page = risky_pool.read(PageContent(url, html))
    else:
        page = extract(html, url, max_html=config.max_html, extractor=config.make_extractor())
    return limit_text(page, config)


def limit_text(page: Page, config: Config) -> Page:
    """Return the part of the page that is judged; raises ExtractionError if its text is too long."""
    page = limit_page(page, config.max_text)
    if page.unread:
        raise ExtractionError(page.unread, f"its text has more than {config.max_text:,} characters (NEARDUP_MAX_TEXT)")
    return page


def fingerprint_page(
    method: Method, page: Page, min_letters: int, store: PageStore | None
) -> tuple[Fingerprint | None, AnyReason]:
    """Return the fingerprint of a page, if it has enough text for one, and the reason if it cannot be judged.

    ``store`` knows boilerplate. Raises LexiconNeeded if the method cannot read the page.
    """
    if reason := why_unjudged(page.text, min_letters):
        return None, reason
    fingerprint = method.for_state(page, store.on_site(page.site) if store else None)
    return fingerprint, fingerprint.why_unjudged(min_letters)


def describe_unjudged(reason: Reason, min_letters: int) -> str:
    """Return why a page cannot be judged, as the rest of a sentence about it.

    >>> describe_unjudged("too_short", 40)
    'has fewer than 40 letters in lines long enough for prose'
    """
    return _WHY_UNJUDGED[reason].format(min_letters)


@contextmanager
def open_source(fields: Mapping[str, str], config: Config) -> Iterator[PageSource]:
    """Open what makes pages of records. Pages that may take long are read in another process, which ends with it."""
    risky_pool = config.make_risky_pool()
    with closing(risky_pool) if risky_pool else nullcontext():
        yield PageSource(
            fields,
            config.max_html,
            config.make_extractor(),
            max_text=config.max_text,
            read_risky=risky_pool.read if risky_pool else None,
        )


@contextmanager
def open_feed(config: Config) -> Iterator[FeedReader]:
    """Open a reader of feeds, which reads documents as a crawl with these settings would."""
    with open_source(config.fields, config) as source:
        yield FeedReader(config.fields, source, renamed=dict(config.fields) != DEFAULT_FIELDS)


def check_feed(command: str, feed: FeedReader, documents: Sized, name: str) -> None:
    """Warn about records that were left out; raises NearDupError if the feed has no document."""
    if feed.left_out:
        why = ", ".join(f"{count:,} {one_line(reason)}" for reason, count in feed.left_out.most_common())
        warn(f"{command}: left out of the feed: {why}.")
    if not len(documents):
        raise NearDupError(
            f"{'standard input' if name == STDIN else name} contains no document with a text. Check that it is the "
            "right file. If the text has another field, name it in NEARDUP_FIELDS."
        )


@dataclass(frozen=True, slots=True)
class Side:
    """One of two pages to compare, under the name that the user gave it: a page, a record of a state, or both.

    Then the record is compared, and the page shows its text.
    """

    name: str
    page: Page | None = None
    record: Record | None = None

    @property
    def site(self) -> str:
        """The site of the page; empty if unknown."""
        return self.page.site if self.page else site_of(self.record.url) if self.record else ""


def read_page(name: str, config: Config, *, or_url: bool = False) -> Page | None:
    """Read a page from a file, or a document from ``FILE#ID``; return None for a URL.

    ``or_url``: a name that is no file is a URL, because the URL of an item may be any string. Raises NearDupError if
    the file or document does not exist or has no page.
    """
    if _URL.match(name):
        return None
    if _exists(name):
        return _read_file(Path(name), config)
    for at, char in enumerate(name):
        if char == "#" and at and _exists(name[:at]):
            return _read_document(Path(name[:at]), name[at + 1 :])
    if or_url:
        return None
    raise NearDupError(
        f"{name} does not exist. Name a file of HTML (.html, .htm) or text (.txt), one document in JSON lines "
        "(FILE#ID), or the URL of a page in the state."
    )


def find_side(url: str, store: PageStore) -> Side:
    """Return the page of a URL in the state; raises NearDupError if the state has nothing to compare it by."""
    record = store.find(url)
    if record is None:
        raise NearDupError(
            f"The state at {store.location} has no page {url}. Write the URL as crawled, or name a file."
        )
    kept = store.evidence(record.id)
    page = Page(record.url, kept.title, text=kept.text, site=site_of(record.url)) if kept and kept.text else None
    is_comparable = bool(record.sketch) and not record.is_light
    if is_comparable or page:
        return Side(url, page, record if is_comparable else None)
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


def _read_file(path: Path, config: Config) -> Page:
    if not path.name.lower().endswith(HTML):
        if path.is_file() and is_text(path):
            return next(read_documents(path)).page()
        raise NearDupError(
            f"{path} is neither HTML (.html, .htm) nor text (.txt). For JSON lines, name a document: {path}#ID."
        )
    try:
        return read_html(decode_body(path.read_bytes()), path.absolute().as_uri(), config)
    except OSError as error:
        raise NearDupError(f"{path} cannot be read: {error}. Check the file.") from None
    except PageError as error:
        raise NearDupError(f"{path} has no readable page: {error} ({error.reason}). Name another file.") from None


def _read_document(path: Path, id: str) -> Page:
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
    except (OSError, ValueError):  # a name that is too long or has a NUL
        return False


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
