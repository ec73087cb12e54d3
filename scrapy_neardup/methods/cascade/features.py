"""The features of cascade: what two sketches share, as numbers."""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import cached_property
from itertools import compress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing import compiled
from scrapy_neardup.methods.cascade.parameters import CascadeParameters
from scrapy_neardup.methods.cascade.sketch import (
    NUMBER,
    OPENING_BITS,
    SHORT,
    STANDS,
    Article,
    Sketch,
    kept,
    known_in_order,
    packed_words,
)
from scrapy_neardup.methods.minwise import entries, jaccard, sketch, traced
from scrapy_neardup.text.prose import LineKind, classify_lines
from scrapy_neardup.text.sentences import NativeText, SegmentedText
from scrapy_neardup.text.shingles import code_points, distinct, hash_words, shingles
from scrapy_neardup.text.tokens import are_unspaced, digits, has_spaced_word, spaced_words

# ----------------------------------------------------------------------------------------------------------------------
# Whether two pages that share a listing share prose as well: an article is what its writer says, not what he quotes.
#
# Two writers print one program, one log, one table, each with a text of his own around it. By their letters the pages
# are as alike as the listing is long, and they are two articles all the same. The text of a new page is at hand, so of
# each entry of its min-wise sketch it is known from which sentence it comes; and of those of its prose it can be told
# how many the earlier page has, too. That reaches all of both pages, however long, and takes no byte of a state.


#: What each of the two must say itself: sentences, and letters (of the earlier one, different shingles).
_SENTENCES, _LETTERS = 2, 100
#: Entries of the sketch that must be of the new page's prose, for their share to mean anything: with 16 the standard
#: error is about 0.16.
_ENTRIES = 16
#: The share of the prose up to which the earlier page holds little of it: of an edited copy's it holds most, and two
#: writers have phrases in common, above all of disclaimers.
_LITTLE = 1 / 3
#: The share of what both hold from which on that is what they have in common.
_MOSTLY = 0.5


class HeldProse(NamedTuple):
    """What an earlier page holds of a new one; where too little of that is prose, all of it and no listing.

    ``prose``: the share of the new page's prose that stands in the earlier one. ``listing``: the share of what both
    hold that is a listing. ``apart``: these are two articles around one listing.
    """

    prose: float = 1.0
    listing: float = 0.0
    apart: bool = False


class _Traced(NamedTuple):
    """A page's sketch, and of how many shingles; of its entries bins and bits, and whether of prose or of a listing."""

    sketch: bytes
    shingles: int
    bins: npt.NDArray[np.intp]
    kept: npt.NDArray[np.uint8]
    of_prose: npt.NDArray[np.bool_]
    of_listing: npt.NDArray[np.bool_]


class Prose:
    """The prose of a new page, and its listings, held against earlier pages."""

    def __init__(self, own: SegmentedText, sketch: tuple[int, int, int]) -> None:
        """``own``: its own text; ``sketch``: the length of its shingles, its bins and their bits."""
        self._own = own
        self._sketch = sketch
        self._kinds = classify_lines(own.sentences, own.lines)
        self._is_prose = [kind is LineKind.PROSE for kind in self._kinds]

    def held_by(self, old: Sketch) -> HeldProse:
        """How much of it an earlier page holds."""
        if sum(self._is_prose) < _SENTENCES:
            return HeldProse()
        ours, bits = self._traced, self._sketch[2]
        if ours.of_prose.sum() < _ENTRIES:
            return HeldProse()
        equal = entries(old.minwise, bits)[ours.bins] == ours.kept
        alike = jaccard(ours.sketch, old.minwise, bits)
        in_both = alike / (1.0 + alike) * (ours.shingles + old.shingles)
        # Of what both hold the same share are entries of both, in whichever part of the page it stands.
        found, of_prose, of_listing = (_freed(equal[of], bits) for of in (slice(None), ours.of_prose, ours.of_listing))
        if not found:
            return HeldProse(prose=0.0)
        prose = min(1.0, of_prose / found * in_both / ours.shingles)
        listing = min(1.0, of_listing / found * float(ours.of_listing.mean()))
        theirs = old.shingles - in_both
        apart = prose <= _LITTLE and listing >= _MOSTLY and theirs >= _LETTERS and self._is_apart(old)
        return HeldProse(prose, listing, apart)

    def _is_apart(self, old: Sketch) -> bool:
        """What is known for certain: no sentence of its prose is known to stand there, and both say something."""
        if sum(map(len, compress(self._own.lines, self._is_prose))) < _LETTERS:
            return False
        there, here = set(old.order.sentences), known_in_order(self._own)
        return there.isdisjoint(compress(here, self._is_prose)) and len(there.difference(here)) >= _SENTENCES

    @cached_property
    def _traced(self) -> _Traced:
        length, bins, bits = self._sketch
        hashes = shingles(self._own.letters, length, self._own.hashes)
        full, places, kept = traced(hashes, bins, bits)
        ends = np.cumsum(self._own.lengths(), dtype=np.intp)
        of = ends.searchsorted(places, side="right")
        is_prose, is_listing = (
            np.array([kind is one for kind in self._kinds]) for one in (LineKind.PROSE, LineKind.LISTING)
        )
        return _Traced(sketch(hashes, bins, bits), len(distinct(hashes)), full, kept, is_prose[of], is_listing[of])


def _freed(equal: npt.NDArray[np.bool_], bits: int) -> float:
    """The share of entries that are equal, of that which is by chance; 0 of none."""
    chance = 2.0**-bits
    return max(0.0, (float(equal.mean()) - chance) / (1.0 - chance)) if len(equal) else 0.0


# ----------------------------------------------------------------------------------------------------------------------
# What a page is about, by the words of its title that stand in its text; and whether another page is about the same.
#
# Of two notices in one form each has a name, a place, a product or a number of its own in title and text, which the
# other one lacks. A copy under another title has in its text what either title says, as the text is the same. So a word
# that is
# *gone* tells forms from copies where similarity does not.


#: Lengths of words that are looked for in a text without spaces.
_LENGTHS = range(2, 9)
#: The bits of a word that are its hash.
_HASH = 0xFFFFFF & ~(NUMBER | STANDS)
#: Words of a title that the compiled module looks for at most.
_FEW = 64


class TitleWords:
    """The words of a new page's title, held against its sentences and against an earlier page."""

    def __init__(self, title: Sequence[str], own: SegmentedText) -> None:
        """``own``: the page's own text without its headline, in which they stand in any case."""
        self._told = list(title)
        self._own = own
        self._prose: Prose | None = None

    @property
    def made_of(self) -> tuple[list[str], str]:
        """The words, none of which is empty or holds a line break, and the text with a sentence a line."""
        return self._told, self._own.text

    def prose(self, shingle: int, bins: int, bits: int) -> Prose:
        """The prose of the text, as sketches of that length of shingles, so many bins and bits tell it; made once."""
        if self._prose is None:
            self._prose = Prose(self._own, (shingle, bins, bits))
        return self._prose

    def packed(self, most: int) -> bytes:
        """Its words as a sketch has them, three bytes each; of more than ``most`` those with the smallest hashes."""
        if isinstance(self._own, NativeText) and len(self._told) <= _FEW:
            packed = self._own.title_words(self._told, most, (_LENGTHS[0], _LENGTHS[-1], _HASH, STANDS))
            if packed is not None:
                return packed
        words = list(self._title)[:most]
        return packed_words(words, self._standing(words))

    def _standing(self, words: list[int]) -> frozenset[int]:
        """Those of these words of the title that stand in the text."""
        hashed = {self._title[one]: one for one in words}
        unspaced = [word for word in hashed if word in self._unspaced]
        found = self._own.find_words([word for word in unspaced if len(word) in _LENGTHS])
        if spaced := hashed.keys() - unspaced:
            text = self._own.text
            found += [word for word in spaced if has_spaced_word(text, word)]
        return frozenset([hashed[word] for word in found])

    @cached_property
    def _unspaced(self) -> frozenset[str]:
        """The words that have no spaces around them in a text."""
        words = list(dict.fromkeys(self._told))
        return frozenset(compress(words, are_unspaced(words)))

    @cached_property
    def _title(self) -> dict[int, str]:
        """The words by their hashes, the smallest first; where they have no spaces, as n-grams of a text are hashed."""
        spaced = [word for word in self._told if word not in self._unspaced]
        found = {self._own.hashes.of(word) & _HASH | NUMBER * word.isdigit(): word for word in spaced}
        unspaced = [word for word in dict.fromkeys(self._told) if word in self._unspaced and len(word) >= _LENGTHS[0]]
        grams = hash_words(unspaced, self._own.hashes)
        for word in sorted(grams, key=len):  # of two words that have one hash the longer one is known by it
            found[grams[word] & _HASH] = word
        return dict(sorted(found.items()))

    def gone(self, old: Sketch, most: int) -> int:
        """Of how many of the two pages a word of the title stands in the text, and nowhere in the other page.

        ``most``: how many words of a title are kept. Of a longer title no word is taken to be missing that may be
        among those that are not.

        Whether a word stands in the earlier text is told by the order of its sentences: it does if a sentence that
        holds the word here stands there, too.
        """
        asked = old.standing - self._title.keys()
        return int(not self._holds(asked)) + int(self._is_new(old, most))

    def new_numbers(self, old: Sketch) -> set[str]:
        """The numbers in sentences that the earlier page lacks, of those of which the order is kept."""
        theirs = set(old.order.sentences)
        return {one for number, _, line in self._kept if number not in theirs for one in digits(line)}

    def _is_new(self, old: Sketch, most: int) -> bool:
        """Whether a word of the title stands here in sentences alone that the earlier page lacks."""
        theirs, known = set(old.order.sentences), old.known_words(most)
        for hashed, word in self._title.items():
            found = self._holding(word) if hashed <= known and hashed not in old.words else []
            if found and theirs.isdisjoint(found):
                return True
        return False

    def _holding(self, word: str) -> list[int]:
        """The sentences that hold a word, of those of which the order is kept, as they are known in it."""
        if word in self._unspaced:
            return [number for number, _, line in self._kept if word in line]
        return [number for number, one, _ in self._kept if word in one and word in spaced_words(one)]

    @cached_property
    def _kept(self) -> list[tuple[int, str, str]]:
        """The sentences of which the order is kept: as each is known in it, normalised, and its letters."""
        own = self._own
        return list(zip(kept(known_in_order(own)), kept(own.sentences), kept(own.lines), strict=True))

    def _holds(self, words: frozenset[int]) -> bool:
        """Whether all of these stand in the text."""
        left = self._not_in_runs([word & _HASH for word in words]) if words else []
        return not left or self._spaced.issuperset(left)

    @cached_property
    def _spaced(self) -> frozenset[int]:
        """The hashes of its words between spaces."""
        found = {word for one in self._own.sentences for word in spaced_words(one)}
        return frozenset([hashed & _HASH for hashed in self._own.hashes.every(found)])

    def _not_in_runs(self, asked: list[int]) -> list[int]:
        """Those of these hashes that nothing has which may be a word where there are no spaces."""
        kernels = compiled.kernels
        if kernels is not None:
            lengths = _LENGTHS[0], _LENGTHS[-1]
            return kernels.lacking(self._own.letters, *lengths, *self._own.hashes.drawn, _HASH, asked)
        values, held = np.array(asked, np.uint32), self._in_runs
        if not len(held):
            return asked
        left: list[int] = values[held.take(held.searchsorted(values), mode="clip") != values].tolist()
        return left

    @cached_property
    def _in_runs(self) -> npt.NDArray[np.uint32]:
        """The hashes of all that may be such a word, in order, of which each comparison asks for some."""
        points = code_points(self._own.letters).astype(np.uint64)
        runs = self._own.hashes.n_grams_each(points, [n for n in _LENGTHS if len(points) >= n])
        held = np.concatenate(runs or [points[:0]]) & np.uint64(_HASH)
        return distinct(held.astype(np.uint32))


# ----------------------------------------------------------------------------------------------------------------------
# What two sketches of the default method have in common, as numbers that a rule can weigh.


#: Similarity below which pages are no copies, whatever their titles say, so these are not looked for.
_LEAST = 0.3
#: From this similarity on two openings are alike; what it is estimated by errs by a tenth.
_OPENING = 0.2
#: Different numbers that must stand in sentences which the earlier page lacks: more than a date has, which two pages of
#: one day share.
_REWORDED = 4


class Features(NamedTuple):
    """What two pages have in common, without boilerplate; shares and similarities in [0, 1]."""

    #: Jaccard similarity of the shingles.
    similarity: float
    #: The share of the smaller page's shingles that the other one holds.
    containment: float
    #: Jaccard similarity of the texts with their boilerplate; too low rather than too high.
    whole: float
    #: The share of the smaller text with its boilerplate that the other one holds; too low rather than too high.
    whole_containment: float
    #: The share of the new text, without what is its own site's boilerplate, that the earlier page holds.
    carried: float
    #: Jaccard similarity of the title words; one half where a title is missing.
    title: float
    #: 1 if both titles hold numbers and not the same ones, else 0.
    title_numbers: float
    #: Whether a word of the title stands in the text of its page and not in the other page: of one page 0.5, of both 1.
    gone: float
    #: 1 if they have one title, letter by letter, or a headline in common.
    same_title: float
    #: Whether a sentence of the opening of either page stands in the other one.
    opening: bool
    #: The share of the smaller set of numbers that is missing in the other, less in a longer text: see ``compare``.
    numbers: float
    #: 1 on the same site, 0 on another, one half where a site is not known.
    site: float
    #: 1 where what they share may be the form of a site, 0 where they are known to be of two.
    form: float
    #: 1 if that is told otherwise on one site: all their numbers are the same, and some stand in sentences that the
    #: earlier page lacks; 0 on two sites, and of short texts.
    reworded: float
    #: The share of the sentences of the page that has fewer that stand in the other page.
    sentences: float
    #: The share of what the earlier page was filed with that is no boilerplate by now.
    left: float
    #: Whether the texts hold the same set of numbers.
    same_numbers: bool
    #: Different shingles of the larger page, and of the smaller one.
    length: int
    smaller: int


class Overlap(NamedTuple):
    """What is estimated of the shingles of a new page and an earlier one, by their min-wise sketches.

    ``ours``: how many the new page has; ``theirs``: how many the earlier one has that are no boilerplate by now;
    ``whole_in_both``: how many both have with their boilerplate.
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
        """The share of the smaller page's shingles that the other one holds."""
        return min(1.0, self.in_both / max(1.0, min(self.ours, self.theirs)))


def overlap(one: Sketch, minwise: bytes, shingles: int, all: int, whole: bytes, bits: int) -> Overlap:
    """Of a new page ``one`` and an earlier one, of which these are the parts of a sketch that it takes.

    ``whole``: see ``compare``.

    Of what the earlier page holds, that part is boilerplate too which it shares with the new page's boilerplate: so it
    does not matter whether it was filed before or after its boilerplate was known for that.
    """
    in_both = _in_both(jaccard(one.minwise, minwise, bits), one.shingles, shingles)
    if not whole:
        return Overlap(in_both, one.shingles, float(shingles), in_both)
    whole_in_both = _in_both(jaccard(whole, minwise, bits), one.whole, shingles)
    # No more than the new page has and the earlier one was not already without, or the error of the estimate would be
    # taken off what it says itself.
    most = one.whole - one.shingles - (all - shingles)
    theirs = float(shingles) - min(max(0.0, whole_in_both - in_both), max(0, most))
    return Overlap(in_both, one.shingles, theirs, whole_in_both)


def compare(
    one: Sketch,
    other: Sketch,
    whole: bytes,
    common: Set[int],
    p: CascadeParameters,
    unframed: bytes = b"",
    title: TitleWords | None = None,
) -> Features:
    """The features of a new page ``one`` and an earlier one.

    ``whole`` is the new page's min-wise sketch with its boilerplate, empty if it has none; ``common`` are keys that
    are no evidence. ``unframed`` and ``title``: see ``Fingerprint``.

    Numbers that differ are worth as much as the text is short: the more there is to read, the less they are all of it.
    From 200 shingles on their weight falls with the length, to the half of it at 400. There it stays where what two
    texts share may be a form, which is filled in with numbers; between sites and under one title they say nothing of
    longer texts, as a copy may be cut, and stand in another frame.
    """
    found = overlap(one, other.minwise, other.shingles, other.whole, whole, p.bits)
    in_both, _, theirs, whole_in_both = found
    if one.site and one.site == other.site:
        # Boilerplate that was left out of the earlier sketch: the same site's is likely to be the same.
        left = max(0.0, one.whole - one.shingles - (whole_in_both - in_both))
        whole_in_both += min(other.whole - other.shingles, left)
    length = max(one.shingles, round(theirs))
    carried = in_both / max(1, one.shingles)
    if unframed:
        claimed = Article.unpack(unframed)
        held = _in_both(jaccard(claimed.minwise, other.minwise, p.bits), claimed.shingles, other.shingles)
        carried = held / max(1, claimed.shingles)
    words = _comparable(one, other, p.max_title_words)
    same_title = float(_same_title(one, other))
    form = float(not (one.site and other.site) or one.site == other.site)
    alike = in_both >= _LEAST * (one.shingles + theirs - in_both)
    return Features(
        similarity=found.similarity,
        containment=found.containment,
        whole=min(1.0, whole_in_both / max(1.0, one.whole + other.whole - whole_in_both)),
        whole_containment=min(1.0, whole_in_both / max(1, min(one.whole, other.whole))),
        carried=min(1.0, carried),
        title=_titles(one, other, words),
        title_numbers=float(_conflict(*words)),
        gone=_gone(one, other, p.max_title_words, title) / 2 if alike else 0.0,
        same_title=same_title,
        opening=one.order.opens_like(other.order) or jaccard(one.opening, other.opening, OPENING_BITS) >= _OPENING,
        numbers=one.numbers.missing(other.numbers) * _worth(length, form, same_title),
        site=float(one.site == other.site) if one.site and other.site else 0.5,
        form=form,
        reworded=float(bool(form) and alike and _are_reworded(one, other, title)),
        sentences=_shared(one.sentences, other.sentences, {key & 0xFFFFFFFF for key in common}),
        left=theirs / other.shingles if other.shingles else 1.0,
        same_numbers=one.numbers == other.numbers,
        length=length,
        smaller=min(one.shingles, round(theirs)),
    )


def _comparable(one: Sketch, other: Sketch, most: int) -> tuple[Set[int], Set[int]]:
    """The words of the titles without those with so large hashes that the other page would not have kept them."""
    known = min(one.known_words(most), other.known_words(most))
    ours, theirs = ({word for word in page.words if word <= known} for page in (one, other))
    return ours, theirs


def _titles(one: Sketch, other: Sketch, words: tuple[Set[int], Set[int]]) -> float:
    if one.words and other.words:
        return len(words[0] & words[1]) / len(words[0] | words[1])
    return float(one.title == other.title) if one.title and other.title else 0.5


def _same_title(one: Sketch, other: Sketch) -> bool:
    if one.lines and other.lines and not one.lines.headlines.isdisjoint(other.lines.headlines):
        return True
    return one.title == other.title > 0


def _gone(one: Sketch, other: Sketch, most: int, title: TitleWords | None) -> int:
    """See ``TitleWords``; of two sketches without the new text nothing is known to be gone."""
    return 0 if title is None or one.words == other.words else title.gone(other, most)


def _are_reworded(one: Sketch, other: Sketch, title: TitleWords | None) -> bool:
    """Whether numbers are the same, though what they stand in is not; of two sketches without the new text, never.

    In what both have word for word they are no evidence: that may be the form, or a footer with an address.
    """
    return one.numbers.same(other.numbers) and title is not None and len(title.new_numbers(other)) >= _REWORDED


def _in_both(similarity: float, one: int, other: int) -> float:
    """The size of the intersection of two sets with that Jaccard similarity."""
    return similarity / (1.0 + similarity) * (one + other)


def _worth(length: int, form: float, same_title: float) -> float:
    """What numbers that differ are worth in texts with so many shingles, in [0, 1]; see ``compare``."""
    return min(1.0, 200 / max(1, length)) if length <= SHORT else form * (1.0 - same_title) / 2


def _conflict(one: Set[int], other: Set[int]) -> bool:
    """Whether both titles hold numbers and not the same ones."""
    digits = [{word for word in words if word & NUMBER} for words in (one, other)]
    return bool(digits[0] and digits[1] and digits[0] != digits[1])


def _shared(one: frozenset[int], other: frozenset[int], ignored: set[int]) -> float:
    """The share of the smaller set that the other one holds, without what is ignored; 0 where nothing is left."""
    few = min(len(one - ignored), len(other - ignored))
    return len((one & other) - ignored) / few if few else 0.0
