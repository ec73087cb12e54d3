"""The features of cascade: how much two pages share, as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import cached_property
from itertools import compress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scrapy_neardup.methods.cascade.parameters import FIXED, CascadeParameters
from scrapy_neardup.methods.cascade.sketch import (
    IN_TEXT,
    NUMBER,
    OPENING_BITS,
    SHORT,
    Article,
    Sketch,
    order_hashes,
    take_ends,
)
from scrapy_neardup.text.characters import has_unspaced
from scrapy_neardup.text.prose import LineKind, classify_lines
from scrapy_neardup.text.sentences import SegmentedText, digits
from scrapy_neardup.text.shingles import distinct, entries, jaccard, shingles, sketch, trace
from scrapy_neardup.text.tokens import has_spaced_word, spaced_words


class SharedProse(NamedTuple):
    """The parts of a new page's text that an earlier page has too. Defaults: too little prose to tell.

    ``prose``: share of the new page's prose in the earlier page. ``listing``: share of listings in the common text.
    ``is_separate``: two articles around one listing.
    """

    prose: float = 1.0
    listing: float = 0.0
    is_separate: bool = False


class _SketchOrigins(NamedTuple):
    """A min-wise sketch, and for each traced entry its bin, its value and the kind of its sentence."""

    sketch: bytes
    shingles: int
    bins: npt.NDArray[np.intp]
    values: npt.NDArray[np.uint8]
    of_prose: npt.NDArray[np.bool_]
    of_listing: npt.NDArray[np.bool_]


class Prose:
    """Compares the prose of a new page with earlier pages.

    Two authors may print the same program, log or table, each with an article around it. By letters such pages are
    alike, but they are two articles. For each entry of the new page's min-wise sketch the sentence is known, so the
    share of its prose in the earlier page can be estimated, over all of both pages and without more bytes in the state.
    """

    def __init__(self, own: SegmentedText, sketch: tuple[int, int, int]) -> None:
        self._own = own
        self._sketch = sketch
        self._kinds = classify_lines(own.sentences, own.lines)
        self._is_prose = [kind is LineKind.PROSE for kind in self._kinds]

    def compare(self, old: Sketch) -> SharedProse:
        """Estimate how much of the prose an earlier page has."""
        if sum(self._is_prose) < FIXED.own_sentences:
            return SharedProse()
        ours, bits = self._origins, self._sketch[2]
        if ours.of_prose.sum() < FIXED.prose_entries:
            return SharedProse()
        equal = entries(old.minwise, bits)[ours.bins] == ours.values
        alike = jaccard(ours.sketch, old.minwise, bits)
        in_both = alike / (1.0 + alike) * (ours.shingles + old.shingles)
        # Shared text has the same share of equal entries in every part of the page.
        parts = slice(None), ours.of_prose, ours.of_listing
        of_all, of_prose, of_listing = (_share_beyond_chance(equal[part], bits) for part in parts)
        if not of_all:
            return SharedProse(prose=0.0)
        prose = min(1.0, of_prose / of_all * in_both / ours.shingles)
        listing = min(1.0, of_listing / of_all * float(ours.of_listing.mean()))
        theirs = old.shingles - in_both
        may_be_separate = (
            prose <= FIXED.little_prose and listing >= FIXED.mostly_listing and theirs >= FIXED.own_letters
        )
        return SharedProse(prose, listing, may_be_separate and self._has_other_sentences(old))

    def _has_other_sentences(self, old: Sketch) -> bool:
        """Whether both pages have prose, and no kept sentence of it is in both."""
        if sum(map(len, compress(self._own.lines, self._is_prose))) < FIXED.own_letters:
            return False
        there, here = set(old.order.sentences), order_hashes(self._own)
        return there.isdisjoint(compress(here, self._is_prose)) and len(there.difference(here)) >= FIXED.own_sentences

    @cached_property
    def _origins(self) -> _SketchOrigins:
        length, bins, bits = self._sketch
        hashes = shingles(self._own.letters, length, self._own.hashes)
        full, places, values = trace(hashes, bins, bits)
        ends = np.cumsum(list(map(len, self._own.lines)), dtype=np.intp)
        sentence_of = ends.searchsorted(places, side="right")
        is_prose, is_listing = (
            np.array([kind is one for kind in self._kinds]) for one in (LineKind.PROSE, LineKind.LISTING)
        )
        return _SketchOrigins(
            sketch(hashes, bins, bits),
            len(distinct(hashes)),
            full,
            values,
            is_prose[sentence_of],
            is_listing[sentence_of],
        )


def _share_beyond_chance(equal: npt.NDArray[np.bool_], bits: int) -> float:
    """Return the share of equal entries, less those equal by chance."""
    chance = 2.0**-bits
    return max(0.0, (float(equal.mean()) - chance) / (1.0 - chance)) if len(equal) else 0.0


#: Lengths of words to look for in a text without spaces.
_LENGTHS = range(2, 9)
#: The hash bits of a title word.
_HASH = 0xFFFFFF & ~(NUMBER | IN_TEXT)


class TitleWords:
    """Looks for the words of a new page's title in its text and in an earlier page.

    Two notices in one form differ by a name, a place, a product or a number in title and text. A copy under another
    title has the words of both titles in its text. So a word that the other page lacks tells forms from copies.
    """

    def __init__(self, title: Sequence[str], own: SegmentedText) -> None:
        """Take the title's words and the page's own text without its headline, which has them anyway."""
        self._words = list(title)
        self._own = own
        self._prose: Prose | None = None

    @property
    def parts(self) -> tuple[list[str], str]:
        """The words, none empty or with a line break, and the text with a sentence a line."""
        return self._words, self._own.text

    def prose(self, shingle: int, bins: int, bits: int) -> Prose:
        """Return the prose of the text, made once for one form of sketches."""
        if self._prose is None:
            self._prose = Prose(self._own, (shingle, bins, bits))
        return self._prose

    def encode(self, most: int) -> bytes:
        """Pack the words for a sketch, three bytes each; of more than ``most`` those with the smallest hashes."""
        packed = self._own.pack_words(self._words, _HASH, IN_TEXT, _LENGTHS[-1], most)
        if packed is None:
            kept = list(self._title.items())[:most]
            packed = b"".join([(hashed | self._mark(word)).to_bytes(3, "big") for hashed, word in kept])
        return packed

    def _mark(self, word: str) -> int:
        """Return ``IN_TEXT`` if the text has the word."""
        if word not in self._unspaced:
            return IN_TEXT * has_spaced_word(self._own.text, word)
        return IN_TEXT * (len(word) in _LENGTHS and any(word in line for line in self._own.lines))

    @cached_property
    def _unspaced(self) -> frozenset[str]:
        return frozenset(filter(has_unspaced, self._words))

    @cached_property
    def _title(self) -> dict[int, str]:
        """The words by their hashes, ascending; those without spaces around them are hashed as n-grams of a text."""
        hashes, spaced = self._own.hashes, [word for word in self._words if word not in self._unspaced]
        hashed = zip(spaced, hashes.every(spaced), strict=True)
        found = {one & _HASH | NUMBER * word.isdigit(): word for word, one in hashed}
        unspaced = [word for word in self._unspaced if len(word) >= _LENGTHS[0]]
        # Of two words with one hash the longer one counts, then one in the text.
        for word in sorted(unspaced, key=lambda word: (len(word), self._mark(word))):
            found[hashes.gram(word) & _HASH] = word
        return dict(sorted(found.items()))

    def count_gone(self, old: Sketch, most: int) -> int:
        """Return for how many of the two pages (0 to 2) a title word in its text is missing in the other page.

        ``most``: title words that a sketch keeps. Words that a longer earlier title may have lost are not missing. The
        earlier text is known by the order of its sentences: it has a word if it has a sentence with the word.
        """
        return int(not self._has_words(old.words_in_text - self._title.keys())) + int(self._has_new_word(old, most))

    def names_another(self, old: Sketch, most: int) -> bool:
        """Whether each title has a word that is nowhere in the other page, neither in the title nor in the text.

        A word that is not in its own text counts too: then the title alone names the thing.
        """
        if self._has_words(old.words - self._title.keys()):
            return False
        limit = old.word_limit(most)
        ours = [word for hashed, word in self._title.items() if hashed <= limit and hashed not in old.words]
        return not all(map(self._mark, ours)) or self._has_new_word(old, most)

    def count_new_numbers(self, old: Sketch) -> int:
        """Count the different numbers in kept sentences that the earlier page lacks."""
        theirs = set(old.order.sentences)
        return len({one for hashed, _, line in self._end_sentences if hashed not in theirs for one in digits(line)})

    @property
    def is_unspaced(self) -> bool:
        """Whether the text is in a language without spaces between words."""
        return has_unspaced(self._own.text)

    def lines_with_numbers(self, sentences: Set[int]) -> list[str]:
        """Return the letters of the kept sentences with these hashes that have numbers."""
        return [line for hashed, _, line in self._end_sentences if hashed in sentences and digits(line)]

    def _has_new_word(self, old: Sketch, most: int) -> bool:
        """Whether a title word occurs only in kept sentences that the earlier page lacks."""
        theirs, limit = set(old.order.sentences), old.word_limit(most)
        for hashed, word in self._title.items():
            around = self._sentences_with(word) if hashed <= limit and hashed not in old.words else []
            if around and theirs.isdisjoint(around):
                return True
        return False

    def _sentences_with(self, word: str) -> list[int]:
        if word in self._unspaced:
            return [hashed for hashed, _, line in self._end_sentences if word in line]
        return [hashed for hashed, one, _ in self._end_sentences if word in one and word in spaced_words(one)]

    @cached_property
    def _end_sentences(self) -> list[tuple[int, str, str]]:
        """The sentences that an order keeps: hash, sentence and letters of each."""
        own = self._own
        return list(zip(take_ends(order_hashes(own)), take_ends(own.sentences), take_ends(own.lines), strict=True))

    def _has_words(self, words: frozenset[int]) -> bool:
        """Whether the text has all these words, given by their hashes."""
        asked = [word & _HASH for word in words]
        left = self._own.missing_grams(asked, _LENGTHS[0], _LENGTHS[-1], _HASH) if asked else []
        return not left or self._spaced_hashes.issuperset(left)

    @cached_property
    def _spaced_hashes(self) -> frozenset[int]:
        found = {word for one in self._own.sentences for word in spaced_words(one)}
        return frozenset([hashed & _HASH for hashed in self._own.hashes.every(found)])


class Features(NamedTuple):
    """What two pages have in common, without boilerplate; shares and similarities in [0, 1]."""

    #: Jaccard similarity of the shingles.
    similarity: float
    #: Share of the smaller page's shingles in the other one.
    containment: float
    #: Jaccard similarity with boilerplate; a lower bound.
    whole: float
    #: Containment with boilerplate; a lower bound.
    whole_containment: float
    #: Share of the new text, without its own site's boilerplate, in the earlier page.
    contained: float
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
    #: Whether an opening sentence of either page is in the other.
    opening: bool
    #: Share of the smaller set of numbers that the other lacks, less in a longer text: see ``compare``.
    numbers: float
    #: 1 on one site, 0 on two, 0.5 if a site is unknown.
    site: float
    #: 1 if the common text may be a template: on one site; 0 on two. If a site is unknown: see ``_form``.
    form: float
    #: ``form``, if longer texts have the same numbers in new sentences: then it is no template.
    reworded: float
    #: Share of sentences of the page with fewer of them that the other has.
    sentences: float
    #: Share of the earlier sketch that is not boilerplate by now.
    left: float
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
    "opening": "1 if the opening of one page occurs in the other",
    "containment": "share of the smaller page that the other contains",
    "contained": "share of the new page that the earlier page contains",
    "whole": "similarity with boilerplate (lower bound)",
    "whole_containment": "containment with boilerplate (lower bound)",
    "sentences": "share of one page's sentences that the other contains",
    "left": "share of the earlier sketch that is not boilerplate",
    "length": "number of different shingles of the larger page",
}


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
    """Estimate the overlap of a new page with the sketch parts of an earlier one; ``whole``: see ``compare``.

    Text that the earlier page shares with the new page's boilerplate is boilerplate too. So it does not matter whether
    it was filed before or after its boilerplate was known.
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


def compare(
    new: Sketch,
    earlier: Sketch,
    whole: bytes,
    common: Set[int],
    p: CascadeParameters,
    site_free: bytes = b"",
    title: TitleWords | None = None,
    *,
    in_form: bool = False,
) -> Features:
    """Return the features of a new page and an earlier one.

    ``whole`` is the new page's min-wise sketch with its boilerplate, empty if it has none. ``common`` are keys that are
    no evidence. ``site_free``, ``title`` and ``in_form``: see ``Fingerprint``.

    Different numbers weigh less in longer texts: from 200 shingles on their weight falls, to one half at 400. There it
    stays if the common text may be a template. Between sites and under equal titles they then weigh nothing, as a copy
    may be shortened or have other text around it.
    """
    found = overlap(new, earlier.minwise, earlier.shingles, earlier.whole, whole, p.bits)
    in_both, _, theirs, whole_in_both = found
    if new.site and new.site == earlier.site:
        # Assume that boilerplate left out of the earlier sketch is the same on the same site.
        left = max(0.0, new.whole - new.shingles - (whole_in_both - in_both))
        whole_in_both += min(earlier.whole - earlier.shingles, left)
    length = max(new.shingles, round(theirs))
    contained = in_both / max(1, new.shingles)
    if site_free:
        text = Article.unpack(site_free)
        contained = _in_both(jaccard(text.minwise, earlier.minwise, p.bits), text.shingles, earlier.shingles)
        contained /= max(1, text.shingles)
    words = _comparable_words(new, earlier, p.max_title_words)
    same_title = float(_same_title(new, earlier))
    alike = in_both >= FIXED.compared * (new.shingles + theirs - in_both)
    gone = _count_gone(new, earlier, p.max_title_words, title) / 2 if alike else 0.0
    similar_title, other_numbers = _title_similarity(new, earlier, words), _numbers_differ(*words)
    in_form = in_form or gone > 0 or same_title > 0 or similar_title < p.retitled or other_numbers
    form = _form(new, earlier, found.containment, in_form=in_form)
    return Features(
        similarity=found.similarity,
        containment=found.containment,
        whole=min(1.0, whole_in_both / max(1.0, new.whole + earlier.whole - whole_in_both)),
        whole_containment=min(1.0, whole_in_both / max(1, min(new.whole, earlier.whole))),
        contained=min(1.0, contained),
        title=similar_title,
        title_numbers=float(other_numbers),
        gone=gone,
        same_title=same_title,
        other_name=float(alike and length >= FIXED.names_again and _has_other_name(new, earlier, p, title)),
        opening=new.order.opens_like(earlier.order)
        or jaccard(new.opening, earlier.opening, OPENING_BITS) >= FIXED.opening,
        numbers=new.numbers.missing_share(earlier.numbers) * _number_weight(length, form, same_title),
        site=float(new.site == earlier.site) if new.site and earlier.site else 0.5,
        form=form,
        reworded=form * (alike and bool(form) and _are_reworded(new, earlier, title)),
        sentences=_overlap_share(new.sentences, earlier.sentences, {key & 0xFFFFFFFF for key in common}),
        left=theirs / earlier.shingles if earlier.shingles else 1.0,
        same_numbers=new.numbers == earlier.numbers,
        length=length,
        smaller=min(new.shingles, round(theirs)),
    )


def _comparable_words(new: Sketch, earlier: Sketch, most: int) -> tuple[Set[int], Set[int]]:
    """Return the title words of both pages up to the hash that both sketches cover."""
    limit = min(new.word_limit(most), earlier.word_limit(most))
    ours, theirs = ({word for word in page.words if word <= limit} for page in (new, earlier))
    return ours, theirs


def _title_similarity(new: Sketch, earlier: Sketch, words: tuple[Set[int], Set[int]]) -> float:
    if new.words and earlier.words:
        return len(words[0] & words[1]) / len(words[0] | words[1])
    return float(new.title == earlier.title) if new.title and earlier.title else 0.5


def _same_title(new: Sketch, earlier: Sketch) -> bool:
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


def _count_gone(new: Sketch, earlier: Sketch, most: int, title: TitleWords | None) -> int:
    return 0 if title is None or new.words == earlier.words else title.count_gone(earlier, most)


def _has_other_name(new: Sketch, earlier: Sketch, p: CascadeParameters, title: TitleWords | None) -> bool:
    """Whether two pages of one site have titles about two things."""
    is_one_site = new.site == earlier.site > 0
    return is_one_site and title is not None and title.names_another(earlier, p.max_title_words)


def _are_reworded(new: Sketch, earlier: Sketch, title: TitleWords | None) -> bool:
    """Whether the numbers are equal although their sentences are not; never without the new text.

    In equal sentences they are no evidence: these may be the template, or a footer with an address.
    """
    return (
        new.numbers.equals(earlier.numbers) and title is not None and title.count_new_numbers(earlier) >= FIXED.reworded
    )


def _in_both(similarity: float, one: int, other: int) -> float:
    """Return the size of the intersection of two sets with this Jaccard similarity."""
    return similarity / (1.0 + similarity) * (one + other)


def _number_weight(length: int, form: float, same_title: float) -> float:
    """Return the weight, in [0, 1], of different numbers in texts with so many shingles; see ``compare``."""
    return min(1.0, 200 / max(1, length)) if length <= SHORT else form * (1.0 - same_title) / 2


def _numbers_differ(new: Set[int], earlier: Set[int]) -> bool:
    digits = [{word for word in words if word & NUMBER} for words in (new, earlier)]
    return bool(digits[0] and digits[1] and digits[0] != digits[1])


def _overlap_share(new: frozenset[int], earlier: frozenset[int], ignored: set[int]) -> float:
    few = min(len(new - ignored), len(earlier - ignored))
    return len((new & earlier) - ignored) / few if few else 0.0
