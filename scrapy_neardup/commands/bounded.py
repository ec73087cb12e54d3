"""A page of HTML as a crawl would read it: within the same limits."""

from __future__ import annotations

from contextlib import closing

from scrapy_neardup.config import Config
from scrapy_neardup.crawl.state import page_extractor
from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import extract
from scrapy_neardup.page.limits import limited
from scrapy_neardup.page.raw import Raw
from scrapy_neardup.page.risk import is_risky


def read_bounded(html: str, url: str, config: Config) -> Page:
    """The page; raises ExtractionError if there is none, or it is too much to be read or judged."""
    apart = config.make_apart() if len(html) <= config.max_html and is_risky(html) else None
    if apart is not None:
        with closing(apart):
            page = apart.read(Raw(url, html))
    else:
        page = extract(html, url, max_html=config.max_html, extractor=page_extractor(config))
    return within_bounds(page, config)


def within_bounds(page: Page, config: Config) -> Page:
    """As much of the page as is judged; raises ExtractionError if its text is too much."""
    page = limited(page, config.max_text)
    if page.unread:
        raise ExtractionError(page.unread, f"its text has more than {config.max_text:,} characters (NEARDUP_MAX_TEXT)")
    return page
