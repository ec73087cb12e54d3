"""The default method."""

from __future__ import annotations

import struct
from collections.abc import Set
from typing import ClassVar

from scrapy_neardup.methods.base import IsCommon, Method, Parameters, nothing_is_common
from scrapy_neardup.methods.cascade.features import MEANINGS
from scrapy_neardup.methods.cascade.parameters import CascadeParameters
from scrapy_neardup.methods.cascade.reading import CORE_WORDS, TitleWords, Views, read
from scrapy_neardup.methods.cascade.rules import Bound, PairJudge, score, weights
from scrapy_neardup.methods.cascade.sketch import Article, Lines, Numbers, Sketch, pack_sketch, sketch_form
from scrapy_neardup.model import Comparison, Explanation, Feature, Fingerprint, Kind, Page, SiteCounts
from scrapy_neardup.text.marking import shared_sentences
from scrapy_neardup.text.normalize import normalize
from scrapy_neardup.text.tokens import core_words


class Cascade(Method):
    """The default method: a coarse filter finds candidates, a fine check decides.

    The idea comes from part 9 of the article 网页文本的排重算法: fingerprints of the core words of title, keywords and
    description rule out unrelated pages, and fingerprints of parts of the body decide about the rest. Differences:

    * Reposts often have another title. So the longest sentences and a few shingles of the body are keys too, and the
      coarse filter misses nothing that the fine check would accept.
    * The article compares segments for equality, and one edited word breaks that. Here a sketch of character n-grams
      estimates similarity and containment.
    * At middling similarity an edited repost looks like a form filled in for another product. Title words
      (``TitleWords``), numbers and the sites tell them apart: see docs/en/how-it-works/cascade.md.
    """

    name: ClassVar[str] = "cascade"
    version: ClassVar[int] = 6
    parameters_type: ClassVar[type[Parameters]] = CascadeParameters
    parameters: CascadeParameters
    variant_below: ClassVar[float] = 0.9

    def __init__(self, parameters: CascadeParameters | None = None) -> None:
        super().__init__(parameters)
        self._bound = Bound(self.parameters)
        self._form = sketch_form(self.parameters)
        #: Bytes of a min-wise sketch.
        self._minwise = self.parameters.bins * self.parameters.bits // 8

    def fingerprint(self, page: Page) -> Fingerprint:
        return self.fingerprint_own(page, nothing_is_common)

    def fingerprint_own(self, page: Page, is_common: IsCommon, site: SiteCounts | None = None) -> Fingerprint:
        p, hashes, form = self.parameters, self.hashes, self._form
        # Without counts of the site, all boilerplate counts as the site's.
        found = read(page, is_common, site.is_own if site else is_common, p, hashes)
        text, core, is_partial = found.all, found.core, found.is_article_partial
        of_all, of_whole = text.own.sketch(form), text.whole.sketch(form)
        of_core = of_all if core is text or core.own.has_lines_of(text.own) else core.own.sketch(form)
        has_foreign = text.own is not text.whole and text.own.size < text.site_free.size
        title = TitleWords(found.title, core.own.without(found.headings) if found.headings else core.own)
        packed = pack_sketch(
            (
                hashes.of(f"{core.whole.letters}\n{found.quotes}") if found.quotes else core.whole.body,
                found.title_hash,
                found.site_hash,
                found.number_hash,
                of_whole.shingles,
                of_all.shingles,
            ),
            of_all.minwise,
            # In a short page every word counts.
            self._all_sentences(found) if of_all.shingles < p.short else of_all.sentences,
            Numbers.encode(core.own, of_core, of_all.shingles),
            title.encode(),
            of_core.ends,
            Lines.encode(text.own, found.headlines, found.links) if page.reader else b"",
            Article.encode(of_core) if is_partial else b"",
        )
        cores = [("title", found.title_core)]
        if page.keywords or page.description:
            about = normalize(" ".join((*page.keywords, page.description)), simplified=p.simplified)
            cores.append(("about", core_words(about, CORE_WORDS)))
        # A single word says too little.
        keys = [hashes.place(" ".join((family, *sorted(core)))) for family, core in cores if len(core) > 1]
        # The text around the article may have the smallest hashes, and differs from site to site. But the article
        # may have been found differently too, so both give keys.
        keys += of_core.longest[: p.sentence_keys] + of_core.keys
        if is_partial:
            keys += [key for key in of_all.keys if key not in keys]
        return Fingerprint(
            tuple(keys),
            packed,
            found.counted,
            of_whole.minwise if text.own is not text.whole else b"",
            text.own.size,
            site,
            found.boilerplate,
            Article.encode(text.site_free.sketch(form)) if has_foreign else b"",
            title,
            len(found.quotes),
        )

    def _all_sentences(self, found: Views) -> bytes:
        """Pack all judged sentences; all quoted text counts as one, as equal answers to two messages differ."""
        quotes = [self.hashes.short(found.quotes)] if found.quotes else []
        each = sorted({*[*quotes, *found.all.own.line_hashes().tolist()][:255]})
        return struct.pack(f">{len(each)}I", *each)

    def may_be_alike(self, new: Fingerprint, old: bytes) -> bool:
        return self._bound.may_be_alike(self._unpack(new.sketch), new.whole, old)

    def compare(self, new: Fingerprint, old: bytes, common: Set[int]) -> Comparison:
        pair = self.judge(new, old, common)
        duplicate, identical, other_title = pair.decision().duplicate, False, False
        similarity, containment, kind = 1.0, 1.0, Kind.IDENTICAL if duplicate else None
        if pair.same_article:
            identical = pair.new.title == pair.earlier.title and not (pair.has_grown() or pair.lists_other_links)
            other_title = pair.same_site and not identical and pair.has_other_title
        else:
            similarity, containment = pair.features.similarity, pair.features.containment
            kind = pair.kind(duplicate=duplicate)
        certain = duplicate and pair.is_certain
        return Comparison(similarity, containment, duplicate, certain, identical, kind, pair.in_form, other_title)

    def is_minor_update(self, new: Fingerprint, delivered: bytes) -> bool:
        return self.judge(new, delivered, frozenset()).is_minor_update()

    def length(self, sketch: bytes) -> int:
        """Number of different shingles of the article, or of all own text: about the number of letters."""
        return self._unpack(sketch).article_view().shingles

    def explain(self, new: Fingerprint, old: bytes, common: Set[int]) -> Explanation:
        pair = self.judge(new, old, common)
        p, features, site = pair.parameters, pair.features, pair.site_evidence
        by_name = weights(p)
        shown = [
            Feature(name, float(getattr(features, name)), by_name.get(name, 0.0), MEANINGS[name]) for name in MEANINGS
        ]
        shown += [
            Feature("forms", pair.share_of_forms, 0.0, "share of the site's pages that look alike under other titles"),
            Feature("one_number", float(pair.has_one_number), 0.0, "1 if the URLs have the number of one article"),
        ]
        if site is not None:
            shown += [
                Feature("own_shared", site.shared, 0.0, "letters of common lines that no third page of the site has"),
                Feature("own_different", site.different_share, 0.0, "share of such lines that one page lacks"),
            ]
        return Explanation(tuple(shown), score(features, p), p.base, pair.decision().sentence)

    def shared(self, page: Page, old: bytes, limit: int = 3) -> tuple[str, ...]:
        known, p = self._unpack(old).sentences, self.parameters
        return shared_sentences(page.text, self.hashes.shorts, known, p.min_sentence, limit, simplified=p.simplified)

    def judge(self, new: Fingerprint, old: bytes, common: Set[int]) -> PairJudge:
        """Return the comparison of a new page with a sketch of the state, undecided."""
        return PairJudge(self.parameters, new, self._unpack(new.sketch), self._unpack(old), common)

    def _unpack(self, packed: bytes) -> Sketch:
        return Sketch.unpack(packed, self._minwise)
