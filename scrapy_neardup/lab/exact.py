"""All pairs of similar texts, computed exactly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt

from scrapy_neardup.lab.documents import RowFile
from scrapy_neardup.maintenance.scan import Watch, unwatched
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.shingles import distinct, shingles

# Sets follow the reference pairs of ``evaluate``: the different 5-grams of letters and digits of the normalised text. A
# gram is a 64-bit hash; in a hundred million grams two collide with probability 0.0003.

#: Letters and digits of a gram.
GRAM = 5

Grams = npt.NDArray[np.uint64]


def make_grams(text: str) -> Grams:
    """Return the different grams of a text, ascending; none for a text that is too short.

    >>> len(make_grams("The ferry, again!")), len(make_grams("Ship"))
    (9, 0)
    """
    own = letters(normalize(text))
    return distinct(shingles(own, GRAM)) if len(own) >= GRAM else np.zeros(0, np.uint64)


class GramFile(RowFile):
    """Sets of grams on disk: hashes in ascending order."""

    def add(self, text: str) -> None:
        """Add the grams of a text."""
        self.append(make_grams(text).tobytes())

    def sizes(self) -> npt.NDArray[np.int64]:
        """The size of each set."""
        return self.lengths() // 8

    def __getitem__(self, place: int) -> Grams:
        return np.frombuffer(self.row(place), np.uint64)


def count_common(one: Grams, other: Grams) -> int:
    """Count the common grams of two sets."""
    return len(one) + len(other) - len(distinct(np.concatenate((one, other))))


# The prefix filter of Chaudhuri, Ganti and Kaushik 2006 ("A primitive operator for similarity joins in data cleaning")
# and Bayardo, Ma and Srikant 2007 ("Scaling up all pairs similarity search", AllPairs). The size filter of the latter.
# A bound on the overlap as in Xiao, Wang, Lin and Yu 2008 ("Efficient similarity joins for near duplicate detection",
# PPJoin). Of two similar sets the larger one holds at least ``least`` of the s grams of the smaller one. So it holds
# one of any s - least + 1 of them; we choose the rarest. The papers index prefixes of both sets, for high
# Jaccard similarity. We also want a short text inside a long one (containment), so of the larger set all grams in any
# prefix are indexed. A table of fixed size estimates how rare a gram is; it may overestimate frequency, which costs
# time but finds the same. The index is made in blocks.


#: Limits of a pair, as in the reference pairs of ``evaluate``.
JACCARD, CONTAINMENT = 0.5, 0.8
#: Postings of a block, 12 bytes each, and as much again for sorting.
_ROOM = 8_000_000
#: Bounds for the slots of the table of rarity, 2 bytes each.
_FEWEST, _MOST = 2**16, 2**26
#: The error of a product of floats.
_TINY = 1e-9


@dataclass(frozen=True, slots=True)
class Alike:
    """Two texts, ``a`` before ``b``, with the exact similarities of their sets."""

    a: int
    b: int
    jaccard: float
    containment: float


def measure_similarity(a: int, b: int, sets: GramFile) -> Alike:
    """Compare two texts."""
    first, second = sorted((a, b))
    one, other = sets[first], sets[second]
    return _make_alike(first, second, len(one), len(other), count_common(one, other))


def find_similar_pairs(
    sets: GramFile,
    jaccard: float = JACCARD,
    containment: float = CONTAINMENT,
    *,
    room: int = _ROOM,
    watch: Watch = unwatched,
) -> Iterator[Alike]:
    """Yield every pair with at least that Jaccard similarity, or that containment of the smaller in the larger.

    In no order. Both limits are above 0; empty sets resemble nothing. ``room``: postings of a block.
    """
    sizes = sets.sizes()
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > 0]  # a pair is found from its smaller set, the earlier one of two of a size
    rarity = _Rarity(sets, order.tolist(), int(sizes.sum()))
    prefixes = _Prefixes(sets, sizes, rarity, jaccard, containment)
    for place in order.tolist():
        rarity.want(prefixes[place])
    for first, last, index in _build_blocks(sets, order.tolist(), rarity, room):
        for at, place in enumerate(watch(order[:last].tolist(), last, "texts compared")):
            yield from _find_partners(place, max(at + 1, first) - first, index, prefixes)


class _Rarity:
    """Upper bounds for the number of sets with a gram, and whether it is in any prefix."""

    def __init__(self, sets: GramFile, places: Iterable[int], grams: int) -> None:
        slots = min(_MOST, max(_FEWEST, 1 << (2 * grams).bit_length()))
        self._shift = np.uint64(64 - slots.bit_length() + 1)
        self._counts = np.zeros(slots, np.uint8)
        self._wanted = np.zeros(slots, np.bool_)
        for place in places:
            at = np.unique(self._slots(sets[place]))
            self._counts[at] += self._counts[at] < np.iinfo(np.uint8).max

    def of(self, found: Grams) -> npt.NDArray[np.uint8]:
        """Return upper bounds for the number of sets with each gram."""
        counts: npt.NDArray[np.uint8] = self._counts[self._slots(found)]
        return counts

    def want(self, found: Grams) -> None:
        """Mark grams as wanted."""
        self._wanted[self._slots(found)] = True

    def wanted(self, found: Grams) -> Grams:
        """Return the grams that may be wanted."""
        return found[self._wanted[self._slots(found)]]

    def _slots(self, found: Grams) -> npt.NDArray[np.uint64]:
        return found >> self._shift


@dataclass(frozen=True, slots=True)
class _Prefixes:
    """The rarest grams of each set, so many that a similar larger set holds one of them."""

    sets: GramFile
    sizes: npt.NDArray[np.int64]
    rarity: _Rarity
    jaccard: float
    containment: float

    def least(self, size: int, larger: float) -> int:
        """Return the grams two sets must share: J(x, y) >= t implies |x & y| >= t / (1 + t) * (|x| + |y|)."""
        by_jaccard = self.jaccard / (1 + self.jaccard) * (size + larger)
        return max(1, ceil(min(by_jaccard, self.containment * size) - _TINY))

    def __getitem__(self, place: int) -> Grams:
        """Return the grams of a prefix that may stand in another set."""
        found = self.sets[place]
        counts = self.rarity.of(found)
        size = len(found)
        prefix = np.argsort(counts, kind="stable")[: size - self.least(size, size) + 1]
        return found[prefix[counts[prefix] > 1]]


@dataclass(frozen=True, slots=True)
class _Index:
    """Ascending grams, and beside each its set: a number among ``places``."""

    grams: Grams
    held_by: npt.NDArray[np.int32]
    places: npt.NDArray[np.int64]

    def matches(self, wanted: Grams) -> npt.NDArray[np.int64]:
        """Count the common grams with each set."""
        low, high = (np.searchsorted(self.grams, wanted, side) for side in ("left", "right"))
        many = high - low
        ends = np.cumsum(many)
        at = np.arange(ends[-1] if len(ends) else 0) + np.repeat(low - ends + many, many)
        return np.bincount(self.held_by[at], minlength=len(self.places))


def _build_blocks(sets: GramFile, order: list[int], rarity: _Rarity, room: int) -> Iterator[tuple[int, int, _Index]]:
    """Yield blocks of the index: the place of the first set, of the one behind the last, and the block."""
    first, filled, kept = 0, 0, list[Grams]()
    for at, place in enumerate(order):
        kept.append(rarity.wanted(sets[place]))
        filled += len(kept[-1])
        if filled >= room or at + 1 == len(order):
            grams = np.concatenate(kept)
            held_by = np.repeat(np.arange(len(kept), dtype=np.int32), [len(one) for one in kept])
            by_gram = np.argsort(grams, kind="stable")
            yield first, at + 1, _Index(grams[by_gram], held_by[by_gram], np.array(order[first : at + 1], np.int64))
            first, filled, kept = at + 1, 0, []


def _find_partners(place: int, begin: int, index: _Index, prefixes: _Prefixes) -> Iterator[Alike]:
    """Yield the pairs of a set with sets of a block from ``begin`` on; these are no smaller."""
    wanted = prefixes[place]
    if not len(wanted):
        return
    matches = index.matches(wanted)
    size = int(prefixes.sizes[place])
    # Grams outside the prefix may be in the larger set too.
    spare = prefixes.least(size, size) - 1
    own = prefixes.sets[place]
    for at in begin + np.flatnonzero(matches[begin:]):
        other = int(index.places[at])
        larger = int(prefixes.sizes[other])
        if matches[at] + spare < prefixes.least(size, larger):
            continue
        first, second = sorted((place, other))
        found = _make_alike(first, second, size, larger, count_common(own, prefixes.sets[other]))
        if found.jaccard >= prefixes.jaccard or found.containment >= prefixes.containment:
            yield found


def _make_alike(first: int, second: int, one: int, other: int, both: int) -> Alike:
    return Alike(first, second, both / max(1, one + other - both), both / max(1, min(one, other)))
