"""The numbers of a page: in a form that is filled in twice they differ, in a report that is told twice they do not.

Of a short text each one counts, those that are written in words too, as one may be all that makes it another notice.
Of a longer text they are runs of digits, of which there is kept a sample and what all of them come to: two pages with
the same come to the same.
"""

from __future__ import annotations

import struct
from collections.abc import Set
from typing import NamedTuple

from scrapy_neardup.text.cut import CutText
from scrapy_neardup.text.tokens import numbers

#: Different shingles of a text that is short, at most.
SHORT = 400
#: Numbers that are kept of a longer text, at most: their count has a byte, and counts what all of them come to as well.
_MOST = 254
#: Different numbers that a longer text must have to say anything: of fewer, two texts have the same ones by chance.
_FEW = 5


class Numbers(NamedTuple):
    """Hashes of some of a text's numbers, 16 bits each, and of a longer text what ``all`` of them come to, or else 0.

    As bytes, big-endian: of a longer text H all · H per number.
    """

    some: frozenset[int] = frozenset()
    all: int = 0
    is_long: bool = False

    @staticmethod
    def packed(own: CutText, shingles: int, most: int) -> bytes:
        """As bytes, those of a text with so many different shingles; ``most`` numbers of it."""
        return own.numbers(min(most, _MOST)) if shingles > SHORT else _short(own, most)

    def pack(self) -> bytes:
        """As bytes."""
        found = [self.all] * (self.is_long and bool(self.some)) + sorted(self.some)
        return struct.pack(f">{len(found)}H", *found)

    @classmethod
    def unpack(cls, found: tuple[int, ...], shingles: int) -> Numbers:
        """Read them, of a text with so many different shingles."""
        if shingles <= SHORT:
            return cls(frozenset(found))
        return cls(frozenset(found[1:]), found[0], True) if found else cls(is_long=True)

    def same(self, other: Numbers) -> bool:
        """Whether two longer texts have the very same numbers, and enough for that to say anything."""
        return self.is_long and len(self.some) >= _FEW and self == other

    def missing(self, other: Numbers) -> float:
        """The share of the fewer numbers that the other text has not; 0 where there is nothing to contradict."""
        if self.is_long != other.is_long or not (self.some and other.some):
            return 0.0
        if not self.is_long:
            return _missing(self.some, other.some)
        # Of either there may be more that are larger than what is kept.
        known = min(max(self.some), max(other.some))
        ours, theirs = ({one for one in numbers.some if one <= known} for numbers in (self, other))
        return _missing(ours, theirs) if min(len(ours), len(theirs)) >= _FEW else 0.0


def _missing(one: Set[int], other: Set[int]) -> float:
    return 1.0 - len(one & other) / min(len(one), len(other))


def _short(own: CutText, most: int) -> bytes:
    """Of more than ``most`` those with the smallest fingerprints; the lowest bit says that it is written in digits."""
    smallest = sorted((own.hashes.of(one), one.isdigit()) for one in set(numbers(own.text)))[:most]
    found = {whole & 0xFFFE | digits for whole, digits in smallest}
    return struct.pack(f">{len(found)}H", *sorted(found))
