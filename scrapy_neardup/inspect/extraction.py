"""The text of a page as a crawl would judge it: how it is read, its lines, its boilerplate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from scrapy_neardup.errors import ExtractionError, LexiconNeeded
from scrapy_neardup.inspect.sources import fingerprint_page
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.page.extraction import PageContent, analyse
from scrapy_neardup.page.limits import is_risky, limit_page
from scrapy_neardup.page.reading import LineRole, Reading
from scrapy_neardup.page.source import PageResponse
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.settings import Config
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.text.marking import Mark, Part, mark_sentences, own_letters


def inspect_extraction(
    served: PageResponse, method: Method, config: Config, store: PageStore | None, why_no_store: str = ""
) -> dict[str, Any]:
    """Read a page as a crawl would now, and return how it was read, and its lines. The state is only read.

    ``letters`` counts letters and digits of its text, ``quoted_letters`` those in quotes, ``own_letters`` the rest
    without boilerplate (None: unknown). ``reason``: why the page cannot be judged. ``pages_of_site``: pages of its site
    that the state has counted, 256 at most. Raises ExtractionError if the response has no page, or a larger one than
    the limits allow.
    """
    method = method.with_hashes(store.hashes) if store else method
    found = _read(served, config)
    page = replace(limit_page(found.page, config.max_text), site=site_of(served.url))
    if page.unread:
        raise ExtractionError(page.unread, f"its text has more than {config.max_text:,} characters (NEARDUP_MAX_TEXT)")
    fingerprint: Fingerprint | None = None
    try:
        fingerprint, reason = fingerprint_page(method, page, config.make_policy(), store)
    except LexiconNeeded as error:
        reason = error.reason
    simplified, hashes = method.parameters.simplified, method.hashes
    boilerplate = fingerprint.boilerplate if fingerprint else frozenset[int]()

    def mark(sentence: str) -> Mark:
        return Mark.BOILERPLATE if hashes.short(sentence) in boilerplate else Mark.NONE

    return {
        "url": page.url,
        "title": page.title,
        "headline": page.headline,
        "keywords": page.keywords,
        "description": page.description,
        "canonical": page.canonical or None,
        "site": page.site or None,
        "reader": page.reader,
        "why": found.explain(),
        "judged": not reason,
        "reason": reason or None,
        "letters": len(own_letters(page.text, simplified=simplified)),
        "own_letters": fingerprint.own if fingerprint else None,
        "quoted_letters": fingerprint.quoted if fingerprint else 0,
        "store": store.location if store else None,
        "why_no_store": why_no_store or None,
        "pages_of_site": store.on_site(page.site).pages() if store and page.site else 0 if store else None,
        "text": page.text,
        "main": page.main,
        "lines": [_inspect_line(text, role, mark, simplified) for text, role in found.lines()],
    }


def _read(served: PageResponse, config: Config) -> Reading:
    html = served.content_of(served.url).html()
    if is_risky(html):  # first in a worker, which can be stopped
        with config.open_source() as source:
            answer = source.read_content(PageContent(served.url, html))
        if not isinstance(answer, Page):
            assert answer is not None
            raise answer
    return analyse(html, served.url, max_html=config.max_html, extractor=config.make_extractor())


def _inspect_line(text: str, role: LineRole, mark: Callable[[str], Mark], simplified: bool) -> dict[str, Any]:
    """Return a line, its role, and its text with marked boilerplate. A line of nothing else has that role itself."""
    if role not in (LineRole.ARTICLE, LineRole.PROSE, LineRole.UNSEEN):
        return {"role": role.value, "text": [Part(text)]}
    parts = mark_sentences(text, mark, simplified=simplified)
    has_own = any(own_letters(part.text) for part in parts if part.mark is Mark.NONE)
    return {"role": (role if has_own else LineRole.BOILERPLATE).value, "text": parts}
