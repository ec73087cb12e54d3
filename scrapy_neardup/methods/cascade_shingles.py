"""What the default method makes of the shingles of a text: how many there are, a sketch of them, and keys."""

from __future__ import annotations

from typing import NamedTuple

from scrapy_neardup.methods.cascade_parameters import CascadeParameters
from scrapy_neardup.methods.cascade_sketch import OPENING_BINS, OPENING_BITS, Article
from scrapy_neardup.methods.minwise import sketch_of_text
from scrapy_neardup.text.cut import CutText, HeldText
from scrapy_neardup.text.shingles import smallest_shingles
from scrapy_neardup.text.tokens import has_unspaced

#: Letters that are the opening of a text.
_OPENING = 80


class Shingles(NamedTuple):
    """Of the shingles of the letters of one text: all of them, those of its opening, and keys."""

    article: Article
    #: The sketch of those of the opening.
    opening: bytes
    #: The smallest of longer ones: so long that few phrases are common.
    keys: list[int]

    @classmethod
    def of(cls, text: CutText, p: CascadeParameters) -> Shingles:
        """Those of the letters of a text."""
        if isinstance(text, HeldText):
            opening = _OPENING, OPENING_BINS, OPENING_BITS
            keys = p.key_shingle, p.key_shingle_spaced, p.shingle_keys
            count, minwise, first, smallest = text.shingled(p.shingle, p.bins, p.bits, *opening, *keys)
            return cls(Article(count, minwise), first, smallest)
        letters, hashes = text.letters, text.hashes
        length = p.key_shingle if has_unspaced(letters) else p.key_shingle_spaced
        return cls(
            article_of(text, p),
            sketch_of_text(letters[:_OPENING], p.shingle, OPENING_BINS, OPENING_BITS, hashes)[1],
            smallest_shingles(letters, length, p.shingle_keys, hashes),
        )


def article_of(text: CutText, p: CascadeParameters) -> Article:
    """How many different shingles there are, and the sketch of them."""
    return Article(*sketch_of_text(text.letters, p.shingle, p.bins, p.bits, text.hashes))
