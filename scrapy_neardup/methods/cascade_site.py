"""Whether two pages of one site are one article, or two in one form.

Between sites shared text is copying; within a site it may be the template, of which the state knows nothing on a site's
first pages. So there the similarity of two pages does not decide alone. It is held against what the new page shows and
the earlier one does not, and the other way round, and against their headlines. How often a line has stood on the site
tells the template from the article: what stands on two other pages already is no evidence either way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np

from scrapy_neardup.methods.cascade_lines import Lines
from scrapy_neardup.model import SiteCounts

#: Pages of the site on which a line may have stood before to be a page's own: the earlier page is one of them.
_OWN_LINE = 1
#: The same for a headline: captures and versions of an article, which are filed when they differ, share theirs.
_OWN_HEADLINE = 2
#: Before so many pages of a site are known, nothing is known of its template.
_FEW_PAGES = 8
#: The share of own letters, of the two pages' the larger, that may differ: under the same headline, where there is
#: much or little to go by; under one that is alike; where neither has one of its own; under another; on few pages.
_SAME, _SAME_SHORT, _ALIKE, _OPEN, _OTHER, _EARLY = 0.55, 0.2, 0.4, 0.2, 0.05, 0.05
#: Own letters that both must share: to count as much, to be any evidence, to outweigh another headline.
_MUCH, _LEAST, _OUTWEIGHS = 400, 40, 200
#: Texts more alike than their lines by so much differ by words here and there: lines were edited, not replaced.
_EDITED = 0.3
#: Under the same headline one page is the other with less around it, if beside so many letters that both have it holds
#: nearly nothing of its own, and the other one not too much: a print version, a page for phones.
_WITHIN, _WITHIN_LEAST, _WITHIN_MOST = 0.05, 100, 0.5


class Headlines(Enum):
    """What the headlines of two pages say; those that many pages of the site have are none."""

    SAME = "the same"
    ALIKE = "alike"
    OPEN = "none of their own"
    OTHER = "different"


class Ruling(Enum):
    """What may become of two pages of one site."""

    #: Copies, whatever their similarity.
    COPY = "copy"
    #: Copies if they are similar.
    OPEN = "open"
    #: No copies, whatever their similarity.
    APART = "apart"


@dataclass(frozen=True, slots=True)
class OnSite:
    """What two pages of one site have of their own, in letters: ``shared`` by both, in the ``new`` one, in the ``old``.

    ``pages``: how many of the site are known. ``edited``: what differs are lines in two wordings.
    """

    headlines: Headlines
    shared: int
    new: int
    old: int
    pages: int
    edited: bool = False

    @property
    def differing(self) -> float:
        """The share of what the page with more of its own does not share with the other one; 0 if neither has any."""
        most = max(self.new, self.old)
        return most / (self.shared + most) if self.shared + most else 0.0

    @property
    def ruling(self) -> Ruling:
        """What they may be: see the thresholds above."""
        if self.headlines is Headlines.OTHER:
            return _open_if(self.differing <= _OTHER and self.shared >= _OUTWEIGHS)
        if self.headlines is not Headlines.SAME and self.shared < _LEAST:
            return Ruling.APART
        if self.pages < _FEW_PAGES:
            return _open_if(self.differing <= _EARLY)
        if self.headlines is not Headlines.SAME:
            return _open_if(self.differing <= (_ALIKE if self.headlines is Headlines.ALIKE else _OPEN))
        least = min(self.new, self.old)
        if self.shared >= _WITHIN_LEAST and least <= _WITHIN * (self.shared + least) and self.differing <= _WITHIN_MOST:
            return Ruling.COPY
        if self.edited:
            return Ruling.OPEN
        return _open_if(self.differing <= (_SAME if self.shared >= _MUCH else _SAME_SHORT))

    def sentence(self) -> str:
        """The evidence, for people."""
        return (
            f"Both pages are of one site, with {self.pages} known pages. Their headlines are {self.headlines.value}. "
            f"Besides the site's own text they share about {self.shared} letters; the new page has {self.new} more, "
            f"the earlier page {self.old}."
        )


def compare_on_site(
    new: Lines, old: Lines, counts: SiteCounts | None, *, titles_alike: bool = False, similarity: float = 0.0
) -> OnSite:
    """Hold the lines of two pages of one site against each other; ``counts`` is what is known of it, if anything is.

    ``similarity``: that of the texts.
    """
    asked = np.array([*new.lines, *old.lines, *new.headlines, *old.headlines], np.uint32)
    on_how_many = counts.stood_on(asked) if counts else np.zeros(len(asked), np.uint16)
    stood = dict(zip(asked.tolist(), on_how_many.tolist(), strict=True))
    reach = min(new.reach, old.reach)
    # What is beyond the samples is taken to be like what is in them.
    more = 2**32 / (reach + 1)
    ours = {line: letters for line, letters in new.lines.items() if line <= reach}
    theirs = {line: letters for line, letters in old.lines.items() if line <= reach}
    return OnSite(
        _headlines(new, old, stood, titles_alike=titles_alike),
        shared=round(more * sum(n for line, n in ours.items() if line in theirs and stood[line] <= _OWN_LINE)),
        new=round(more * sum(n for line, n in ours.items() if line not in theirs and not stood[line])),
        old=round(more * sum(n for line, n in theirs.items() if line not in ours and stood[line] <= _OWN_LINE)),
        pages=counts.pages() if counts else 0,
        edited=similarity - _alike(ours, theirs) >= _EDITED,
    )


def compare_again(lines: Lines, counts: SiteCounts) -> OnSite:
    """What ``compare_on_site`` says of a page and another one with the very same lines."""
    asked = np.array([*lines.lines, *lines.headlines], np.uint32)
    stood = counts.stood_on(asked).tolist()
    own = sum(n for n, many in zip(lines.lines.values(), stood, strict=False) if many <= _OWN_LINE)
    is_told = any(many <= _OWN_HEADLINE for many in stood[len(lines.lines) :])
    more = 2**32 / (lines.reach + 1)
    return OnSite(Headlines.SAME if is_told else Headlines.OPEN, round(more * own), 0, 0, counts.pages())


def _alike(ours: Mapping[int, int], theirs: Mapping[int, int]) -> float:
    """Jaccard similarity of the lines, each as heavy as it has letters."""
    both = {**ours, **theirs}
    shared = sum(letters for line, letters in ours.items() if line in theirs)
    return shared / sum(both.values()) if both else 0.0


def _headlines(new: Lines, old: Lines, stood: dict[int, int], *, titles_alike: bool) -> Headlines:
    ours, theirs = ({one for one in page.headlines if stood[one] <= _OWN_HEADLINE} for page in (new, old))
    if ours & theirs:
        return Headlines.SAME
    if not ours or not theirs:
        return Headlines.OPEN
    return Headlines.ALIKE if titles_alike else Headlines.OTHER


def _open_if(may_be: bool) -> Ruling:
    return Ruling.OPEN if may_be else Ruling.APART
