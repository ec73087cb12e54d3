"""What the default method makes of the shingles of a text: how many there are, a sketch of them, and keys.

Of one text they are asked for in two lengths, for the sketch and for the keys; its letters are hashed once for both.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.methods.cascade_parameters import CascadeParameters
from scrapy_neardup.methods.cascade_sketch import OPENING_BINS, OPENING_BITS, Article
from scrapy_neardup.methods.minwise import sketch
from scrapy_neardup.text.shingles import distinct, shingles
from scrapy_neardup.text.tokens import has_unspaced

#: Letters that are the opening of a text.
_OPENING = 80


class Shingles:
    """The shingles of the letters of one text."""

    def __init__(self, letters: str, p: CascadeParameters, hashes: Keyed) -> None:
        self._letters = letters
        self._p = p
        self._hashes = hashes

    def article(self) -> Article:
        """How many different ones there are, and the sketch of them."""
        p = self._p
        grams = distinct(shingles(self._letters, p.shingle, self._hashes))
        return Article(len(grams), sketch(grams, p.bins, p.bits))

    def opening(self) -> bytes:
        """The sketch of those of the opening."""
        opening = shingles(self._letters[:_OPENING], self._p.shingle, self._hashes)
        return sketch(opening, OPENING_BINS, OPENING_BITS)

    def keys(self) -> list[int]:
        """The smallest of longer ones: so long that few phrases are common."""
        p = self._p
        length = p.key_shingle if has_unspaced(self._letters) else p.key_shingle_spaced
        return _smallest(shingles(self._letters, length, self._hashes), p.shingle_keys)


def _smallest(hashes: npt.NDArray[np.uint64], count: int) -> list[int]:
    """The smallest different hashes: two similar sets are likely to have some of them in common."""
    few = distinct(np.partition(hashes, 4 * count)[: 4 * count] if len(hashes) > 4 * count else hashes)
    if len(few) < count:  # a text that repeats itself
        few = distinct(hashes)
    found: list[int] = few[:count].tolist()
    return found
