"""The features of cascade: how much two pages share, as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple

from scrapy_neardup.methods.cascade.parameters import FIXED, CascadeParameters
from scrapy_neardup.methods.cascade.reading import TitleWords
from scrapy_neardup.methods.cascade.sketch import NUMBER, Article, Sketch
from scrapy_neardup.model import Fingerprint
from scrapy_neardup.text.shingles import jaccard


class Overlap(NamedTuple):
    """Estimated numbers of common shingles, from min-wise sketches.

    ``ours``: of the new page; ``theirs``: of the earlier page, without boilerplate of today; ``whole_in_both``: common
    ones with boilerplate.
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
    """What two pages have in common, without boilerplate; shares and similarities in [0, 1].

    ``MEANINGS`` describes those that have no comment here.
    """

    similarity: float
    containment: float
    whole: float
    whole_containment: float
    contained: float
    #: Share of the earlier sketch that is not boilerplate by now.
    left: float
    #: 0.5 without a title.
    title: float
    #: Whether both titles have numbers, but different ones.
    title_numbers: bool
    gone: float
    same_title: float
    other_name: float
    numbers: float
    form: float
    reworded: float
    sentences: float
    length: int
    #: Number of different shingles of the smaller page.
    smaller: int
    #: Headlines of both pages that count.
    headlines: frozenset[int]


#: The features in the order of ``explain``, with their meanings. The score's come first.
MEANINGS: Mapping[str, str] = {
    "similarity": "Jaccard similarity of 5-grams",
    "form": "the common text may be a site's template: same site, or unknown site",
    "gone": "each page has a title word that the other page lacks (0.5: only one page has)",
    "same_title": "the titles are identical, or a headline is common to both",
    "reworded": "long texts with other wording and the same numbers, so no template",
    "title": "Jaccard similarity of the title words",
    "numbers": "share of the numbers of the page with fewer that the other lacks",
    "other_name": "1 if each title has a word that is nowhere in the other page (perhaps on one site)",
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
    """Return the features of a new page with the fingerprint ``found``, and an earlier one.

    ``common`` are keys that are no evidence. ``articles``: the sketches hold articles only, without boilerplate.
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
    # Below this similarity pages are no copies under any titles, and the search for words takes most of the time.
    title: TitleWords | None = found.title if in_both >= FIXED.compared * (new.shingles + theirs - in_both) else None
    other_words = new.words != earlier.words  # asked first: a title may be made at its first use
    names = length >= FIXED.names_again and (is_one_site or not (new.site and earlier.site))
    gone, other_name = title.differ(earlier, names=names) if title and other_words else (0, False)
    similar_title, other_numbers = _compare_titles(new, earlier)
    headlines = _common_headlines(new, earlier, similar_title, other_name=other_name)
    same_title = float(bool(headlines) or new.has_title_of(earlier))
    is_repeated = same_title > 0 or new.title == earlier.title > 0
    titles_tell = gone > 0 or other_name or is_repeated or similar_title < p.retitled or other_numbers
    form = _form(new, earlier, both.containment, in_form=found.in_form or titles_tell)
    # In equal sentences numbers are no evidence: these may be the template, or a footer with an address.
    may_be_reworded = form and title and new.numbers.equals(earlier.numbers)
    are_reworded = may_be_reworded and title and title.count_new_numbers(earlier) >= FIXED.reworded
    return Features(
        similarity=both.similarity,
        containment=both.containment,
        whole=min(1.0, whole_in_both / max(1.0, new.whole + earlier.whole - whole_in_both)),
        whole_containment=min(1.0, whole_in_both / max(1, min(new.whole, earlier.whole))),
        contained=_contained_share(new, earlier, in_both, site_free, p.bits),
        left=theirs / earlier.shingles if earlier.shingles else 1.0,
        title=similar_title,
        title_numbers=other_numbers,
        gone=gone / 2,
        same_title=same_title,
        other_name=float(other_name),
        numbers=new.numbers.missing_share(earlier.numbers),
        form=form,
        reworded=form if are_reworded else 0.0,
        sentences=_overlap_share(new.sentences, earlier.sentences, {key & 0xFFFFFFFF for key in common}),
        length=length,
        smaller=smaller,
        headlines=headlines,
    )


def _common_headlines(new: Sketch, earlier: Sketch, title: float, *, other_name: bool) -> frozenset[int]:
    """Return the headlines of both pages; ``title``: how similar the titles are.

    If these share little, and each names another thing (``other_name``), a headline that is neither names the site.
    """
    if new.lines is None or earlier.lines is None:
        return frozenset()
    common = new.lines.headlines & earlier.lines.headlines
    return common & {new.title, earlier.title} if other_name and title < FIXED.other_notice else common


def _contained_share(new: Sketch, earlier: Sketch, in_both: float, site_free: bytes, bits: int) -> float:
    """Return the share of the new text in the earlier page; ``site_free``: see ``Fingerprint``."""
    if not site_free:
        return min(1.0, in_both / max(1, new.shingles))
    text = Article.unpack(site_free)
    shared = _in_both(jaccard(text.minwise, earlier.minwise, bits), text.shingles, earlier.shingles)
    return min(1.0, shared / max(1, text.shingles))


def _compare_titles(new: Sketch, earlier: Sketch) -> tuple[float, bool]:
    """Return the similarity of the titles, and whether both have numbers, but different ones.

    Words count up to the hash that both sketches cover.
    """
    limit = min(new.word_limit, earlier.word_limit)
    ours, theirs = ({word for word in page.words if word <= limit} for page in (new, earlier))
    digits = [{word for word in words if word & NUMBER} for words in (ours, theirs)]
    other_numbers = bool(digits[0] and digits[1] and digits[0] != digits[1])
    if new.words and earlier.words:
        return len(ours & theirs) / len(ours | theirs), other_numbers
    return (float(new.title == earlier.title) if new.title and earlier.title else 0.5), other_numbers


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


def _overlap_share(new: frozenset[int], earlier: frozenset[int], ignored: set[int]) -> float:
    few = min(len(new - ignored), len(earlier - ignored))
    return len((new & earlier) - ignored) / few if few else 0.0
