"""The lines and headlines of a page that was read from HTML: what tells pages of one site apart.

Two pages of one site share its form, so what they share is weak evidence. What the one shows and the other does not is
better: a line of text of its own, another headline. A sample of the lines is enough: those with the smallest
fingerprints, so that two pages sample the same ones (bottom-k sketch, Cohen and Kaplan 2007).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scrapy_neardup.text.cut import CutText

#: Lines that are kept of a page, and headlines.
SAMPLE = 32
_MAX_HEADLINES = 8
_MAX_LETTERS = 255


@dataclass(frozen=True, slots=True)
class Lines:
    """``lines``: 32-bit fingerprint to letters (255 at most); ``headlines``: fingerprints of title and h1.

    As bytes, big-endian: B number of headlines · B of lines · I per headline · I per line · B letters of each line.
    """

    headlines: frozenset[int]
    lines: Mapping[int, int]

    @classmethod
    def packed(cls, own: CutText, headlines: Iterable[str]) -> bytes:
        """As bytes, those of a page: a sample of its own lines."""
        letters = np.minimum(own.lengths(), _MAX_LETTERS).tolist()
        known: dict[int, int] = dict(zip(own.shorts().tolist(), letters, strict=True))
        told = sorted({own.hashes.short(headline) for headline in headlines if headline})
        return _packed(told[:_MAX_HEADLINES], sorted(known)[:SAMPLE], known)

    @property
    def reach(self) -> int:
        """Up to which fingerprint all lines of the page are in the sample."""
        return max(self.lines) if len(self.lines) == SAMPLE else 2**32 - 1

    def pack(self) -> bytes:
        """As bytes."""
        return _packed(sorted(self.headlines), sorted(self.lines), self.lines)

    @classmethod
    def unpack(cls, packed: bytes) -> tuple[Lines, bytes]:
        """Read them, and what follows them."""
        headlines, lines = packed[0], packed[1]
        end = 2 + 4 * (headlines + lines)
        found = struct.unpack_from(f">{headlines + lines}I", packed, 2)
        letters = packed[end : end + lines]
        own = dict(zip(found[headlines:], letters, strict=True))
        return cls(frozenset(found[:headlines]), own), packed[end + lines :]


def _packed(headlines: Sequence[int], lines: Sequence[int], letters: Mapping[int, int]) -> bytes:
    count = len(headlines), len(lines)
    head = struct.pack(f">BB{sum(count)}I", *count, *headlines, *lines)
    return head + bytes([letters[one] for one in lines])
