"""What two sketches of the default method have in common, as numbers that a rule can weigh."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from scrapy_neardup.methods.cascade_numbers import SHORT
from scrapy_neardup.methods.cascade_parameters import CascadeParameters
from scrapy_neardup.methods.cascade_sketch import NUMBER, OPENING_BITS, Article, Sketch
from scrapy_neardup.methods.cascade_title import TitleWords
from scrapy_neardup.methods.minwise import jaccard

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
