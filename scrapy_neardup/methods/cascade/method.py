"""The default method: a coarse filter that finds candidates, a fine check that decides.

The idea is that of the article "网页文本的排重算法", part 9: fingerprints of the core words of title,
keywords and description rule out the many pages that have nothing to do with this one, fingerprints of
the body's parts decide among the few that are left. Where it departs from the article, and why:

* A repost often has another title. So the longest sentences and a few shingles of the body, chosen by
  smallest hash, are keys as well, and the coarse filter misses nothing that the fine check would take.
* The article compares its segments for equality, which one edited word breaks. Here the segments are
  character n-grams in a sketch that estimates their Jaccard similarity and containment.
* Sentences that stand on many pages are no part of what a page says: they are left out of keys and comparison.
* At middling similarity an edited repost and a form filled in for another product look alike. What tells them apart
  is whether each says what its own title says and the other does not (see ``TitleWords``), and whether they are of one
  site, where what they share may be its form: see ``CascadeParameters`` and docs/en/how-it-works/cascade.md.
* Of a page read from HTML two views are compared, all of its prose and the article in it. Between sites either may say
  copy; within a site the lines and headlines that are not the site's must agree (see ``cascade_site``).
"""

from __future__ import annotations

from collections.abc import Set
from functools import lru_cache
from typing import ClassVar

from scrapy_neardup.methods.base import IsCommon, Method, Parameters, nothing_is_common
from scrapy_neardup.methods.cascade.features import TitleWords
from scrapy_neardup.methods.cascade.parameters import CascadeParameters
from scrapy_neardup.methods.cascade.reading import Views, read
from scrapy_neardup.methods.cascade.rules import Bound, FineCheck, compared_again, score, sketch_again, weights
from scrapy_neardup.methods.cascade.sketch import Lines, Numbers, Order, Shingles, Sketch, article_of, packed_sketch
from scrapy_neardup.methods.evidence import shared_sentences
from scrapy_neardup.model import Comparison, Explanation, Feature, Fingerprint, Likeness, Page, SiteCounts
from scrapy_neardup.text.lexicon import core_words
from scrapy_neardup.text.normalize import normalize
from scrapy_neardup.text.sentences import cut
from scrapy_neardup.text.tokens import words


class Cascade(Method):
    """Core words, long sentences and rare shingles find; shingles, words of the titles, order and numbers decide."""

    name: ClassVar[str] = "cascade"
    version: ClassVar[int] = 1
    parameters_type: ClassVar[type[Parameters]] = CascadeParameters
    parameters: CascadeParameters
    threshold: ClassVar[str] = "base"
    sweep: ClassVar[tuple[float, ...]] = (0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75)
    witness_below: ClassVar[float] = 0.9

    def __init__(self, parameters: CascadeParameters | None = None) -> None:
        super().__init__(parameters)
        self._bound = Bound(self.parameters)
        self._families = frozenset(self.parameters.families)

    def fingerprint(self, page: Page) -> Fingerprint:
        return self.guarded(page, nothing_is_common)

    def guarded(self, page: Page, is_common: IsCommon, site: SiteCounts | None = None) -> Fingerprint:
        p, hashes = self.parameters, self.hashes
        # Where nothing is known of the site, boilerplate is taken for its own.
        found = read(page, is_common, site.is_own if site else is_common, p, hashes)
        text, core = found.all, found.core
        of_all = Shingles.of(text.own, p)
        of_core = of_all if core is text or core.own.letters == text.own.letters else Shingles.of(core.own, p)
        own = of_all.article
        whole, unframed = own, None
        if text.own is not text.whole:
            whole = article_of(text.whole, p)
            if text.own.size < text.unframed.size:
                unframed = article_of(text.unframed, p)
        most = max(p.sentence_keys, p.max_sentences)
        longest_of_core = core.own.longest(p.min_sentence, most)
        longest = longest_of_core if core is text else text.own.longest(p.min_sentence, most)
        title = TitleWords(found.title, core.own.without(found.headings) if found.headings else core.own)
        packed = packed_sketch(
            (
                hashes.of(f"{core.whole.letters}\n{found.quotes}") if found.quotes else core.whole.hash(),
                hashes.short(found.title_letters) if found.title_letters else 0,
                hashes.short(page.site) if page.site else 0,
                whole.shingles,
                own.shingles,
            ),
            own.minwise,
            of_core.opening,
            # Of a short page all, as every word of it counts.
            self._all_sentences(found) if own.shingles < p.short else _halves(longest[: p.max_sentences]),
            Numbers.packed(core.own, own.shingles, p.max_numbers),
            title.packed(p.max_title_words),
            Order.packed(core.own),
            Lines.packed(text.own, found.headlines) if page.reader else b"",
            of_core.article.pack() if found.has_part else b"",
        )
        keys = self._about_keys(page, found)
        if "sentences" in self._families:
            keys += longest_of_core[: p.sentence_keys]
        if "shingles" in self._families:
            # Of all that is judged, what stands around the article may have the smallest hashes, and differs from site
            # to site; but what was taken for the article may differ too.
            keys += of_core.keys
            keys += of_all.keys if found.has_part else []
        return Fingerprint(
            tuple(dict.fromkeys(keys)),
            packed,
            found.counted,
            whole.minwise if whole is not own else b"",
            text.own.size,
            site,
            found.boilerplate,
            unframed.pack() if unframed else b"",
            title,
            len(found.quotes),
        )

    def _all_sentences(self, found: Views) -> frozenset[int]:
        """Those of all that is judged. What is quoted counts as one: to say the same of two messages is two things."""
        quotes = [self.hashes.short(found.quotes)] if found.quotes else []
        return frozenset([*quotes, *found.all.own.shorts().tolist()][:255])

    def _about_keys(self, page: Page, found: Views) -> list[int]:
        """Those of title, keywords and description."""
        families = self._families
        about = (*(page.keywords if "keywords" in families else ()), page.description * ("description" in families))
        keys = self._core_key("title", found.title) if "title" in families else []
        return keys + self._core_key("about", words(self._normalize(" ".join(about))))

    def _core_key(self, family: str, found: list[str]) -> list[int]:
        """One key of the set of core words; two words at least, or the key would say nothing."""
        core = sorted(core_words(found, self.parameters.core_words))
        return [self.hashes.place(f"{family} {' '.join(core)}")] if len(core) > 1 else []

    def may_be_alike(self, new: Fingerprint, old: bytes) -> bool:
        p = self.parameters
        return self._bound.may_be_alike(_unpacked_last(new.sketch, p.bins * p.bits // 8), new.whole, old)

    def compare(self, new: Fingerprint, old: bytes, common: Set[int]) -> Comparison:
        p = self.parameters
        one, other = _unpacked_last(new.sketch, p.bins * p.bits // 8), self._unpack(old)
        check = FineCheck(p, new, one, other, common)
        found = check.judgement()
        if one.body == other.body:
            likeness = Likeness.IDENTICAL if found.duplicate else None
            same = one.title == other.title and not check.has_grown()
            return Comparison(1.0, 1.0, found.duplicate, found.certain, same, likeness, check.same_site, check.in_form)
        return Comparison(
            found.features.similarity,
            found.features.containment,
            found.duplicate,
            found.certain,
            identical=False,
            likeness=check.likeness(found),
            same_site=check.same_site,
            in_form=check.in_form,
        )

    def carried(self, title: TitleWords) -> str:
        words, text = title.made_of
        return "\n".join(words) + "\n\n" + text

    def restored(self, carried: str) -> TitleWords:
        title, _, told = carried.partition("\n\n")
        return TitleWords(title.split("\n") if title else [], cut(told.split("\n") if told else [], self.hashes))

    def again(self, sketch: bytes, site: str, counts: SiteCounts) -> tuple[Comparison, bytes] | None:
        known, here = self._unpack(sketch), self.hashes.short(site) if site else 0
        comparison = compared_again(known, here, counts)
        return None if comparison is None else (comparison, sketch_again(known, sketch, here))

    def length(self, sketch: bytes) -> int:
        """Different shingles of the article, or of all that is no boilerplate: about as many as letters."""
        return self._unpack(sketch).of_article().shingles

    def explain(self, new: Fingerprint, old: bytes, common: Set[int]) -> Explanation:
        check = FineCheck(self.parameters, new, self._unpack(new.sketch), self._unpack(old), common)
        p, found, held = check.parameters, check.judgement(), check.held()
        f = found.features
        features = (
            *(Feature(name, getattr(f, name), weight, meaning) for name, (weight, meaning) in weights(p).items()),
            Feature("title", f.title, 0.0, "Jaccard similarity of the title words"),
            Feature("opening", float(f.opening), 0.0, "1 if the opening of one page occurs in the other"),
            Feature("containment", f.containment, 0.0, "share of the smaller page that the other contains"),
            Feature("whole", f.whole, 0.0, "similarity with boilerplate (lower bound)"),
            Feature("whole_containment", f.whole_containment, 0.0, "containment with boilerplate (lower bound)"),
            Feature("sentences", f.sentences, 0.0, "share of one page's sentences that the other contains"),
            Feature("prose", held.prose, 0.0, "share of the new page's prose in the other page (1 if it has little)"),
            Feature("listing", held.listing, 0.0, "share of the common text that is a listing: code or a table"),
            Feature("left", f.left, 0.0, "share of the earlier sketch that is not boilerplate"),
            Feature("forms", check.forms, 0.0, "share of the site's pages that look alike under other titles"),
            Feature("length", f.length, 0.0, "number of different shingles of the larger page"),
        )
        return Explanation(features, score(f, p), p.base, found.decision)

    def shared(self, page: Page, old: bytes, limit: int = 3) -> tuple[str, ...]:
        known = self._unpack(old).sentences
        p = self.parameters
        return shared_sentences(
            page.text,
            lambda sentence: self.hashes.short(sentence) in known,
            p.min_sentence,
            limit,
            simplified=p.simplified,
        )

    def _normalize(self, text: str) -> str:
        return normalize(text, simplified=self.parameters.simplified)

    def _unpack(self, packed: bytes) -> Sketch:
        p = self.parameters
        return Sketch.unpack(packed, p.bins * p.bits // 8)


@lru_cache(maxsize=1)
def _unpacked_last(packed: bytes, minwise: int) -> Sketch:
    """A sketch that is held against one earlier page after the other."""
    return Sketch.unpack(packed, minwise)


def _halves(found: list[int]) -> set[int]:
    """The lower 32 bits of hashes: enough to know a sentence among those of a page."""
    return {one & 0xFFFFFFFF for one in found}
