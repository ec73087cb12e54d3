"""HTML to a Page: metadata from its head, text from its body."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from importlib.metadata import version
from urllib.parse import urljoin

import lxml.html

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.model import Page
from scrapy_neardup.page.blocks import Block, blocks_of
from scrapy_neardup.page.html import decode, encoded, parsed, root_of
from scrapy_neardup.page.reading import EXTRACTOR, Reading, is_link_line, read, read_own
from scrapy_neardup.text.marking import Mark, Part, mark_sentences, own_letters
from scrapy_neardup.text.normalize import letters
from scrapy_neardup.text.titles import article_title

# ----------------------------------------------------------------------------------------------------------------------
# HTML to the page that is judged: the head's metadata, and what the body says.


#: Opening brackets beyond which a page is not parsed: the parser's time grows with their square.
MAX_TAGS = 100_000

_HEAD_END = re.compile(r"</head\s*>|<body[\s>]", re.IGNORECASE)
_HEAD_SIZE = 65_536
_KEYWORD_END = re.compile(r"[,，、;；|]+")
_BINARY = (b"%PDF", b"PK\x03\x04", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"\x1f\x8b", b"\x7fELF", b"Rar!", b"RIFF")

# It writes several lines about every page at DEBUG, Scrapy's default, and errors that do not name the page; what
# matters of them is counted and logged by whoever calls us. A level that somebody has set is left alone.
if logging.getLogger("trafilatura").level == logging.NOTSET:
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)

#: Takes HTML and URL, gives the main text or None.
Extractor = Callable[[str, str], "str | None"]


@dataclass(frozen=True, slots=True)
class Extracted:
    """A page, the visible lines of its HTML, and what was read in them."""

    page: Page
    blocks: list[Block]
    reading: Reading


def trafilatura_text(page: str | lxml.html.HtmlElement, url: str) -> str | None:
    """What trafilatura holds for the main text of a page, without comments; a tree is left as it is.

    ``deduplicate`` stays off: it remembers texts over pages and from the fourth sight on loses them. The rescue of
    short results is on, though it answers with menus now and then: see ``reading``, which does not believe those. The
    extractor must run in one thread alone; two at once bring the process down.
    """
    import trafilatura  # only where there is HTML: it takes a twentieth second to load

    return trafilatura.extract(page, url=url, fast=True, include_comments=False, deduplicate=False)


def extractor_name(extractor: Extractor | None) -> str:
    """How pages are read, as a state's recipe says it: by what, and its version where it has one."""
    if extractor is None:
        return f"visible prose and trafilatura {version('trafilatura')} fast"
    own = getattr(extractor, "__version__", "")
    return f"{extractor.__module__}.{getattr(extractor, '__qualname__', type(extractor).__name__)} {own}".strip()


def decode_body(body: bytes, content_type: str | None = None) -> str:
    """The HTML in a response's body; raises ExtractionError if it is none."""
    if body.startswith(_BINARY) or b"\0\0\0" in body[:1024]:
        raise ExtractionError("not_html", "the body is binary, not HTML")
    return decode(body, content_type)


def extract(html: str, url: str, *, max_html: int, extractor: Extractor | None = None) -> Page:
    """The page in ``html``; raises ExtractionError with the reason if there is none.

    ``max_html`` is the number of characters beyond which a page is not parsed. ``extractor``: a function of the user's,
    whose text is judged as it is. A page without text comes back with an empty one: that is for the detector to say.
    """
    page = _unread(html, url, max_html)
    if extractor is not None:
        return replace(page, text=_extracted(extractor, html, url), reader=EXTRACTOR)
    root = root_of(html)
    return _as_read(page, read(blocks_of(root), main_text(root, url)))


def look_into(html: str, url: str, *, max_html: int, extractor: Extractor | None = None) -> Extracted:
    """The same page as ``extract`` gives, with all that led to it."""
    page, root = _unread(html, url, max_html), root_of(html)
    blocks = blocks_of(root)
    if extractor is not None:
        reading = read_own(blocks, _extracted(extractor, html, url))
    else:
        reading = read(blocks, main_text(root, url))
    return Extracted(_as_read(page, reading), blocks, reading)


def _unread(html: str, url: str, max_html: int) -> Page:
    """The page without its text."""
    check_size(html, max_html)
    return replace(head(html, url), html=html_mark(html))


def _as_read(page: Page, found: Reading) -> Page:
    return replace(
        page, text=found.text, main=found.main, headline=found.headline, reader=found.reader, quotes=found.quotes
    )


def html_mark(html: str) -> int:
    """By what a page that is not judged is known to be unchanged; 0 for one that holds nothing."""
    return OPEN.of(html) if html.strip() else 0


def check_size(html: str, max_html: int) -> None:
    """Raises ExtractionError for a page that would take too long to parse."""
    if is_too_large(html, max_html):
        raise ExtractionError("too_large", f"the page has {len(html)} characters and {html.count('<')} tags")


def is_too_large(html: str, max_html: int) -> bool:
    """Whether a page has more characters or tags than are parsed.

    >>> is_too_large("<p>x", 4), is_too_large("<p>xx", 4)
    (False, True)
    """
    return len(html) > max_html or html.count("<") > MAX_TAGS


def main_text(root: lxml.html.HtmlElement | None, url: str) -> str:
    """The main text of a page; empty where there is none, or trafilatura stumbles: then the prose is enough."""
    if root is None:
        return ""
    try:
        return trafilatura_text(root, url) or ""
    except MemoryError:  # a page is not to be judged by less than it says
        raise
    except Exception:  # whatever a page does to it, it must not stop the crawl
        return ""


def _extracted(extractor: Extractor, html: str, url: str) -> str:
    try:
        text = extractor(html, url)
    except Exception as error:  # whatever a page does to an extractor, it must not stop the crawl
        raise ExtractionError("extractor_failed", f"the extractor raised {type(error).__name__}: {error}") from error
    if text is not None and not isinstance(text, str):
        raise ExtractionError("extractor_failed", f"the extractor returned a {type(text).__name__}, not a string")
    return text or ""


def head(html: str, url: str) -> Page:
    """What the head of a document says of it: a page without text.

    Only the head is parsed, and whatever cannot be read in it is empty.
    """
    end = _HEAD_END.search(html, 0, _HEAD_SIZE)
    part = html[: end.start() if end else _HEAD_SIZE]
    root = parsed(encoded(part), comments=True)
    if root is None:
        return Page(url)
    names: dict[str, str] = {}
    for meta in root.iter("meta"):
        name = (meta.get("name") or meta.get("property") or "").strip().lower()
        names.setdefault(name, _one_line(meta.get("content") or ""))
    own = root.findtext(".//title")
    title = article_title(_one_line(own or ""), names.get("og:site_name", "")) or names.get("og:title", "")
    canonical = next(
        (
            link.get("href") or ""
            for link in root.iter("link")
            if "canonical" in (link.get("rel") or "").lower().split()
        ),
        "",
    )
    return Page(
        url,
        title,
        split_keywords(names.get("keywords", "")),
        names.get("description") or names.get("og:description", ""),
        canonical=absolute(url, canonical),
    )


def split_keywords(text: str) -> tuple[str, ...]:
    """Keywords from one string, whichever mark stands between them.

    >>> split_keywords("大桥, 通车、渡口；")
    ('大桥', '通车', '渡口')
    """
    return tuple(word.strip() for word in _KEYWORD_END.split(text) if word.strip())


def _one_line(text: str) -> str:
    return " ".join(text.split())


def absolute(url: str, link: str) -> str:
    """A link of the page at ``url`` as a URL of http or https; empty if it is none.

    >>> absolute("https://a.example/b/", "../ferry"), absolute("https://a.example/", "javascript:alert(1)")
    ('https://a.example/ferry', '')
    """
    if not link:
        return ""
    try:
        joined = urljoin(url, link.strip())
    except ValueError:
        return ""
    return joined if joined.startswith(("http://", "https://")) else ""


# ----------------------------------------------------------------------------------------------------------------------
# The lines of a page, each with what becomes of it when the page is judged.


class Role(str, Enum):
    """What a line of a page is; the value is its name in JSON."""

    #: Judged, and part of the article.
    ARTICLE = "article"
    #: Judged beside the article, or where that could not be told.
    PROSE = "prose"
    #: Judged though it is not visible: a paragraph that a script unfolds.
    UNSEEN = "unseen"
    #: Left out, as it stands on many pages.
    BOILERPLATE = "boilerplate"
    #: Left out, as the page quotes it from others, or signs with it.
    QUOTE = "quote"
    #: Left out, as it is in what the page marks as navigation or footer.
    FRAME = "frame"
    #: Left out, as it is nothing but links.
    LINKS = "links"
    #: Left out, as it holds no letter, or the user's own extractor does not give it.
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Line:
    """A line with its sentences that are boilerplate; one that holds nothing else is boilerplate itself.

    ``pages``: on how many pages each of these stands, at least.
    """

    role: Role
    parts: tuple[Part, ...]
    pages: int = 0

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(part.text for part in self.parts)

    def stretches(self) -> list[tuple[str, Role]]:
        """What each stretch of it is."""
        return [(part.text, Role.BOILERPLATE if part.mark is Mark.BOILERPLATE else self.role) for part in self.parts]


def lines_of(found: Extracted, boilerplate: Callable[[str], int], *, simplified: bool = False) -> list[Line]:
    """The visible lines of a page in their order, then those that are judged though they are not visible.

    ``boilerplate`` tells of a sentence, by its ``own_letters``, on how many pages it stands that is left out for it; 0
    of any other.
    """
    roles = _roles(found.blocks, found.reading)
    visible = [(block.text, role) for block, role in zip(found.blocks, roles, strict=True)]
    unseen = [(text, Role.UNSEEN) for text in found.reading.unseen]
    return [_line(text, role, boilerplate, simplified=simplified) for text, role in visible + unseen]


def _line(text: str, role: Role, boilerplate: Callable[[str], int], *, simplified: bool) -> Line:
    if role in _LEFT_OUT:
        return Line(role, (Part(text),))
    counts = []

    def mark(sentence: str) -> Mark:
        if not (pages := boilerplate(sentence)):
            return Mark.NONE
        counts.append(pages)
        return Mark.BOILERPLATE

    parts = tuple(mark_sentences(text, mark, simplified=simplified))
    own = any(own_letters(part.text) for part in parts if part.mark is Mark.NONE)
    return Line(role if own else Role.BOILERPLATE, parts, min(counts, default=0))


_LEFT_OUT = (Role.QUOTE, Role.FRAME, Role.LINKS, Role.OTHER)


def _roles(blocks: list[Block], reading: Reading) -> Iterator[Role]:
    quoted = reading.quoted or (False,) * len(blocks)
    for block, kept, in_main, quote in zip(blocks, reading.kept, reading.in_main, quoted, strict=True):
        if quote:
            yield Role.QUOTE
        elif kept:
            yield Role.ARTICLE if in_main and reading.main else Role.PROSE
        elif block.frame:
            yield Role.FRAME
        else:
            yield Role.LINKS if is_link_line(block, letters(block.text)) else Role.OTHER
