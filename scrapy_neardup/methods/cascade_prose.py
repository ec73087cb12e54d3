"""Whether two pages that share a listing share prose as well: an article is what its writer says, not what he quotes.

Two writers print one program, one log, one table, each with a text of his own around it. By their letters the pages are
as alike as the listing is long, and they are two articles all the same. The text of a new page is at hand, so of each
entry of its min-wise sketch it is known from which sentence it comes; and of those of its prose it can be told how many
the earlier page has, too. That reaches all of both pages, however long, and takes no byte of a state.
"""

from __future__ import annotations

from functools import cached_property
from itertools import compress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scrapy_neardup.methods.cascade_order import known_in_order
from scrapy_neardup.methods.cascade_sketch import Sketch
from scrapy_neardup.methods.minwise import entries, jaccard, sketch, traced
from scrapy_neardup.text.cut import CutText
from scrapy_neardup.text.listings import LineKind, kinds
from scrapy_neardup.text.shingles import distinct, shingles

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

    def __init__(self, own: CutText, sketch: tuple[int, int, int]) -> None:
        """``own``: its own text; ``sketch``: the length of its shingles, its bins and their bits."""
        self._own = own
        self._sketch = sketch
        self._kinds = kinds(own.sentences, own.lines)
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
