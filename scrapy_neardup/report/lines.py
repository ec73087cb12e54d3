"""Pages as lines of lists, from what the state and the given texts know of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from scrapy_neardup.page.sites import site_of
from scrapy_neardup.report.clean import SITE, TITLE, URL, clean_line
from scrapy_neardup.report.data import ORIGINAL, PageLine
from scrapy_neardup.report.figures import NO_SITE, kind_of
from scrapy_neardup.stores import Evidence, Record, Store

#: Title and text of pages from outside the state, by the URL as it stands in the state.
GivenTexts = Mapping[str, tuple[str, str]]
#: What looks up title and text of pages outside the state, those that it finds.
Lookup = Callable[[Collection[str]], GivenTexts]


class PageLines:
    """Lines of pages; ``wanted`` are the URLs of those of which more is to be known than the state holds."""

    def __init__(self, store: Store, given: GivenTexts) -> None:
        self.store = store
        self.wanted: set[str] = set()
        self._given = given

    def page(self, record: Record, evidence: Evidence | None, *, wanted: bool = False) -> PageLine:
        """The line of a page; ``wanted``: its title is to be looked up elsewhere if need be."""
        copy = record.original != record.id
        title = evidence.title if evidence else ""
        if not title and wanted:
            title = self._look_up(record.url)[0]
        return PageLine(
            clean_line(record.url, URL),
            clean_line(site_of(record.url) or NO_SITE, SITE),
            int(record.first_seen),
            kind_of(evidence) if copy else ORIGINAL,
            round(record.similarity, 4),
            evidence.letters if evidence else 0,
            clean_line(title, TITLE),
        )

    def text(self, record: Record, evidence: Evidence | None) -> str:
        """The text of a page as it was kept, or else as it was given; empty if it is not known."""
        return (evidence.text if evidence else "") or self._look_up(record.url)[1]

    def _look_up(self, url: str) -> tuple[str, str]:
        if url not in self._given:
            self.wanted.add(url)
        return self._given.get(url, ("", ""))
