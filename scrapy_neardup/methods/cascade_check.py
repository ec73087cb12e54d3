"""The fine check of the default method: what two sketches have in common, and whether that makes a copy."""

from __future__ import annotations

from collections.abc import Set
from copy import copy
from dataclasses import dataclass

from scrapy_neardup.methods.cascade_features import Features, compare
from scrapy_neardup.methods.cascade_parameters import CascadeParameters
from scrapy_neardup.methods.cascade_prose import HeldProse
from scrapy_neardup.methods.cascade_site import Ruling, compare_on_site
from scrapy_neardup.methods.cascade_sketch import Sketch
from scrapy_neardup.model import Fingerprint, Likeness

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
