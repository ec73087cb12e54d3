"""The rules of cascade: are two sketches copies?"""

from __future__ import annotations

from collections.abc import Mapping, Set
from copy import copy
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from scrapy_neardup.hashing import compiled
from scrapy_neardup.methods.cascade.features import Features, HeldProse, compare, overlap
from scrapy_neardup.methods.cascade.parameters import CascadeParameters
from scrapy_neardup.methods.cascade.sketch import HEAD, OPENING_BYTES, Lines, Sketch
from scrapy_neardup.model import Comparison, Fingerprint, Likeness, SiteCounts

# ----------------------------------------------------------------------------------------------------------------------
# Whether two pages of one site are one article, or two in one form.
#
# Between sites shared text is copying; within a site it may be the template, of which the state knows nothing on a
# site's first pages. So there the similarity of two pages does not decide alone. It is held against what the new page
# shows and the earlier one does not, and the other way round, and against their headlines. How often a line has stood
# on the site tells the template from the article: what stands on two other pages already is no evidence either way.


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


# ----------------------------------------------------------------------------------------------------------------------
# The fine check of the default method: what two sketches have in common, and whether that makes a copy.


#: The similarity from which containment means anything: of texts less alike, one is more than six times as long as the
#: other, and what the sketch errs by would be more than what is to be measured.
TELLING = 0.12
#: The share of an earlier page's shingles that must be its own: what is left once the others are taken off is as
#: uncertain as all of them, and with too little of it nothing can be told but that two texts are the same.
_ENOUGH = 0.5
#: Two articles less alike than this are no copies, whatever stands around them.
_ARTICLES_APART = 0.3
#: Different shingles that an article must have, without boilerplate, for its letters to be evidence by themselves.
LEAST_ARTICLE = 40
#: The share of a page that an earlier one of another site must hold, where the titles may be of one article or the text
#: is short, so that a line with the source weighs much, and where not. Nobody can have an article dropped with less of
#: it; and a site's disclaimer, published by somebody else under another title, makes no copies of that site's pages.
_CARRIED, _CARRIED_RETITLED = 0.6, 0.8
#: A text that is longer than this many times the earlier one, and holds that, has grown.
_GROWN = 1.2
#: Similarity from which another title and another opening outweigh nothing any more.
_NEARLY = 0.9
#: Similarity from which two pages of a site look alike, be they copies or two in one form.
ALIKE = 0.5
#: Titles more alike than this, and with the same numbers, are one title in two spellings.
_TITLES_ALIKE = 0.6


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the comparison of two sketches came to."""

    features: Features
    duplicate: bool
    certain: bool
    decision: str


class FineCheck:
    """A new page held against an earlier one, by their sketches ``one`` and ``other``.

    ``common`` are keys of the new page that are no evidence. ``features``: what the whole texts have in common.
    """

    def __init__(self, p: CascadeParameters, new: Fingerprint, one: Sketch, other: Sketch, common: Set[int]) -> None:
        #: Whether both pages are known to be of one site.
        self.same_site = one.site == other.site > 0
        self.features = compare(one, other, new.whole, common, p, new.unframed, new.title)
        self._title = new.title
        self._site = new.site
        self._one = one
        self._other = other
        self._common = common
        self.parameters = self._deciding(p)

    def under(self, p: CascadeParameters) -> FineCheck:
        """The same pages under other parameters that decide, on which the features do not depend."""
        other = copy(self)
        other.parameters = other._deciding(p)
        return other

    @property
    def in_form(self) -> bool:
        """Whether they look alike on one site, and one says what its title says and the other does not."""
        return self.same_site and self.features.similarity >= ALIKE and self.features.gone > 0

    @property
    def forms(self) -> float:
        """The share of the site's pages that look like another one so, where both pages are of one."""
        return self._site.forms() if self._site and self.same_site else 0.0

    def judgement(self) -> Judgement:
        """What text and article say, the prose in them, and on one site the lines."""
        found, one, other = self._with_prose(self._by_text()), self._one, self._other
        if one.lines is None or other.lines is None or not self.same_site:
            return found
        if not found.duplicate and one.lines.headlines.isdisjoint(other.lines.headlines):
            return found  # lines can only make a copy of it under the same headline
        f = found.features
        told = compare_on_site(
            one.lines,
            other.lines,
            self._site,
            titles_alike=f.title >= _TITLES_ALIKE and not f.title_numbers,
            similarity=1.0 if one.body == other.body else f.similarity,
        )
        if told.ruling is Ruling.APART and found.duplicate:
            decision = f"{found.decision} But the common text may be a template, so the page passes. {told.sentence()}"
            return Judgement(f, duplicate=False, certain=False, decision=decision)
        if told.ruling is Ruling.COPY and not found.duplicate:
            decision = f"One page contains the other, under the same headline. {told.sentence()}"
            return Judgement(f, duplicate=True, certain=False, decision=decision)
        return found

    def likeness(self, found: Judgement) -> Likeness | None:
        """In which way pages are alike whose texts are not the same."""
        f, p, one, other = found.features, self.parameters, self._one, self._other
        if found.duplicate:
            return Likeness.RETITLED if f.title < p.retitled else Likeness.NEAR
        # What stands around short texts makes them differ in size: of two notices neither is an excerpt.
        told = f.smaller >= p.short or one.lines is None or other.lines is None
        if f.containment >= p.excerpt and TELLING <= f.similarity < p.least and told:
            return Likeness.EXCERPT
        same_title = (one.title, one.words) == (other.title, other.words) and one.title > 0
        return Likeness.SAME_TITLE if same_title else None

    def has_grown(self) -> bool:
        """Whether the new text holds the earlier one and more, though the articles in them are the same.

        So a thread grows of which the first post was taken for the article. Other teasers make no other page.
        """
        longer = self._one.whole > _GROWN * self._other.whole
        return longer and self.features.whole_containment >= self.parameters.excerpt

    def held(self) -> HeldProse:
        """What the earlier page holds of the new one's prose, where the new text is at hand."""
        p = self.parameters
        return HeldProse() if self._title is None else self._title.prose(p.shingle, p.bins, p.bits).held_by(self._other)

    def _with_prose(self, found: Judgement) -> Judgement:
        """Pages that share a listing and no prose are two articles, but for those that are nearly the same."""
        f = found.features
        if not found.duplicate or f.similarity >= _NEARLY or self._one.body == self._other.body:
            return found
        if not (held := self.held()).apart:
            return found
        decision = (
            f"{held.listing:.0%} of the common text is a listing (code or a table). The earlier page contains only "
            f"{held.prose:.0%} of the new page's prose. They are two articles."
        )
        return Judgement(f, duplicate=False, certain=False, decision=decision)

    def _carried(self, found: Judgement) -> Judgement:
        """Between sites no page is a copy of one that holds too little of it, however alike the rest is."""
        one, other, f = self._one, self._other, found.features
        if not found.duplicate or self.same_site:
            return found
        short = f.length < self.parameters.short
        needed = _CARRIED if short or _may_be_retold(one, other, f, self.parameters) else _CARRIED_RETITLED
        if f.carried >= needed:
            return found
        decision = f"The earlier page contains {f.carried:.0%} of this one. With such titles a copy needs {needed:.0%}."
        return Judgement(f, duplicate=False, certain=False, decision=decision)

    def _deciding(self, p: CascadeParameters) -> CascadeParameters:
        return p.on_catalogue() if self.forms >= p.catalogue else p

    def _by_text(self) -> Judgement:
        """What the whole texts say, or else the articles in them."""
        f, p, one, other = self.features, self.parameters, self._one, self._other
        if one.body == other.body and (one.article is None or one.article.shingles >= LEAST_ARTICLE):
            what = "articles on both pages" if one.article or other.article else "texts"
            return Judgement(f, True, True, f"The {what} are identical.")
        whole = self._carried(Judgement(f, *_decide(f, p)))
        if one.article is None and other.article is None:
            return whole
        f = compare(one.of_article(), other.of_article(), b"", self._common, p, title=self._title)
        article = self._carried(Judgement(f, *_decide(f, p)))
        if article.duplicate and not whole.duplicate:
            return Judgement(f, True, article.certain, f"Judged by the articles alone: {article.decision}")
        if whole.duplicate and one.article and other.article and f.similarity < _ARTICLES_APART:
            return Judgement(f, False, False, "The articles differ. Only the text around them is alike.")
        return article if f.similarity > whole.features.similarity else whole


def _may_be_retold(one: Sketch, other: Sketch, f: Features, p: CascadeParameters) -> bool:
    """Whether two pages have one title in two wordings, or none at all, or both texts are of what both titles say."""
    if f.title >= p.retitled if one.words and other.words else not (one.words or other.words):
        return True
    return bool(one.standing and other.standing) and not f.gone


def weights(p: CascadeParameters) -> dict[str, tuple[float, str]]:
    """Weight and meaning of each feature of the score."""
    return {
        "similarity": (1.0, f"Jaccard similarity of {p.shingle}-grams"),
        "form": (-p.by_site, "the common text may be a site's template: same site, or unknown site"),
        "gone": (-2 * p.by_gone, "each page has a title word that the other page lacks (0.5: only one page has)"),
        "same_title": (p.by_title, "the titles are identical, or a headline is common to both"),
        "reworded": (p.by_reworded, "long texts with other wording and the same numbers, so no template"),
        "numbers": (-p.by_numbers, "share of numbers that differ (counts less in a long text)"),
    }


def score(f: Features, p: CascadeParameters) -> float:
    """The sum that decides at middling similarity."""
    found: float = sum(weight * getattr(f, name) for name, (weight, _) in weights(p).items())
    return found


def _decide(f: Features, p: CascadeParameters) -> tuple[bool, bool, str]:
    """Whether the pages are duplicates, whether by similarity alone, and the rule that says so."""
    if f.left < _ENOUGH:
        return (
            False,
            False,
            "Most of the earlier page is boilerplate. Too little is left to compare.",
        )
    if f.length < p.short:
        copy = f.sentences == 1.0 and f.same_numbers and f.similarity >= p.short_least and not (f.gone and f.form)
        told = "every sentence of one page is in the other, with the same numbers" if copy else "the sentences differ"
        return copy, copy, f"In texts this short, one word makes another notice. Here {told}."
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
    if other_title and not (f.opening or f.reworded) and f.similarity < _NEARLY:
        return False, False, "The common text may be a template: the titles and the openings differ."
    duplicate = score(f, p) >= p.base
    return duplicate, duplicate and alone, f"The score {'reaches' if duplicate else 'is below'} {p.base:g}."


# ----------------------------------------------------------------------------------------------------------------------
# Whether anything can come of a comparison at all, told by the head and the min-wise part of an earlier sketch.
#
# Most pages that share a key with a new one share a sentence and nothing else. To see that takes a fiftieth of the time
# of unpacking a sketch and comparing all of it. What is refused here is what ``FineCheck`` would say nothing of: no
# test of the rules stands here a second time, only the least similarity that each of them asks for.


#: By how much less than is asked for is still compared: more than rounding may differ by from machine to machine.
_MARGIN = 1e-9


class Bound:
    """What it takes, by these parameters, for two pages to be alike in any way."""

    def __init__(self, p: CascadeParameters) -> None:
        self._bits = p.bits
        # To be copies under different titles, or to look alike on one site; nothing but one title adds to the score,
        # and the same numbers in other words where a site takes from it. On a catalogue all of these are higher.
        scored = p.base + min(0.0, p.by_site - p.by_reworded)
        least = min(ALIKE, p.certain, p.certain_apart, p.certain_on_site, scored, p.short_least)
        #: Similarity from which pages may be alike; the same of an excerpt, and its containment.
        self._bounds = least - _MARGIN, TELLING - _MARGIN, p.excerpt - _MARGIN

    def may_be_alike(self, one: Sketch, whole: bytes, old: bytes) -> bool:
        """Whether a new page ``one`` may be like the earlier one of the sketch ``old``, or in one form with it.

        ``whole``: see ``cascade_features.compare``. Pages read from HTML always may: lines and headlines are not seen
        here. So may one whose sketch cannot be read, which is for the comparison to say.
        """
        if one.lines or one.article:
            return True
        kernels = compiled.kernels
        if kernels is not None:
            ours = one.body, one.title, one.minwise, one.shingles, one.whole
            return kernels.may_be_alike(*ours, whole, old, self._bits, *self._bounds)
        if len(old) < HEAD.size:
            return True
        body, title, _, all, shingles, sentences, numbers, words = HEAD.unpack_from(old)
        if body == one.body or title == one.title > 0:
            return True
        end = HEAD.size + len(one.minwise)
        order = end + OPENING_BYTES + 4 * sentences + 2 * numbers + 3 * words
        if len(old) <= order or len(old) != order + 1 + 2 * old[order]:
            return True  # behind a text nothing follows the order of its sentences
        found = overlap(one, old[HEAD.size : end], shingles, all, whole, self._bits)
        least, telling, excerpt = self._bounds
        similarity = found.similarity
        return similarity >= least or (similarity >= telling and found.containment >= excerpt)


# ----------------------------------------------------------------------------------------------------------------------
# What the default method says of a page whose very bytes another page had: without reading them again.
#
# The two hold the same text, so all that can differ is what the state knows of the sites: what stands on many pages is
# no part of a text, and what is the form of a site makes no copies there. Where that might have changed, nothing is
# said.


def compared_again(known: Sketch, site: int, counts: SiteCounts) -> Comparison | None:
    """How a page on a site (its fingerprint, 0 if not known) compares to an earlier one with the same bytes.

    None where the page has to be read.
    """
    if known.article is not None and known.article.shingles < LEAST_ARTICLE:
        return None
    lines = known.lines
    asked = known.sentences.union(lines.lines, lines.headlines) if lines else known.sentences
    if counts.is_common(np.fromiter(asked, np.uint32, len(asked))).any():
        return None
    same_site = known.site == site > 0
    if lines and same_site and compare_again(lines, counts).ruling is Ruling.APART:
        return None
    return Comparison(1.0, 1.0, True, True, True, Likeness.IDENTICAL, same_site)


def sketch_again(known: Sketch, packed: bytes, site: int) -> bytes:
    """Its sketch; empty where that cannot be told: on another site, of one that is without some lines."""
    if known.site == site:
        return packed
    return replace(known, site=site).pack() if known.whole == known.shingles else b""
