"""Two pages of one site that were read from HTML: their lines and headlines tell an article from a template."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from enum import Enum

import numpy as np

from scrapy_neardup.methods.cascade.parameters import FIXED
from scrapy_neardup.methods.cascade.sketch import Lines
from scrapy_neardup.model import SiteCounts


class Headlines(Enum):
    """How the headlines of two pages compare, without those that many pages of the site have."""

    SAME = "the same"
    ALIKE = "alike"
    OPEN = "none of their own"
    OTHER = "different"


class Ruling(Enum):
    """What two pages of one site may be."""

    #: Copies of any similarity.
    COPY = "copy"
    #: Undecided: copies if they are similar.
    OPEN = "open"
    #: No copies, however similar.
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class SiteEvidence:
    """The own text of two pages of one site, in letters: ``shared``, only in the ``new`` or the ``old`` page.

    Between sites common text is copying; within a site it may be the template, unknown on the first pages. So lines and
    headlines that differ decide too. A line that a third page of the site has is no evidence.

    ``pages``: noted pages of the site. ``same_article``: the articles are equal letter by letter. ``edited``: the lines
    differ in wording only.
    """

    headlines: Headlines
    shared: int
    new: int
    old: int
    pages: int
    same_article: bool = False
    edited: bool = False

    @property
    def different_share(self) -> float:
        """Share of own text, of the page with more of it, that the other page lacks."""
        most = max(self.new, self.old)
        return most / (self.shared + most) if self.shared + most else 0.0

    @property
    def ruling(self) -> Ruling:
        """The ruling by the fixed thresholds; cascade.md has it as a table."""
        has_same, has_other = self.headlines is Headlines.SAME, self.headlines is Headlines.OTHER
        if (self.shared < FIXED.least_shared and not has_same) or (has_other and not self.is_article):
            return Ruling.DIFFERENT
        if has_other or (self.pages < FIXED.few_pages and not self.is_article):
            most = FIXED.different_early
        elif not has_same:
            most = FIXED.different
        elif self.is_within:
            return Ruling.COPY
        elif self.edited:
            return Ruling.OPEN
        else:
            most = FIXED.different_same if self.shared >= FIXED.much_shared else FIXED.different_same_short
        return Ruling.OPEN if self.different_share <= most else Ruling.DIFFERENT

    @property
    def is_article(self) -> bool:
        """Whether the common text is an article, and no template, however little is known of the site."""
        if self.same_article:
            return self.shared >= FIXED.same_article
        return self.headlines in (Headlines.SAME, Headlines.ALIKE) and self.shared >= FIXED.no_template

    @property
    def is_within(self) -> bool:
        """Whether one page contains the other, as a page for readers contains its print version."""
        least = min(self.new, self.old)
        is_contained = self.shared >= FIXED.within_shared and least <= FIXED.within * (self.shared + least)
        return is_contained and self.different_share <= FIXED.within_most

    def __str__(self) -> str:
        """Return the evidence as sentences."""
        reason = "The articles are the same letter by letter." if self.same_article else "No template is so long."
        article = f" {reason}" if self.is_article else ""
        return (
            f"Both pages are of one site, with {self.pages} known pages. Their headlines are {self.headlines.value}. "
            f"Beside the template they share about {self.shared} letters; the new page has {self.new} more, "
            f"the earlier page {self.old}.{article}"
        )


def compare_on_site(
    new: Lines,
    old: Lines,
    counts: SiteCounts | None,
    *,
    common_headlines: Set[int],
    titles_alike: bool = False,
    same_article: bool = False,
    similarity: float = 0.0,
) -> SiteEvidence:
    """Compare the lines of two pages of one site.

    ``common_headlines``: headlines of both pages that count. ``titles_alike``: the titles are similar and give the
    same numbers. ``same_article``: see ``SiteEvidence``. ``similarity``: of the texts.
    """
    fingerprints = np.array([*new.lines, *old.lines, *new.headlines, *old.headlines], np.uint32)
    page_counts = counts.pages_on_site(fingerprints) if counts else np.zeros(len(fingerprints), np.uint16)
    pages = dict(zip(fingerprints.tolist(), page_counts.tolist(), strict=True))
    reach = min(new.reach, old.reach)
    ours, theirs = ({line: n for line, n in page.lines.items() if line <= reach} for page in (new, old))

    def letters(page: Mapping[int, int], other: Mapping[int, int], most: int, *, in_both: bool = False) -> int:
        """Return the letters of a page's lines on at most so many known pages; lines outside the sample are alike."""
        found = sum(n for line, n in page.items() if (line in other) is in_both and pages[line] <= most)
        return round(2**32 / (reach + 1) * found)

    return SiteEvidence(
        _compare_headlines(new, old, common_headlines, pages, titles_alike=titles_alike),
        shared=letters(ours, theirs, FIXED.own_line, in_both=True),
        new=letters(ours, theirs, 0),
        old=letters(theirs, ours, FIXED.own_line),
        pages=counts.pages() if counts else 0,
        same_article=same_article,
        edited=similarity - _line_similarity(ours, theirs) >= FIXED.edited,
    )


def _line_similarity(ours: Mapping[int, int], theirs: Mapping[int, int]) -> float:
    both = {**ours, **theirs}
    shared = sum(letters for line, letters in ours.items() if line in theirs)
    return shared / sum(both.values()) if both else 0.0


def _compare_headlines(
    new: Lines, old: Lines, common: Set[int], pages: dict[int, int], *, titles_alike: bool
) -> Headlines:
    ours, theirs = ({one for one in page.headlines if pages[one] <= FIXED.own_headline} for page in (new, old))
    if ours & theirs & common:
        return Headlines.SAME
    if not ours or not theirs:
        return Headlines.OPEN
    return Headlines.ALIKE if titles_alike else Headlines.OTHER
