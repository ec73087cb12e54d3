"""HTML to a Page: metadata from its head, text from its body."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from itertools import islice
from pathlib import Path

import lxml.html

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.model import Page
from scrapy_neardup.page.blocks import find_sections
from scrapy_neardup.page.html import decode, parse_bytes, parse_page
from scrapy_neardup.page.item import split_keywords
from scrapy_neardup.page.limits import MAX_TEXT, is_risky, is_too_large, limit_page
from scrapy_neardup.page.reading import EXTRACTOR, Reading, main_text, read_blocks, read_text, simplify
from scrapy_neardup.page.urls import absolute_url, plain_url
from scrapy_neardup.text.samples import digest
from scrapy_neardup.text.titles import article_title

_HEAD_END = re.compile(r"</head\s*>|<body[\s>]", re.IGNORECASE)
_HEAD_SIZE = 65_536
#: Headings of a page that may be its title, and characters of one.
_HEADINGS, _HEADING = 20, 500
_BINARY = (b"%PDF", b"PK\x03\x04", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"\x1f\x8b", b"\x7fELF", b"Rar!", b"RIFF")

#: The version of our reader. It changes when the text of unchanged HTML does.
VERSION = 9
#: Takes HTML and URL, returns the main text or None.
Extractor = Callable[[str, str], "str | None"]


@dataclass(frozen=True, slots=True)
class PageContent:
    """The HTML of a page, not decoded and not parsed. It can be sent to another process.

    ``content``: text, or a body with its ``content_type``. ``is_of_url``: False if the item has another URL than its
    response; then the HTML must name the item's URL as canonical.
    """

    url: str
    content: str | bytes
    content_type: str | None = None
    is_of_url: bool = True

    def html(self) -> str:
        """Decode the HTML. Raises ExtractionError for other content (``not_html``) or another page (``other_page``)."""
        html = self.content
        if isinstance(html, bytes):
            if html.startswith(_BINARY) or b"\0\0\0" in html[:1024]:
                raise ExtractionError("not_html", "the body is binary, not HTML")
            html = decode(html, self.content_type)
        if not self.is_of_url and plain_url(parse_head(html, self.url).canonical) != plain_url(self.url):
            raise ExtractionError("other_page", f"the page does not name {self.url}")
        return html


#: A page that was read, or why it could not be read. None: it was not tried, because that may take long.
Answer = Page | ExtractionError | None


class HtmlReader:
    """Reads HTML, in this process or in a worker."""

    def __init__(self, max_html: int, max_text: int = MAX_TEXT, extractor: Extractor | None = None) -> None:
        """``max_html``: see ``analyse``; ``max_text``: see ``limit_page``."""
        self.max_html = max_html
        self.max_text = max_text
        self.extractor = extractor

    def read(self, content: PageContent, *, only_quick: bool = False) -> Answer:
        """Read a page; None if that may take long and ``only_quick`` is wanted."""
        try:
            html = content.html()
            if only_quick and not is_too_large(html, self.max_html) and is_risky(html):
                return None
            found = analyse(html, content.url, max_html=self.max_html, extractor=self.extractor)
            return limit_page(found.page, self.max_text)
        except ExtractionError as error:
            return error


def extractor_name(extractor: Extractor | None) -> str:
    """Return the name and the version of an extractor for the recipe of a state."""
    if extractor is None:
        return f"visible prose and trafilatura {version('trafilatura')} fast, version {VERSION}"
    own = getattr(extractor, "__version__", "")
    return f"{extractor.__module__}.{getattr(extractor, '__qualname__', type(extractor).__name__)} {own}".strip()


def analyse(html: str, url: str, *, max_html: int, extractor: Extractor | None = None) -> Reading:
    """Read a page. Raises ExtractionError with the reason if that fails.

    ``max_html``: the most characters of a page that is parsed. ``extractor``: a function of the user; its text is
    judged unchanged. A page without text is no error.
    """
    if is_too_large(html, max_html):
        raise ExtractionError("too_large", f"the page has {len(html)} characters and {html.count('<')} tags")
    if extractor is not None:
        text = _run_extractor(extractor, html, url)
        return read_text(replace(parse_head(html, url), html=hash_html(html), text=text, reader=EXTRACTOR))
    root, head = parse_page(html), Page(url)
    if root is not None:
        head = read_head(root, url)
        simplify(root)
    blocks, sections = find_sections(root)
    return read_blocks(replace(head, html=hash_html(html)), blocks, main_text(root, blocks, sections), sections)


def hash_html(html: str) -> int:
    """Return a hash of the HTML, without a state's secret; 0 for an empty page. It shows whether a page changed."""
    return OPEN.of(html) if html.strip() else 0


def _run_extractor(extractor: Extractor, html: str, url: str) -> str:
    try:
        text = extractor(html, url)
    except Exception as error:  # no page may stop the crawl
        raise ExtractionError("extractor_failed", f"the extractor raised {type(error).__name__}: {error}") from error
    if text is not None and not isinstance(text, str):
        raise ExtractionError("extractor_failed", f"the extractor returned a {type(text).__name__}, not a string")
    return text or ""


def parse_head(html: str, url: str) -> Page:
    """Return a page with the metadata of a document and no text. Only its beginning is parsed."""
    end = _HEAD_END.search(html, 0, _HEAD_SIZE)
    part = html[: end.start() if end else _HEAD_SIZE]
    root = parse_bytes(part.encode("utf-8", "replace"))
    return Page(url) if root is None else read_head(root, url)


def read_head(root: lxml.html.HtmlElement, url: str) -> Page:
    """Return a page with the metadata of a tree. Many pages have some outside their head, where parsers put it."""
    names: dict[str, str] = {}
    for meta in root.iter("meta"):
        name = (meta.get("name") or meta.get("property") or "").strip().lower()
        names[name] = names.get(name) or _one_line(meta.get("content") or "")  # the first that is not empty
    # An SVG picture may have a title too.
    own = next((title.text or "" for title in root.iter("title") if next(title.iterancestors("svg"), None) is None), "")
    found = islice(root.iter("h1", "h2"), _HEADINGS)
    headings = (one.text_content()[:_HEADING] for one in found if not _leads_up(one, url))
    title = article_title(_one_line(own), names.get("og:site_name", ""), headings) or names.get("og:title", "")
    links = (link.get("href") for link in root.iter("link") if "canonical" in (link.get("rel") or "").lower().split())
    return Page(
        url,
        title,
        split_keywords(names.get("keywords", "")),
        names.get("description") or names.get("og:description", ""),
        canonical=absolute_url(url, next(links, None) or ""),
    )


def _leads_up(heading: lxml.html.HtmlElement, url: str) -> bool:
    """Whether a heading is a link to the front page or to a folder of the page: it names the site."""
    links = heading.xpath("(descendant::a | ancestor::a)/@href")
    return any(plain_url(url).startswith(f"{plain_url(absolute_url(url, link))}/") for link in links)


def _one_line(text: str) -> str:
    return " ".join(text.split())


#: The pages in ``page/sample_pages``, without the line end that each file has. They hold the cases on which readers
#: differ: menus, teasers, bylines, captions, lists, quotes, code, comments, a forum thread, an almost empty page and
#: broken tags. Data tables are left out: versions that read everything else alike differ in their place.
SAMPLE_PAGES = tuple(
    path.read_text(encoding="utf-8").removesuffix("\n")
    for path in sorted(Path(__file__).with_name("sample_pages").glob("*.html"))
)


@cache
def reader_sample() -> str:
    """Return a digest of what we read on the sample pages. It identifies the reader and its libraries in a recipe.

    It takes some ten milliseconds per page. See ``text.samples``. The user's own extractor is known by its name and
    ``__version__`` instead, as it may know only one site.
    """
    found = [str(VERSION)]
    for number, html in enumerate(SAMPLE_PAGES):
        page = analyse(html, f"https://sample{number}.example/news/page.html", max_html=len(html)).page
        about = (page.title, *page.keywords, page.description, page.canonical, page.headline, page.reader)
        found += [*about, page.links, page.main, page.text]
    return digest(found)
