"""What an item says of its page beside its text: that comes before what the page says of itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from scrapy_neardup.model import Page
from scrapy_neardup.page.limits import limited
from scrapy_neardup.page.sites import site_of


class ItemHead(NamedTuple):
    """Empty where the item says nothing."""

    title: str = ""
    keywords: tuple[str, ...] = ()
    description: str = ""

    @classmethod
    def of(cls, told: Sequence[Any]) -> ItemHead:
        """What was sent as plain data."""
        title, keywords, description = told
        return cls(title, tuple(keywords), description)

    def whole(self, page: Page, url: str, max_text: int) -> Page:
        """The page as it is judged, at this URL: with what is said of it, and no more than ``limited`` leaves."""
        page = replace(
            page,
            title=self.title or page.title,
            keywords=self.keywords or page.keywords,
            description=self.description or page.description,
            site=site_of(url),
        )
        return limited(page, max_text)


#: Of a page of which no item says anything.
NO_HEAD = ItemHead()
