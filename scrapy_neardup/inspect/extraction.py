"""The text of a page as a crawl would judge it: how it is read, its lines, its boilerplate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from scrapy_neardup.errors import AnyReason, LexiconNeeded
from scrapy_neardup.inspect.pages import KnownSite, inspect_site
from scrapy_neardup.inspect.sources import fingerprint_page, limit_text, read_html
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.page.extraction import analyse
from scrapy_neardup.page.limits import is_risky
from scrapy_neardup.page.reading import Line, Reading, classify_lines
from scrapy_neardup.page.source import PageResponse
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.settings import Config
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.text.marking import own_letters


@dataclass(frozen=True, slots=True)
class ExtractedPage:
    """A page, how it was read, and its lines.

    ``letters`` counts letters and digits of its text, ``quoted`` those in quotes, ``own`` those that are neither quotes
    nor boilerplate (None: unknown). ``reason``: why the page cannot be judged; empty if it can.
    ``site``: what the state knows of its site. ``location``: the state, or None and ``why_no_state``.
    """

    page: Page
    reading: Reading
    lines: list[Line]
    letters: int
    own: int | None
    quoted: int
    reason: AnyReason
    site: KnownSite | None
    location: str | None
    why_no_state: str


def inspect_extraction(
    served: PageResponse, method: Method, config: Config, store: PageStore | None, why_no_state: str = ""
) -> ExtractedPage:
    """Read a page as a crawl would now. The state is only read, for its boilerplate.

    Raises ExtractionError if the response has no page.
    """
    method = method.with_hashes(store.hashes) if store else method
    html = served.html()
    if is_risky(html):
        read_html(html, served.url, config)  # first in a worker, which can be stopped
    found = analyse(html, served.url, max_html=config.max_html, extractor=config.make_extractor())
    page = replace(limit_text(found.page, config), site=site_of(served.url))
    fingerprint: Fingerprint | None = None
    try:
        fingerprint, reason = fingerprint_page(method, page, config.min_letters, store)
    except LexiconNeeded as error:
        reason = error.reason
    simplified = method.parameters.simplified
    count_pages = _boilerplate_counts(fingerprint, page.site, method, store)
    return ExtractedPage(
        page=page,
        reading=found.reading,
        lines=classify_lines(found.blocks, found.reading, count_pages, simplified=simplified),
        letters=len(own_letters(page.text, simplified=simplified)),
        own=fingerprint.own if fingerprint else None,
        quoted=fingerprint.quoted if fingerprint else 0,
        reason=reason,
        site=inspect_site(store, page.site) if store and page.site else None,
        location=store.location if store else None,
        why_no_state=why_no_state,
    )


def _boilerplate_counts(
    fingerprint: Fingerprint | None, site: str, method: Method, store: PageStore | None
) -> Callable[[str], int]:
    """Return a function from a sentence to the number of pages that have it; 0 if it is not boilerplate."""
    if fingerprint is None or store is None or not fingerprint.boilerplate:
        return lambda sentence: 0
    hashes = np.array(sorted(fingerprint.boilerplate), np.uint32)
    pages = dict(zip(hashes.tolist(), store.on_site(site).stood_anywhere(hashes).tolist(), strict=True))
    return lambda sentence: pages.get(method.hashes.short(sentence), 0)
