"""The features of cascade: how much two pages share, as numbers, and the lines that two pages of one site share."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from scrapy_neardup.methods.cascade.parameters import FIXED, CascadeParameters
from scrapy_neardup.methods.cascade.reading import TitleWords
from scrapy_neardup.methods.cascade.sketch import NUMBER, SHORT, Article, Lines, Sketch
from scrapy_neardup.model import Fingerprint, SiteCounts
from scrapy_neardup.text.shingles import jaccard


class Overlap(NamedTuple):
    """Estimated numbers of common shingles, from min-wise sketches.

    ``ours``: of the new page; ``theirs``: of the earlier page, less what is boilerplate by now; ``whole_in_both``:
    common ones with boilerplate.
    """

    in_both: float
    ours: int
    theirs: float
    whole_in_both: float

    @property
    def similarity(self) -> float:
        """Jaccard similarity."""
        return min(1.0, self.in_both / max(1.0, self.ours + self.theirs - self.in_both))

    @property
    def containment(self) -> float:
        """Share of the smaller page's shingles in the other one."""
        return min(1.0, self.in_both / max(1.0, min(self.ours, self.theirs)))


def overlap(new: Sketch, minwise: bytes, shingles: int, all: int, whole: bytes, bits: int) -> Overlap:
    """Estimate the overlap of a new page with the sketch parts of an earlier one.

    ``whole`` is the new page's min-wise sketch with its boilerplate, empty if it has none. Text that the earlier page
    shares with this boilerplate is boilerplate too. So it does not matter whether it was filed before or after its
    boilerplate was known.
    """
    in_both = _in_both(jaccard(new.minwise, minwise, bits), new.shingles, shingles)
    if not whole:
        return Overlap(in_both, new.shingles, float(shingles), in_both)
    whole_in_both = _in_both(jaccard(whole, minwise, bits), new.whole, shingles)
    # At most the boilerplate that only the new page had left out; else the error of the estimate would reduce the own
    # text.
    most = new.whole - new.shingles - (all - shingles)
    theirs = float(shingles) - min(max(0.0, whole_in_both - in_both), max(0, most))
    return Overlap(in_both, new.shingles, theirs, whole_in_both)


def _in_both(similarity: float, one: int, other: int) -> float:
    """Return the size of the intersection of two sets with this Jaccard similarity."""
    return similarity / (1.0 + similarity) * (one + other)


class Features(NamedTuple):
    """What two pages have in common, without boilerplate; shares and similarities in [0, 1]."""

    #: Jaccard similarity of the shingles.
    similarity: float
    #: Share of the smaller page's shingles in the other one.
    containment: float
    #: Jaccard similarity and containment with boilerplate; lower bounds.
    whole: float
    whole_containment: float
    #: Share of the new text, without its own site's boilerplate, in the earlier page.
    contained: float
    #: Share of the earlier sketch that is not boilerplate by now.
    left: float
    #: Jaccard similarity of the title words; 0.5 without a title.
    title: float
    #: 1 if both titles have numbers, but different ones.
    title_numbers: float
    #: Pages with a title word in their text that the other page lacks: 0.5 for one, 1 for both.
    gone: float
    #: 1 if the titles are equal, letter by letter, or a headline is.
    same_title: float
    #: 1 on one site if each title has a word that is nowhere in the other page, and the texts are not short.
    other_name: float
    #: Share of the smaller set of numbers that the other lacks, less in a longer text: see ``_number_weight``.
    numbers: float
    #: 1 on one site, 0 on two, 0.5 if a site is unknown.
    site: float
    #: 1 if the common text may be a template: on one site; 0 on two. If a site is unknown: see ``_form``.
    form: float
    #: ``form``, if longer texts have the same numbers in new sentences: then it is no template.
    reworded: float
    #: Share of sentences of the page with fewer of them that the other has.
    sentences: float
    #: Whether the texts have the same numbers.
    same_numbers: bool
    #: Different shingles of the larger page, and of the smaller one.
    length: int
    smaller: int


#: The features that ``explain`` shows, and what their values say; those of the score come first.
MEANINGS: Mapping[str, str] = {
    "similarity": "Jaccard similarity of 5-grams",
    "form": "the common text may be a site's template: same site, or unknown site",
    "gone": "each page has a title word that the other page lacks (0.5: only one page has)",
    "same_title": "the titles are identical, or a headline is common to both",
    "reworded": "long texts with other wording and the same numbers, so no template",
    "numbers": "share of numbers that differ (counts less in a long text)",
    "title": "Jaccard similarity of the title words",
    "other_name": "1 if each title has a word that is nowhere in the other page (on one site)",
    "containment": "share of the smaller page that the other contains",
    "contained": "share of the new page that the earlier page contains",
    "whole": "similarity with boilerplate (lower bound)",
    "whole_containment": "containment with boilerplate (lower bound)",
    "sentences": "share of one page's sentences that the other contains",
    "length": "number of different shingles of the larger page",
}


def compare(
    new: Sketch, earlier: Sketch, found: Fingerprint, common: Set[int], p: CascadeParameters, *, articles: bool = False
) -> Features:
    """Return the features of a new page, whose fingerprint is ``found``, and an earlier one.

    ``common`` are keys that are no evidence. ``articles``: the sketches are those of articles, without boilerplate.
    """
    whole, site_free = (b"", b"") if articles else (found.whole, found.site_free)
    both = overlap(new, earlier.minwise, earlier.shingles, earlier.whole, whole, p.bits)
    in_both, _, theirs, whole_in_both = both
    is_one_site = new.site == earlier.site > 0
    if is_one_site:
        # Assume that boilerplate left out of the earlier sketch is the same on the same site.
        left = max(0.0, new.whole - new.shingles - (whole_in_both - in_both))
        whole_in_both += min(earlier.whole - earlier.shingles, left)
    length, smaller = max(new.shingles, round(theirs)), min(new.shingles, round(theirs))
    # Below, the pages are no copies whatever their titles say, and looking for words takes most of the time.
    title: TitleWords | None = found.title if in_both >= FIXED.compared * (new.shingles + theirs - in_both) else None
    gone = title.count_gone(earlier, p.max_title_words) / 2 if title and new.words != earlier.words else 0.0
    similar_title, other_numbers = _compare_titles(new, earlier, p.max_title_words)
    same_title = float(_has_same_title(new, earlier))
    in_form = found.in_form or gone > 0 or same_title > 0 or similar_title < p.retitled or other_numbers
    other_name = False
    if title and length >= FIXED.names_again and (is_one_site or not (in_form or (new.site and earlier.site))):
        other_name = title.names_another(earlier, p.max_title_words)
        in_form |= other_name
    form = _form(new, earlier, both.containment, in_form=in_form)
    return Features(
        similarity=both.similarity,
        containment=both.containment,
        whole=min(1.0, whole_in_both / max(1.0, new.whole + earlier.whole - whole_in_both)),
        whole_containment=min(1.0, whole_in_both / max(1, min(new.whole, earlier.whole))),
        contained=_contained_share(new, earlier, in_both, site_free, p.bits),
        left=theirs / earlier.shingles if earlier.shingles else 1.0,
        title=similar_title,
        title_numbers=float(other_numbers),
        gone=gone,
        same_title=same_title,
        other_name=float(is_one_site and other_name),
        numbers=max(
            new.numbers.missing_share(earlier.numbers) * _number_weight(length, form, same_title),
            FIXED.title_numbers * form * other_numbers * (new.numbers.missing_share(earlier.numbers) > 0),
        ),
        site=float(new.site == earlier.site) if new.site and earlier.site else 0.5,
        form=form,
        reworded=form * (bool(form and title) and _are_reworded(new, earlier, title)),
        sentences=_overlap_share(new.sentences, earlier.sentences, {key & 0xFFFFFFFF for key in common}),
        same_numbers=new.numbers == earlier.numbers,
        length=length,
        smaller=smaller,
    )


def _contained_share(new: Sketch, earlier: Sketch, in_both: float, site_free: bytes, bits: int) -> float:
    """Return the share of the new text in the earlier page; ``site_free``: see ``Fingerprint``."""
    if not site_free:
        return min(1.0, in_both / max(1, new.shingles))
    text = Article.unpack(site_free)
    shared = _in_both(jaccard(text.minwise, earlier.minwise, bits), text.shingles, earlier.shingles)
    return min(1.0, shared / max(1, text.shingles))


def _compare_titles(new: Sketch, earlier: Sketch, most: int) -> tuple[float, bool]:
    """Return the similarity of the titles, and whether both have numbers, but different ones.

    Words count up to the hash that both sketches cover.
    """
    limit = min(new.word_limit(most), earlier.word_limit(most))
    ours, theirs = ({word for word in page.words if word <= limit} for page in (new, earlier))
    digits = [{word for word in words if word & NUMBER} for words in (ours, theirs)]
    other_numbers = bool(digits[0] and digits[1] and digits[0] != digits[1])
    if new.words and earlier.words:
        return len(ours & theirs) / len(ours | theirs), other_numbers
    return (float(new.title == earlier.title) if new.title and earlier.title else 0.5), other_numbers


def _has_same_title(new: Sketch, earlier: Sketch) -> bool:
    if new.lines and earlier.lines and not new.lines.headlines.isdisjoint(earlier.lines.headlines):
        return True
    return new.title == earlier.title > 0


def _form(new: Sketch, earlier: Sketch, containment: float, *, in_form: bool) -> float:
    """Return how far the common text may be a template, from 0 to 1.

    The sites decide. If one is unknown, the texts do: an author who fills in a form names another thing in the title,
    and replaces text. One who cuts an article, or adds to it, leaves the rest.
    """
    if new.site and earlier.site:
        return float(new.site == earlier.site)
    if in_form:
        return 1.0
    return 0.0 if containment >= FIXED.cut else 0.5


def _are_reworded(new: Sketch, earlier: Sketch, title: TitleWords | None) -> bool:
    """Whether the numbers are equal although their sentences are not; never without the new text.

    In equal sentences they are no evidence: these may be the template, or a footer with an address.
    """
    return (
        new.numbers.equals(earlier.numbers) and title is not None and title.count_new_numbers(earlier) >= FIXED.reworded
    )


def _number_weight(length: int, form: float, same_title: float) -> float:
    """Return the weight, in [0, 1], of different numbers in texts with so many shingles.

    It falls from 200 shingles on, to one half at 400. There it stays if the common text may be a template. Between
    sites and under equal titles they then weigh nothing, as a copy may be shortened or have other text around it.
    """
    return min(1.0, 200 / max(1, length)) if length <= SHORT else form * (1.0 - same_title) / 2


def _overlap_share(new: frozenset[int], earlier: frozenset[int], ignored: set[int]) -> float:
    few = min(len(new - ignored), len(earlier - ignored))
    return len((new & earlier) - ignored) / few if few else 0.0


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
