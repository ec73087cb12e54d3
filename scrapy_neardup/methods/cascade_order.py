"""In which order the sentences of a page stand: two bytes a sentence, and it can be told where in it a text stands.

A sketch of shingles says how much two pages share, and not where. This says whether they open alike, and whether what a
sentence says stands in the other page.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from scrapy_neardup.text.cut import CutText

_T = TypeVar("_T")
#: Sentences that are kept from the beginning of a page, and from its end.
_FIRST, _LAST = 16, 8
#: The bits of its hash by which a sentence is known.
_BITS = 0xFFFF
#: Sentences that are the opening of a page.
_OPENING = 3


class Order(NamedTuple):
    """16-bit fingerprints of the sentences, in their order; of a long page of the first and last ones.

    As bytes, big-endian: B number · H per sentence.
    """

    sentences: tuple[int, ...]

    @classmethod
    def packed(cls, own: CutText) -> bytes:
        """As bytes, those of a page's own sentences."""
        ends = own.ends(_FIRST, _LAST)
        return bytes((len(ends) // 2,)) + ends

    def pack(self) -> bytes:
        """As bytes."""
        return struct.pack(f">B{len(self.sentences)}H", len(self.sentences), *self.sentences)

    @classmethod
    def unpack(cls, packed: bytes) -> tuple[Order, bytes]:
        """Read them, and what follows them."""
        end = 1 + 2 * packed[0]
        return cls(struct.unpack_from(f">{packed[0]}H", packed, 1)), packed[end:]

    def opens_like(self, other: Order) -> bool:
        """Whether a sentence of the opening of either stands in the other one."""
        ours, theirs = set(self.sentences), set(other.sentences)
        return not (ours.isdisjoint(other.sentences[:_OPENING]) and theirs.isdisjoint(self.sentences[:_OPENING]))


def known_in_order(own: CutText) -> list[int]:
    """The 16 bits by which each sentence is known in an order."""
    found: list[int] = (own.shorts() & _BITS).tolist()
    return found


def kept(lines: Sequence[_T]) -> Sequence[_T]:
    """Those of a page's sentences of which the order is kept."""
    return lines if len(lines) <= _FIRST + _LAST else [*lines[:_FIRST], *lines[-_LAST:]]
