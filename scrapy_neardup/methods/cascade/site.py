"""Evidence of the lines: whether two pages of one site share an article or a template."""

from __future__ import annotations

from collections.abc import Mapping
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

    #: Copies, whatever their similarity.
    COPY = "copy"
    #: Undecided: copies if they are similar.
    OPEN = "open"
    #: No copies, whatever their similarity.
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
        """The ruling by the fixed thresholds."""
        same = self.headlines is Headlines.SAME
        if self.headlines is Headlines.OTHER and not self.is_article:
            return Ruling.DIFFERENT
        if self.shared < FIXED.least_shared and not same:
            return Ruling.DIFFERENT
        if self.headlines is Headlines.OTHER:
            return self._open_up_to(FIXED.different_early)
        if self.pages < FIXED.few_pages and not self.is_article:
            return self._open_up_to(FIXED.different_early)
        if not same:
            return self._open_up_to(FIXED.different)
        if self.is_within:
            return Ruling.COPY
        if self.edited:
            return Ruling.OPEN
        return self._open_up_to(
            FIXED.different_same if self.shared >= FIXED.much_shared else FIXED.different_same_short
        )

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

    def sentence(self) -> str:
        """Describe the evidence."""
        article = " No template is so long." if self.is_article else ""
        if self.is_article and self.same_article:
            article = " The articles are the same letter by letter."
        return (
            f"Both pages are of one site, with {self.pages} known pages. Their headlines are {self.headlines.value}. "
            f"Beside the template they share about {self.shared} letters; the new page has {self.new} more, "
            f"the earlier page {self.old}.{article}"
        )

    def _open_up_to(self, share: float) -> Ruling:
        return Ruling.OPEN if self.different_share <= share else Ruling.DIFFERENT


def compare_on_site(
    new: Lines,
    old: Lines,
    counts: SiteCounts | None,
    *,
    titles_alike: bool = False,
    same_article: bool = False,
    similarity: float = 0.0,
) -> SiteEvidence:
    """Compare the lines of two pages of one site.

    ``titles_alike``: the titles are similar and give the same numbers. ``same_article``: see ``SiteEvidence``.
    ``similarity``: of the texts.
    """
    fingerprints = np.array([*new.lines, *old.lines, *new.headlines, *old.headlines], np.uint32)
    page_counts = counts.stood_on(fingerprints) if counts else np.zeros(len(fingerprints), np.uint16)
    pages = dict(zip(fingerprints.tolist(), page_counts.tolist(), strict=True))
    reach = min(new.reach, old.reach)
    # Assume that lines outside the samples are like those inside.
    more = 2**32 / (reach + 1)
    ours = {line: letters for line, letters in new.lines.items() if line <= reach}
    theirs = {line: letters for line, letters in old.lines.items() if line <= reach}
    return SiteEvidence(
        _headlines(new, old, pages, titles_alike=titles_alike),
        shared=round(more * sum(n for line, n in ours.items() if line in theirs and pages[line] <= FIXED.own_line)),
        new=round(more * sum(n for line, n in ours.items() if line not in theirs and not pages[line])),
        old=round(more * sum(n for line, n in theirs.items() if line not in ours and pages[line] <= FIXED.own_line)),
        pages=counts.pages() if counts else 0,
        same_article=same_article,
        edited=similarity - _line_similarity(ours, theirs) >= FIXED.edited,
    )


def compare_same_lines(lines: Lines, counts: SiteCounts) -> SiteEvidence:
    """Return ``compare_on_site`` of two pages with the same lines."""
    fingerprints = np.array([*lines.lines, *lines.headlines], np.uint32)
    pages = counts.stood_on(fingerprints).tolist()
    own = sum(n for n, many in zip(lines.lines.values(), pages, strict=False) if many <= FIXED.own_line)
    has_headline = any(many <= FIXED.own_headline for many in pages[len(lines.lines) :])
    more = 2**32 / (lines.reach + 1)
    return SiteEvidence(Headlines.SAME if has_headline else Headlines.OPEN, round(more * own), 0, 0, counts.pages())


def _line_similarity(ours: Mapping[int, int], theirs: Mapping[int, int]) -> float:
    both = {**ours, **theirs}
    shared = sum(letters for line, letters in ours.items() if line in theirs)
    return shared / sum(both.values()) if both else 0.0


def _headlines(new: Lines, old: Lines, pages: dict[int, int], *, titles_alike: bool) -> Headlines:
    ours, theirs = ({one for one in page.headlines if pages[one] <= FIXED.own_headline} for page in (new, old))
    if ours & theirs:
        return Headlines.SAME
    if not ours or not theirs:
        return Headlines.OPEN
    return Headlines.ALIKE if titles_alike else Headlines.OTHER
