"""The rules of cascade: whether two sketches are copies."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from scrapy_neardup.methods.cascade.features import Features, SharedProse, compare, overlap
from scrapy_neardup.methods.cascade.parameters import FIXED, CascadeParameters
from scrapy_neardup.methods.cascade.sketch import HEAD, OPENING_BYTES, Lines, Sketch
from scrapy_neardup.model import Comparison, Fingerprint, Likeness, SiteCounts


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
class SiteComparison:
    """The own text of two pages of one site, in letters: ``shared``, only in the ``new`` or the ``old`` page.

    Between sites common text is copying; within a site it may be the template, unknown on the first pages. So lines and
    headlines that differ decide too. A line that a third page of the site has is no evidence.

    ``pages``: noted pages of the site. ``edited``: the lines differ in wording only. ``titles_alike``: the titles are
    similar and give the same numbers. ``confirmed``: the common headline is title and heading of the new page.
    ``untitled_copy``: the articles are equal letter by letter, and a page has no title.
    """

    headlines: Headlines
    shared: int
    new: int
    old: int
    pages: int
    edited: bool = False
    titles_alike: bool = False
    confirmed: bool = False
    untitled_copy: bool = False

    @property
    def different_share(self) -> float:
        """Share of own text, of the page with more of it, that the other page lacks."""
        most = max(self.new, self.old)
        return most / (self.shared + most) if self.shared + most else 0.0

    @property
    def ruling(self) -> Ruling:
        """The ruling by the fixed thresholds."""
        if self.headlines is Headlines.OTHER:
            return _open_if(self.different_share <= FIXED.other and self.shared >= FIXED.outweighs)
        if self.headlines is not Headlines.SAME and self.shared < FIXED.least:
            return Ruling.DIFFERENT
        if self.pages < FIXED.few_pages and not self.is_article:
            return _open_if(self.different_share <= FIXED.early)
        if self.untitled_copy:
            return _open_if(self.different_share <= FIXED.same)
        if self.headlines is not Headlines.SAME:
            return _open_if(
                self.different_share <= (FIXED.similar if self.headlines is Headlines.ALIKE else FIXED.without)
            )
        least = min(self.new, self.old)
        if (
            self.shared >= FIXED.within_least
            and least <= FIXED.within * (self.shared + least)
            and self.different_share <= FIXED.within_most
        ):
            return Ruling.COPY
        if self.edited:
            return Ruling.OPEN
        return _open_if(self.different_share <= (FIXED.same if self.shared >= FIXED.much else FIXED.same_short))

    @property
    def is_article(self) -> bool:
        """Whether the common text is an article, and no template, however little is known of the site."""
        if self.confirmed and self.shared >= FIXED.within_least:
            return True
        if self.titles_alike and self.shared >= FIXED.no_form:
            return self.headlines in (Headlines.SAME, Headlines.ALIKE)
        return self.untitled_copy and self.shared >= FIXED.outweighs

    def sentence(self) -> str:
        """Describe the evidence."""
        return (
            f"Both pages are of one site, with {self.pages} known pages. Their headlines are {self.headlines.value}. "
            f"Beside the template they share about {self.shared} letters; the new page has {self.new} more, "
            f"the earlier page {self.old}.{self._article_evidence()}"
        )

    def _article_evidence(self) -> str:
        if not self.is_article:
            return ""
        if self.confirmed:
            return " The common headline is both title and heading, so the common text is an article."
        if self.untitled_copy:
            return " The articles are the same letter by letter, and one page has no title."
        return " The titles are alike, and no template is so long."


def compare_on_site(
    new: Lines,
    old: Lines,
    counts: SiteCounts | None,
    *,
    titles_alike: bool = False,
    similarity: float = 0.0,
    confirmed_headline: int = 0,
    untitled_copy: bool = False,
) -> SiteComparison:
    """Compare the lines of two pages of one site.

    ``similarity``: of the texts. ``confirmed_headline``: fingerprint of the headline that is title and heading of the
    new page, or 0. The rest: see ``SiteComparison``.
    """
    fingerprints = np.array([*new.lines, *old.lines, *new.headlines, *old.headlines], np.uint32)
    page_counts = counts.stood_on(fingerprints) if counts else np.zeros(len(fingerprints), np.uint16)
    pages = dict(zip(fingerprints.tolist(), page_counts.tolist(), strict=True))
    reach = min(new.reach, old.reach)
    # Assume that lines outside the samples are like those inside.
    more = 2**32 / (reach + 1)
    ours = {line: letters for line, letters in new.lines.items() if line <= reach}
    theirs = {line: letters for line, letters in old.lines.items() if line <= reach}
    return SiteComparison(
        _headlines(new, old, pages, titles_alike=titles_alike),
        shared=round(more * sum(n for line, n in ours.items() if line in theirs and pages[line] <= FIXED.own_line)),
        new=round(more * sum(n for line, n in ours.items() if line not in theirs and not pages[line])),
        old=round(more * sum(n for line, n in theirs.items() if line not in ours and pages[line] <= FIXED.own_line)),
        pages=counts.pages() if counts else 0,
        edited=similarity - _line_similarity(ours, theirs) >= FIXED.edited,
        titles_alike=titles_alike,
        confirmed=bool(confirmed_headline)
        and confirmed_headline in old.headlines
        and pages.get(confirmed_headline, 0) <= FIXED.own_headline,
        untitled_copy=untitled_copy,
    )


def compare_same_lines(lines: Lines, counts: SiteCounts) -> SiteComparison:
    """Return ``compare_on_site`` of two pages with the same lines."""
    fingerprints = np.array([*lines.lines, *lines.headlines], np.uint32)
    pages = counts.stood_on(fingerprints).tolist()
    own = sum(n for n, many in zip(lines.lines.values(), pages, strict=False) if many <= FIXED.own_line)
    has_headline = any(many <= FIXED.own_headline for many in pages[len(lines.lines) :])
    more = 2**32 / (lines.reach + 1)
    return SiteComparison(Headlines.SAME if has_headline else Headlines.OPEN, round(more * own), 0, 0, counts.pages())


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


def _open_if(may_be: bool) -> Ruling:
    return Ruling.OPEN if may_be else Ruling.DIFFERENT


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of comparing two sketches."""

    features: Features
    duplicate: bool
    certain: bool
    decision: str


class FineCheck:
    """Compares a new page ``one`` with an earlier one, ``other``, and decides whether they are copies.

    ``common`` are keys of the new page that are no evidence.
    """

    def __init__(self, p: CascadeParameters, new: Fingerprint, one: Sketch, other: Sketch, common: Set[int]) -> None:
        #: Both sites are known and the same.
        self.same_site = one.site == other.site > 0
        self._in_form = new.in_form
        self.features = compare(one, other, new.whole, common, p, new.site_free, new.title, in_form=new.in_form)
        self._title = new.title
        self._whole = new.whole
        self._site = new.site
        self._one = one
        self._other = other
        self._common = common
        self.parameters = self._for_site(p)

    @property
    def in_form(self) -> bool:
        """Whether they look alike, perhaps on one site, and a title word of one is missing in the other."""
        return self.features.site > 0 and self.features.similarity >= FIXED.alike and self.features.gone > 0

    @property
    def forms(self) -> float:
        """Share of the site's pages that look like a page under another title; 0 between sites."""
        return self._site.forms() if self._site and self.features.site > 0 else 0.0

    def judgement(self) -> Judgement:
        """Judge by the texts, the articles, their prose, and on one site the lines."""
        found, one, other = self._with_prose(self._by_text()), self._one, self._other
        if one.lines is None or other.lines is None or not self.same_site:
            return found
        if not found.duplicate and one.lines.headlines.isdisjoint(other.lines.headlines):
            return found  # lines make a copy only under the same headline
        f = found.features
        is_same = one.body == other.body
        on_site = compare_on_site(
            one.lines,
            other.lines,
            self._site,
            titles_alike=f.title >= FIXED.titles_alike and not f.title_numbers,
            similarity=1.0 if is_same else f.similarity,
            confirmed_headline=self._title.confirmed if self._title else 0,
            untitled_copy=is_same and not (one.title and other.title),
        )
        if on_site.ruling is Ruling.DIFFERENT and found.duplicate:
            decision = (
                f"{found.decision} But the common text may be a template, so the page passes. {on_site.sentence()}"
            )
            return Judgement(f, duplicate=False, certain=False, decision=decision)
        if on_site.ruling is Ruling.COPY and not found.duplicate:
            decision = f"One page contains the other, under the same headline. {on_site.sentence()}"
            return Judgement(f, duplicate=True, certain=False, decision=decision)
        return found

    def likeness(self, found: Judgement) -> Likeness | None:
        """Return the kind of copy, or how two pages that are no copies are alike."""
        f, p, one, other = found.features, self.parameters, self._one, self._other
        if found.duplicate:
            return Likeness.RETITLED if f.title < p.retitled else Likeness.NEAR
        # The size of a short page depends on the text around it, so of two notices neither is an excerpt.
        may_be_excerpt = f.smaller >= p.short or one.lines is None or other.lines is None
        if f.containment >= p.excerpt and FIXED.for_containment <= f.similarity < p.least and may_be_excerpt:
            return Likeness.EXCERPT
        same_title = (one.title, one.words) == (other.title, other.words) and one.title > 0
        return Likeness.SAME_TITLE if same_title else None

    def is_minor_update(self) -> bool:
        """Whether the earlier page is the delivered version of the new one, less or plus a few letters.

        Both have one title. Of a short text all numbers are the same. In a longer text others may stand in lines that
        are no prose: a counter, a date.
        """
        one, other = self._one, self._other
        if self._title is None or one.title != other.title or self.has_grown():
            return False
        found = overlap(one, other.minwise, other.shingles, other.whole, self._whole, self.parameters.bits)
        if one.article and other.article:
            ours, theirs = one.article_view(), other.article_view()
            found = overlap(ours, theirs.minwise, theirs.shingles, theirs.whole, b"", self.parameters.bits)
        most = FIXED.minor_letters_unspaced if self._title.is_unspaced else FIXED.minor_letters
        changed, longer = max(found.ours, found.theirs) - found.in_both, abs(found.ours - found.theirs)
        if found.similarity < FIXED.minor or changed > most or longer > most / 2:
            return False
        new, old = one.order.sentences, other.order.sentences
        changes = sum(a != b for a, b in zip(new, old, strict=False))
        if len(new) != len(old) or changes > FIXED.minor_sentences:
            return False
        if one.numbers == other.numbers:
            return True
        lines = self._title.lines_with_numbers(set(new) - set(old))
        is_long = one.numbers.is_long and other.numbers.is_long
        return is_long and bool(lines) and max(map(len, lines)) <= most

    def has_grown(self) -> bool:
        """Whether the new text contains the earlier one and more. The caller has found the same article in both.

        A thread grows so if its first post counts as the article. New teasers alone do not count.
        """
        longer = self._one.whole > FIXED.grown * self._other.whole
        return longer and self.features.whole_containment >= self.parameters.excerpt

    def shared_prose(self) -> SharedProse:
        """Return the common prose, if the new text is at hand."""
        p = self.parameters
        return (
            SharedProse() if self._title is None else self._title.prose(p.shingle, p.bins, p.bits).compare(self._other)
        )

    def _are_two_notices(self) -> bool:
        """Whether short texts, perhaps of one site, have quite different titles: a bulletin says the same every day."""
        f, one, other = self.features, self._one, self._other
        has_titles = len(one.words) > 1 and len(other.words) > 1
        return f.length < self.parameters.short and f.site > 0 and has_titles and f.title < FIXED.other_notice

    def _with_prose(self, found: Judgement) -> Judgement:
        """Reject pages that share a listing and no prose, unless they are nearly equal."""
        f = found.features
        if not found.duplicate or f.similarity >= FIXED.nearly or self._one.body == self._other.body:
            return found
        if not (shared := self.shared_prose()).is_separate:
            return found
        decision = (
            f"{shared.listing:.0%} of the common text is a listing (code or a table). The earlier page contains only "
            f"{shared.prose:.0%} of the new page's prose. They are two articles."
        )
        return Judgement(f, duplicate=False, certain=False, decision=decision)

    def _require_containment(self, found: Judgement) -> Judgement:
        """Reject pages of two sites if the earlier one contains too little of the new one."""
        one, other, f = self._one, self._other, found.features
        if not found.duplicate or self.same_site:
            return found
        short = f.length < self.parameters.short
        needed = (
            FIXED.contained
            if short or _may_be_one_article(one, other, f, self.parameters)
            else FIXED.contained_retitled
        )
        if f.contained >= needed:
            return found
        what = "of a short text" if short else "with such titles"
        decision = f"The earlier page contains {f.contained:.0%} of this one. A copy {what} needs {needed:.0%}."
        return Judgement(f, duplicate=False, certain=False, decision=decision)

    def _for_site(self, p: CascadeParameters) -> CascadeParameters:
        return p.on_catalogue() if self.forms >= p.catalogue else p

    def _by_text(self) -> Judgement:
        f, p, one, other = self.features, self.parameters, self._one, self._other
        if one.body == other.body and self._are_two_notices():
            return Judgement(
                f,
                False,
                False,
                "Both texts are short and equal, perhaps of one site, but their titles differ.",
            )
        if one.body == other.body and (one.article is None or one.article.shingles >= FIXED.least_article):
            what = "articles on both pages" if one.article or other.article else "texts"
            return Judgement(f, True, True, f"The {what} are identical.")
        whole = self._require_containment(Judgement(f, *_decide(f, p)))
        if one.article is None and other.article is None:
            return whole
        f = compare(
            one.article_view(), other.article_view(), b"", self._common, p, title=self._title, in_form=self._in_form
        )
        article = self._require_containment(Judgement(f, *_decide(f, p)))
        if article.duplicate and not whole.duplicate:
            return Judgement(f, True, article.certain, f"Judged by the articles alone: {article.decision}")
        if whole.duplicate and one.article and other.article and f.similarity < FIXED.articles_apart:
            return Judgement(f, False, False, "The articles differ. Only the text around them is alike.")
        return article if f.similarity > whole.features.similarity else whole


def _may_be_one_article(one: Sketch, other: Sketch, f: Features, p: CascadeParameters) -> bool:
    """Whether the titles are alike, or both missing, or both texts have the words of both titles."""
    if f.title >= p.retitled if one.words and other.words else not (one.words or other.words):
        return True
    return bool(one.words_in_text and other.words_in_text) and not f.gone


def weights(p: CascadeParameters) -> dict[str, tuple[float, str]]:
    """Return weight and meaning of each feature of the score."""
    return {
        "similarity": (1.0, f"Jaccard similarity of {p.shingle}-grams"),
        "form": (-p.by_site, "the common text may be a site's template: same site, or unknown site"),
        "gone": (-2 * p.by_gone, "each page has a title word that the other page lacks (0.5: only one page has)"),
        "same_title": (p.by_title, "the titles are identical, or a headline is common to both"),
        "reworded": (p.by_reworded, "long texts with other wording and the same numbers, so no template"),
        "numbers": (-p.by_numbers, "share of numbers that differ (counts less in a long text)"),
    }


def score(f: Features, p: CascadeParameters) -> float:
    """Return the weighted sum of the features."""
    found: float = sum(weight * getattr(f, name) for name, (weight, _) in weights(p).items())
    return found


def _decide(f: Features, p: CascadeParameters) -> tuple[bool, bool, str]:
    """Return whether the pages are duplicates, whether by similarity alone, and the deciding rule."""
    if f.left < FIXED.enough_left:
        return (
            False,
            False,
            "Most of the earlier page is boilerplate. Too little is left to compare.",
        )
    if f.length < p.short:
        return _decide_short(f, p)
    alone = f.similarity >= p.certain
    if f.whole < p.least and not (alone and (f.whole >= p.certain_least or f.whole_containment >= p.excerpt)):
        return False, False, f"The similarity of the whole texts, with boilerplate, is below {p.least:g}."
    certain = p.certain_on_site if f.form else p.certain_apart if f.gone == 1.0 else p.certain
    if f.similarity >= certain:
        return True, True, f"The similarity reaches {certain:g}, which is enough on its own."
    if f.gone == 1.0:
        return (
            False,
            False,
            "Each page's title has a word that the other page lacks. They are two notices.",
        )
    other_title = f.title_numbers or (f.form and f.title < p.retitled)
    if other_title and not (f.opening or f.reworded) and f.similarity < FIXED.nearly:
        return False, False, "The common text may be a template: the titles and the openings differ."
    duplicate = score(f, p) >= p.base
    return duplicate, duplicate and alone, f"The score {'reaches' if duplicate else 'is below'} {p.base:g}."


def _decide_short(f: Features, p: CascadeParameters) -> tuple[bool, bool, str]:
    """Decide on short texts, as ``_decide`` does."""
    in_form = bool(f.gone and f.form)
    is_edited = f.similarity > p.short_certain and not f.gone
    is_copy = f.same_numbers and f.similarity >= p.short_least and not in_form and (f.sentences == 1.0 or is_edited)
    if is_copy and f.sentences < 1.0:
        reason = f"the similarity exceeds {p.short_certain:g}, with the same numbers"
    elif is_copy:
        reason = "every sentence of one page is in the other, with the same numbers"
    elif not f.same_numbers:
        reason = "the numbers differ"
    else:
        reason = "a title word is missing" if in_form else "the sentences differ"
    return is_copy, is_copy, f"In texts this short, one word makes another notice. Here {reason}."


#: Tolerance for rounding, which differs between machines.
_MARGIN = 1e-9


class Bound:
    """A fast check whether two pages can be alike, by the head and min-wise part of the earlier sketch.

    Most pages with a common key share one sentence and nothing else. This check takes a fiftieth of a full comparison.
    It tests only the least similarity of all rules, so it rejects nothing that ``FineCheck`` would accept.
    """

    def __init__(self, p: CascadeParameters) -> None:
        self._bits = p.bits
        # The least similarity of all rules. Only equal titles and reworded text add to the score; the catalogue asks
        # for more.
        scored = p.base + min(0.0, p.by_site - p.by_reworded)
        least = min(FIXED.alike, p.certain, p.certain_apart, p.certain_on_site, scored, p.short_least, p.short_certain)
        #: Least similarity; least similarity and containment of an excerpt.
        self._bounds = least - _MARGIN, FIXED.for_containment - _MARGIN, p.excerpt - _MARGIN

    def may_be_alike(self, one: Sketch, whole: bytes, old: bytes) -> bool:
        """Whether a new page ``one`` may be like the page of the sketch ``old``, or in one form with it.

        ``whole``: see ``features.compare``. Pages from HTML always may, as lines and headlines are not checked here. So
        may unreadable sketches: the comparison reports them.
        """
        if one.lines or one.article:
            return True
        if len(old) < HEAD.size:
            return True
        body, title, _, all, shingles, sentences, numbers, words = HEAD.unpack_from(old)
        if body == one.body or title == one.title > 0:
            return True
        end = HEAD.size + len(one.minwise)
        order = end + OPENING_BYTES + 4 * sentences + 2 * numbers + 3 * words
        if len(old) <= order or len(old) != order + 1 + 2 * old[order]:
            return True  # only pages from HTML have bytes after the order
        found = overlap(one, old[HEAD.size : end], shingles, all, whole, self._bits)
        least, telling, excerpt = self._bounds
        similarity = found.similarity
        return similarity >= least or (similarity >= telling and found.containment >= excerpt)


def compare_same_bytes(known: Sketch, site: int, counts: SiteCounts) -> Comparison | None:
    """Compare a page on ``site`` (0 if unknown) with an earlier one of the same bytes, without reading it.

    Only the boilerplate and templates of the sites can differ. Returns None if they may matter: then the page must be
    read.
    """
    if known.article is not None and known.article.shingles < FIXED.least_article:
        return None
    lines = known.lines
    sentences = known.sentences.union(lines.lines, lines.headlines) if lines else known.sentences
    if counts.is_common(np.fromiter(sentences, np.uint32, len(sentences))).any():
        return None
    same_site = known.site == site > 0
    if lines and same_site and compare_same_lines(lines, counts).ruling is Ruling.DIFFERENT:
        return None
    return Comparison(1.0, 1.0, True, True, True, Likeness.IDENTICAL, same_site)


def move_sketch(known: Sketch, packed: bytes, site: int) -> bytes:
    """Return the sketch for the other site; empty if boilerplate of the first site is missing in it."""
    if known.site == site:
        return packed
    return replace(known, site=site).pack() if known.whole == known.shingles else b""
