"""The default method: a coarse filter that finds candidates, a fine check that decides.

The idea is that of the article "网页文本的排重算法", part 9: fingerprints of the core words of title,
keywords and description rule out the many pages that have nothing to do with this one, fingerprints of
the body's parts decide among the few that are left. Where it departs from the article, and why:

* A repost often has another title. So the longest sentences and a few shingles of the body, chosen by
  smallest hash, are keys as well, and the coarse filter misses nothing that the fine check would take.
* The article compares its segments for equality, which one edited word breaks. Here the segments are
  character n-grams in a sketch that estimates their Jaccard similarity and containment.
* Sentences that stand on many pages are no part of what a page says: they are left out of keys and comparison.
* At middling similarity an edited repost and a form filled in for another product look alike. There a score
  decides, of which similarity is the first part: see ``CascadeParameters`` and docs/cascade.md.
* Of a page read from HTML two views are compared, all of its prose and the article in it. Between sites either may say
  copy; within a site the lines and headlines that are not the site's must agree (see ``cascade_site``).
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing import fingerprint64, mix64
from scrapy_neardup.methods.base import IsCommon, Method, nothing_is_common
from scrapy_neardup.methods.cascade_features import Features, compare
from scrapy_neardup.methods.cascade_lines import Lines
from scrapy_neardup.methods.cascade_parameters import CascadeParameters
from scrapy_neardup.methods.cascade_reading import View, Views, read
from scrapy_neardup.methods.cascade_site import Ruling, compare_on_site
from scrapy_neardup.methods.cascade_sketch import Article, Sketch
from scrapy_neardup.methods.evidence import shared_sentences, short_fingerprint
from scrapy_neardup.methods.features import hashed
from scrapy_neardup.methods.minwise import sketch
from scrapy_neardup.methods.parameters import Parameters
from scrapy_neardup.model import Comparison, Explanation, Feature, Fingerprint, Likeness, Page, SiteCounts
from scrapy_neardup.text.lexicon import core_words
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.shingles import distinct, shingles
from scrapy_neardup.text.titles import article_title
from scrapy_neardup.text.tokens import has_unspaced, numbers, vocabulary, words

#: The similarity from which containment means anything: of texts less alike, one is more than six times as long as the
#: other, and what the sketch errs by would be more than what is to be measured.
_TELLING = 0.12
#: The share of an earlier page's shingles that must be its own: what is left once the others are taken off is as
#: uncertain as all of them, and with too little of it nothing can be told but that two texts are the same.
_ENOUGH = 0.5
#: Two articles less alike than this are no copies, whatever stands around them.
_ARTICLES_APART = 0.3
#: Different shingles that an article must have, without boilerplate, for its letters to be evidence by themselves.
_LEAST_ARTICLE = 40
#: A text that is longer than this many times the earlier one, and holds that, has grown.
_GROWN = 1.2
#: Titles more alike than this, and with the same numbers, are one title in two spellings.
_TITLES_ALIKE = 0.6


@dataclass(frozen=True, slots=True)
class _Judgement:
    """What the comparison of two sketches came to."""

    features: Features
    duplicate: bool
    certain: bool
    decision: str


class Cascade(Method):
    """Core words, long sentences and rare shingles find; shingles, title, vocabulary and numbers decide."""

    name: ClassVar[str] = "cascade"
    version: ClassVar[int] = 1
    parameters_type: ClassVar[type[Parameters]] = CascadeParameters
    parameters: CascadeParameters
    threshold: ClassVar[str] = "base"
    sweep: ClassVar[tuple[float, ...]] = (0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75)
    witness_below: ClassVar[float] = 0.9

    def fingerprint(self, page: Page) -> Fingerprint:
        return self.guarded(page, nothing_is_common)

    def guarded(self, page: Page, is_common: IsCommon, site: SiteCounts | None = None) -> Fingerprint:
        p = self.parameters
        found = read(page, is_common, p)
        text, core = found.all, found.core
        grams = distinct(shingles(text.whole, p.shingle))
        whole, count = b"", len(grams)
        if len(text.own) < len(text.whole):
            whole = sketch(grams, p.bins, p.bits)
            grams = distinct(shingles(text.own, p.shingle))
        short = len(grams) < p.short
        characters, spaced = vocabulary(core.text)
        used = np.concatenate((mix64(characters), hashed(spaced)))
        packed = Sketch(
            body=fingerprint64(core.whole),
            title=short_fingerprint(letters(self._normalize(article_title(page.title)))),
            site=fingerprint64(page.site) & 0xFFFF if page.site else 0,
            whole=count,
            shingles=len(grams),
            minwise=sketch(grams, p.bins, p.bits),
            vocabulary=sketch(used, p.vocabulary_bins, p.vocabulary_bits),
            # Of a short page all, as every word of it counts.
            sentences=frozenset(
                map(short_fingerprint, text.lines[:255] if short else text.longest(p.min_sentence, p.max_sentences))
            ),
            numbers=_short(numbers(core.text), p.max_numbers),
            words=_short(found.title, p.max_title_words),
            lines=Lines.of(text.lines, found.headlines) if page.reader else None,
            article=self._article(core) if found.has_part else None,
        ).pack()
        keys = tuple(dict.fromkeys(self._keys(page, found)))
        return Fingerprint(keys, packed, found.counted, whole, len(text.own), site, found.boilerplate)

    def _article(self, core: View) -> Article:
        p = self.parameters
        grams = distinct(shingles(core.own, p.shingle))
        return Article(len(grams), sketch(grams, p.bins, p.bits))

    def _keys(self, page: Page, found: Views) -> list[int]:
        p = self.parameters
        families = p.keys.split(",")
        about = (*(page.keywords if "keywords" in families else ()), page.description * ("description" in families))
        keys = _core_key("title", found.title, p.core_words) if "title" in families else []
        keys += _core_key("about", words(self._normalize(" ".join(about))), p.core_words)
        if "sentences" in families:
            keys += map(fingerprint64, found.core.longest(p.min_sentence, p.sentence_keys))
        if "shingles" in families:
            # Of all that is judged, what stands around the article may have the smallest hashes, and differs from site
            # to site; but what was taken for the article may differ too.
            keys += self._shingle_keys(found.core.own)
            keys += self._shingle_keys(found.all.own) if found.has_part else []
        return keys

    def _shingle_keys(self, own: str) -> list[int]:
        p = self.parameters
        length = p.key_shingle if has_unspaced(own) else p.key_shingle_spaced
        return _smallest(shingles(own, length), p.shingle_keys)

    def compare(self, new: Fingerprint, old: bytes, common: Set[int]) -> Comparison:
        one, other = self._unpack(new.sketch), self._unpack(old)
        found = self._judge(new, one, other, common)
        f = found.features
        same_site = one.site == other.site > 0
        if one.body == other.body:
            likeness = Likeness.IDENTICAL if found.duplicate else None
            same = one.title == other.title and not self._has_grown(new, one, other, common)
            return Comparison(1.0, 1.0, found.duplicate, found.certain, same, likeness, same_site)
        return Comparison(
            f.similarity,
            f.containment,
            found.duplicate,
            found.certain,
            identical=False,
            likeness=self._likeness(
                f,
                found.duplicate,
                same_title=bool(one.words) and (one.title, one.words) == (other.title, other.words),
                framed=one.lines is not None and other.lines is not None,
            ),
            same_site=same_site,
        )

    def _has_grown(self, new: Fingerprint, one: Sketch, other: Sketch, common: Set[int]) -> bool:
        """Whether the new text holds the earlier one and more, though the articles in them are the same.

        So a thread grows of which the first post was taken for the article. Other teasers make no other page.
        """
        if one.whole <= _GROWN * other.whole:
            return False
        return self._features(new, one, other, common).whole_containment >= self.parameters.excerpt

    def explain(self, new: Fingerprint, old: bytes, common: Set[int]) -> Explanation:
        one, other = self._unpack(new.sketch), self._unpack(old)
        found = self._judge(new, one, other, common)
        f = found.features
        features = (
            *(Feature(name, getattr(f, name), weight, meaning) for name, (weight, meaning) in self._weights().items()),
            Feature("containment", f.containment, 0.0, "share of the smaller page that the other one holds"),
            Feature("whole", f.whole, 0.0, "similarity with boilerplate, at least"),
            Feature("whole_containment", f.whole_containment, 0.0, "containment with boilerplate, at least"),
            Feature("sentences", f.sentences, 0.0, "share of sentences of one page that stand in the other"),
            Feature("left", f.left, 0.0, "share of the earlier sketch that is no boilerplate"),
            Feature("length", f.length, 0.0, "different shingles of the larger page"),
        )
        return Explanation(features, self._score(f), self.parameters.base, found.decision)

    def _judge(self, new: Fingerprint, one: Sketch, other: Sketch, common: Set[int]) -> _Judgement:
        """What text and article say, and on one site the lines."""
        found = self._by_text(new, one, other, common)
        if one.lines is None or other.lines is None or not one.site == other.site > 0:
            return found
        f = found.features
        alike = f.title >= _TITLES_ALIKE and not f.title_numbers
        similarity = 1.0 if one.body == other.body else f.similarity
        told = compare_on_site(
            one.lines, other.lines, new.site or _NOTHING_KNOWN, titles_alike=alike, similarity=similarity
        )
        if told.ruling is Ruling.APART and found.duplicate:
            decision = f"{found.decision} But that may be the form of the site: they are kept apart. {told.sentence()}"
            return _Judgement(f, duplicate=False, certain=False, decision=decision)
        if told.ruling is Ruling.COPY and not found.duplicate:
            decision = f"One holds the other, under the same headline. {told.sentence()}"
            return _Judgement(f, duplicate=True, certain=False, decision=decision)
        return found

    def _by_text(self, new: Fingerprint, one: Sketch, other: Sketch, common: Set[int]) -> _Judgement:
        """What the whole texts say, or else the articles in them."""
        f = self._features(new, one, other, common)
        if one.body == other.body and (one.article is None or one.article.shingles >= _LEAST_ARTICLE):
            what = "articles in them" if one.article or other.article else "texts"
            return _Judgement(f, True, True, f"The {what} are the same, letter by letter.")
        whole = _Judgement(f, *self._decide(f))
        if one.article is None and other.article is None:
            return whole
        f = compare(
            one.of_article(), other.of_article(), b"", common, self.parameters.bits, self.parameters.vocabulary_bits
        )
        article = _Judgement(f, *self._decide(f))
        if article.duplicate and not whole.duplicate:
            return _Judgement(f, True, article.certain, f"Of the articles in them: {article.decision}")
        if whole.duplicate and one.article and other.article and f.similarity < _ARTICLES_APART:
            return _Judgement(f, False, False, "The articles differ; what is alike stands around them.")
        return article if f.similarity > whole.features.similarity else whole

    def _weights(self) -> dict[str, tuple[float, str]]:
        p = self.parameters
        return {
            "similarity": (1.0, f"Jaccard similarity of {p.shingle}-grams"),
            "title": (p.by_title, "Jaccard similarity of the title words"),
            "title_numbers": (-p.by_title_numbers, "both titles hold numbers, and not the same"),
            "vocabulary": (-p.by_vocabulary, "Jaccard similarity of the vocabularies"),
            "numbers": (-p.by_numbers, "share of numbers that differ, less in a long text"),
            "site": (-p.by_site, "the same site (0.5: not known)"),
        }

    def _score(self, f: Features) -> float:
        score: float = sum(weight * getattr(f, name) for name, (weight, _) in self._weights().items())
        return score

    def _decide(self, f: Features) -> tuple[bool, bool, str]:
        """Whether the pages are duplicates, whether by similarity alone, and the rule that says so."""
        p = self.parameters
        if f.left < _ENOUGH:
            return (
                False,
                False,
                "Most of what is known of the earlier page is boilerplate: too little is left to compare.",
            )
        if f.length < p.short:
            copy = f.sentences == 1.0 and f.same_numbers and f.similarity >= p.short_least
            told = "every sentence of one stands in the other, with the same numbers" if copy else "they differ"
            return copy, copy, f"Of texts this short one word makes another notice: {told}."
        if f.similarity >= p.certain and (f.whole >= p.certain_least or f.whole_containment >= p.excerpt):
            return True, True, f"The similarity reaches {p.certain:g}, which is enough by itself."
        if f.whole < p.least:
            return False, False, f"The whole texts, boilerplate and all, are less than {p.least:g} alike."
        duplicate = self._score(f) >= p.base
        return duplicate, False, f"The score {'reaches' if duplicate else 'is below'} {p.base:g}."

    def _likeness(self, f: Features, duplicate: bool, *, same_title: bool, framed: bool) -> Likeness | None:
        p = self.parameters
        if duplicate:
            return Likeness.RETITLED if f.title < p.retitled else Likeness.NEAR
        # What stands around short texts makes them differ in size: of two notices neither is an excerpt.
        told = f.smaller >= p.short or not framed
        if f.containment >= p.excerpt and _TELLING <= f.similarity < p.least and told:
            return Likeness.EXCERPT
        return Likeness.SAME_TITLE if same_title else None

    def shared(self, page: Page, old: bytes, limit: int = 3) -> tuple[str, ...]:
        known = self._unpack(old).sentences
        p = self.parameters
        return shared_sentences(
            page.text,
            lambda sentence: short_fingerprint(sentence) in known,
            p.min_sentence,
            limit,
            simplified=p.simplified,
        )

    def _features(self, new: Fingerprint, one: Sketch, other: Sketch, common: Set[int]) -> Features:
        return compare(one, other, new.whole, common, self.parameters.bits, self.parameters.vocabulary_bits)

    def _normalize(self, text: str) -> str:
        return normalize(text, simplified=self.parameters.simplified)

    def _unpack(self, packed: bytes) -> Sketch:
        p = self.parameters
        return Sketch.unpack(packed, p.bins * p.bits // 8, p.vocabulary_bins * p.vocabulary_bits // 8)


class _NothingKnown:
    """Of a site, where there is no state to ask."""

    def pages(self) -> int:
        return 0

    def stood_on(self, sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint16]:
        return np.zeros(len(sentences), np.uint16)


_NOTHING_KNOWN = _NothingKnown()


def _core_key(family: str, found: list[str], count: int) -> list[int]:
    """One key of the set of core words; two words at least, or the key would say nothing."""
    core = sorted(core_words(found, count))
    return [fingerprint64(f"{family} {' '.join(core)}")] if len(core) > 1 else []


def _smallest(hashes: npt.NDArray[np.uint64], count: int) -> list[int]:
    """The smallest different hashes: two similar sets are likely to have some of them in common."""
    few = distinct(np.partition(hashes, 4 * count)[: 4 * count] if len(hashes) > 4 * count else hashes)
    if len(few) < count:  # a text that repeats itself
        few = distinct(hashes)
    return [int(value) for value in few[:count]]


def _short(found: list[str], count: int) -> frozenset[int]:
    """16-bit hashes of the different strings; of more than ``count`` those with the smallest fingerprints."""
    smallest = sorted((fingerprint64(one), one.isdigit()) for one in set(found))[:count]
    return frozenset(whole & 0xFFFE | digits for whole, digits in smallest)
