"""One page taken apart: what is read of it, by whom and why, and what a state holds for boilerplate in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from scrapy_neardup.commands.bounded import read_bounded, within_bounds
from scrapy_neardup.commands.prejudged import prejudge, why_not
from scrapy_neardup.config import Config
from scrapy_neardup.crawl.state import page_extractor
from scrapy_neardup.errors import AnyReason, LexiconNeeded
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.page.extraction import look_into
from scrapy_neardup.page.lines import Line, lines_of
from scrapy_neardup.page.reading import Reading
from scrapy_neardup.page.risk import is_risky
from scrapy_neardup.page.served import Served
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.stores import Store
from scrapy_neardup.text.marking import own_letters


@dataclass(frozen=True, slots=True)
class Dissected:
    """A page, how it was read, and its lines.

    ``letters``: letters and digits of its text; ``own``: those that are not boilerplate, None where that was not asked;
    ``quoted``: those that it quotes, which are not its own either.
    ``reason``: why it would not be judged, and ``why`` in words; empty if it would. ``noted``: pages of its site that
    the state has counted, 256 at most.
    """

    html: str
    page: Page
    reading: Reading
    lines: list[Line]
    letters: int
    own: int | None
    quoted: int
    reason: AnyReason
    why: str
    noted: int


def dissect(served: Served, method: Method, config: Config, store: Store | None) -> Dissected:
    """Read a page as a crawl does that comes to it now; ``store`` is asked for boilerplate, and left as it is.

    Raises ExtractionError if there is no page in the response.
    """
    method = method.under(store.hashes) if store else method
    html = served.html()
    if is_risky(html):
        read_bounded(html, served.url, config)  # first where it can be ended
    found = look_into(html, served.url, max_html=config.max_html, extractor=page_extractor(config))
    page = replace(within_bounds(found.page, config), site=site_of(served.url))
    fingerprint, reason, why = _judged(method, page, config.min_letters, store)
    simplified = method.parameters.simplified
    return Dissected(
        html=html,
        page=page,
        reading=found.reading,
        lines=lines_of(found, _boilerplate(fingerprint, page.site, method, store), simplified=simplified),
        letters=len(own_letters(page.text, simplified=simplified)),
        own=fingerprint.own if fingerprint else None,
        quoted=fingerprint.quoted if fingerprint else 0,
        reason=reason,
        why=why,
        noted=store.on_site(page.site).pages() if store and page.site else 0,
    )


def _judged(
    method: Method, page: Page, min_letters: int, store: Store | None
) -> tuple[Fingerprint | None, AnyReason, str]:
    try:
        fingerprint, reason = prejudge(method, page, min_letters, store)
    except LexiconNeeded as error:
        return None, error.reason, f"cannot be read by the method {method.name}: {error}".rstrip(".")
    return fingerprint, reason, why_not(reason, min_letters) if reason else ""


def _boilerplate(
    fingerprint: Fingerprint | None, site: str, method: Method, store: Store | None
) -> Callable[[str], int]:
    """Tells of a sentence on how many pages it stands, if it was left out for that."""
    if fingerprint is None or store is None or not fingerprint.boilerplate:
        return lambda sentence: 0
    left_out = np.array(sorted(fingerprint.boilerplate), np.uint32)
    pages = dict(zip(left_out.tolist(), store.on_site(site).stood_anywhere(left_out).tolist(), strict=True))
    return lambda sentence: pages.get(method.hashes.short(sentence), 0)
