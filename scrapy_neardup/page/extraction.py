"""HTML to a Page: metadata from its head, text from its body."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version

import lxml.html

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.model import Page
from scrapy_neardup.page.blocks import Block, find_sections
from scrapy_neardup.page.html import decode, parse_bytes, parse_page
from scrapy_neardup.page.limits import is_too_large
from scrapy_neardup.page.main_text import main_text, simplify
from scrapy_neardup.page.reading import EXTRACTOR, Reading, locate_text, read_blocks
from scrapy_neardup.page.urls import absolute_url
from scrapy_neardup.text.titles import article_title

_HEAD_END = re.compile(r"</head\s*>|<body[\s>]", re.IGNORECASE)
_HEAD_SIZE = 65_536
_KEYWORD_END = re.compile(r"[,，、;；|]+")
_BINARY = (b"%PDF", b"PK\x03\x04", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"\x1f\x8b", b"\x7fELF", b"Rar!", b"RIFF")

#: The version of our reader. It changes when the text of unchanged HTML does.
VERSION = 3
#: Takes HTML and URL, returns the main text or None.
Extractor = Callable[[str, str], "str | None"]


@dataclass(frozen=True, slots=True)
class PageAnalysis:
    """A page, the visible lines of its HTML, and their roles."""

    page: Page
    blocks: list[Block]
    reading: Reading


def extractor_name(extractor: Extractor | None) -> str:
    """Return the name and the version of an extractor for the recipe of a state."""
    if extractor is None:
        return f"visible prose and trafilatura {version('trafilatura')} fast, version {VERSION}"
    own = getattr(extractor, "__version__", "")
    return f"{extractor.__module__}.{getattr(extractor, '__qualname__', type(extractor).__name__)} {own}".strip()


def decode_body(body: bytes, content_type: str | None = None) -> str:
    """Decode the body of a response. Raises ExtractionError if it is not HTML."""
    if body.startswith(_BINARY) or b"\0\0\0" in body[:1024]:
        raise ExtractionError("not_html", "the body is binary, not HTML")
    return decode(body, content_type)


def extract(html: str, url: str, *, max_html: int, extractor: Extractor | None = None) -> Page:
    """Read a page. Raises ExtractionError with the reason if that fails.

    ``max_html``: the most characters of a page that is parsed. ``extractor``: a function of the user, whose text is
    judged as it is. A page without text is no error.
    """
    if extractor is None:
        return analyse(html, url, max_html=max_html).page
    _check_size(html, max_html)
    text = _run_extractor(extractor, html, url)
    return replace(parse_head(html, url), html=hash_html(html), text=text, reader=EXTRACTOR)


def analyse(html: str, url: str, *, max_html: int, extractor: Extractor | None = None) -> PageAnalysis:
    """Like ``extract``, but return the visible lines and their roles too."""
    _check_size(html, max_html)
    root, head = parse_page(html), Page(url)
    if root is not None:
        head = read_head(root, url)
        simplify(root)
    blocks, sections = find_sections(root)
    if extractor is not None:
        head, reading = parse_head(html, url), locate_text(blocks, _run_extractor(extractor, html, url))
    else:
        reading = read_blocks(blocks, main_text(root, blocks, sections))
    page = replace(
        head,
        html=hash_html(html),
        text=reading.text,
        main=reading.main,
        headline=reading.headline,
        reader=reading.reader,
        quotes=reading.quotes,
    )
    return PageAnalysis(page, blocks, reading)


def _check_size(html: str, max_html: int) -> None:
    if is_too_large(html, max_html):
        raise ExtractionError("too_large", f"the page has {len(html)} characters and {html.count('<')} tags")


def hash_html(html: str) -> int:
    """Return a hash that shows whether an unread page has changed. 0 for an empty page."""
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
        names.setdefault(name, _one_line(meta.get("content") or ""))
    # A picture may have a title of its own.
    own = next((title.text or "" for title in root.iter("title") if next(title.iterancestors("svg"), None) is None), "")
    title = article_title(_one_line(own), names.get("og:site_name", "")) or names.get("og:title", "")
    links = (link.get("href") or "" for link in root.iter("link") if _is_canonical(link))
    return Page(
        url,
        title,
        split_keywords(names.get("keywords", "")),
        names.get("description") or names.get("og:description", ""),
        canonical=absolute_url(url, next(links, "")),
    )


def _is_canonical(link: lxml.html.HtmlElement) -> bool:
    return "canonical" in (link.get("rel") or "").lower().split()


def split_keywords(text: str) -> tuple[str, ...]:
    """Split a string of keywords at western and Chinese separators.

    >>> split_keywords("大桥, 通车、渡口；")
    ('大桥', '通车', '渡口')
    """
    return tuple(word.strip() for word in _KEYWORD_END.split(text) if word.strip())


def _one_line(text: str) -> str:
    return " ".join(text.split())
