"""What the default method makes of the shingles of a text: how many there are, a sketch of them, and keys."""

from __future__ import annotations

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.methods.cascade_parameters import CascadeParameters
from scrapy_neardup.methods.cascade_sketch import OPENING_BINS, OPENING_BITS, Article
from scrapy_neardup.methods.minwise import sketch_of_text
from scrapy_neardup.text.shingles import smallest_shingles
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
        return Article(*sketch_of_text(self._letters, p.shingle, p.bins, p.bits, self._hashes))

    def opening(self) -> bytes:
        """The sketch of those of the opening."""
        opening = self._letters[:_OPENING]
        return sketch_of_text(opening, self._p.shingle, OPENING_BINS, OPENING_BITS, self._hashes)[1]

    def keys(self) -> list[int]:
        """The smallest of longer ones: so long that few phrases are common."""
        p = self._p
        length = p.key_shingle if has_unspaced(self._letters) else p.key_shingle_spaced
        return smallest_shingles(self._letters, length, p.shingle_keys, self._hashes)
