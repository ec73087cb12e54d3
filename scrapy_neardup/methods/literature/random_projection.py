"""Random projection: the signs of many random sums over a page's words, compared bit by bit.

Part 4 of the article 网页文本的排重算法: each word has a random vector; the vectors of a page's words are added up, and
the number of equal bits judges two pages. Charikar 2002 ("Similarity estimation techniques from rounding algorithms")
proves that a bit of two pages is equal with probability ``1 - angle / pi``, where angle lies between their vectors of
word frequencies. So the default limit, 0.92 of the bits, means a cosine of 0.97; the standard deviation of the share of
256 bits is 0.017. The method is ``simhash`` with more bits and a limit on their share.

Differences: a word's vector, of +1 and -1, comes from its hash and is never stored, so it is the same in every process.
A page is not compared with all others: each of ``tables`` keys is a run of ``key_bits`` bits. Two pages with a share s
of equal bits have a common key with probability ``1 - (1 - s**key_bits)**tables``. For 16 runs of 16 bits that is 0.99
at 0.92, 0.96 at 0.9 and 0.37 at 0.8, so a lower limit needs narrower runs.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing import mix64
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.hashing.projections import sign_bits
from scrapy_neardup.methods.base import Parameters, decides, file, number, whole
from scrapy_neardup.methods.literature.published import Agreement, PublishedMethod, Text, word_counts
from scrapy_neardup.model import Fingerprint

_STEP = 0xA0761D6478BD642F


@dataclass(frozen=True, slots=True)
class RandomProjectionParameters(Parameters):
    """The parameters of ``random_projection``."""

    method: ClassVar[str] = "random_projection"

    #: The number of bits of a fingerprint, a multiple of 64.
    bits: int = whole(256, 64, 4096)
    #: The smallest share of equal bits of two duplicates. Unrelated pages agree in half of the bits.
    similarity: float = decides(number(0.92, 0.5))
    #: The number of keys of a page.
    tables: int = whole(16, 1, 255)
    #: The number of bits of a key. Fewer pages share a wide key, whether they are duplicates or not.
    key_bits: int = whole(16, 1, 64)
    #: The path of a file of stop words, one a line; empty for the short list of this package.
    stop_words: str = file("a list of stop words")

    def _check(self) -> None:
        if self.bits % 64:
            raise SettingsError(f"random_projection: bits must be a multiple of 64, not {self.bits}.")


class RandomProjection(PublishedMethod):
    """Compares signs of sums of random vectors."""

    name: ClassVar[str] = "random_projection"
    version: ClassVar[int] = 1
    parameters_type: ClassVar[type[Parameters]] = RandomProjectionParameters
    parameters: RandomProjectionParameters
    threshold: ClassVar[str] = "similarity"
    sweep: ClassVar[tuple[float, ...]] = (0.8, 0.84, 0.86, 0.88, 0.9, 0.92, 0.94, 0.96, 0.98)
    #: A key alone says little: many pages share one, and all must be compared.
    common: ClassVar[int] = 1024
    candidates: ClassVar[int] = 4096

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """One key per table; the signature is the signs, the first one in the highest bit."""
        p = self.parameters
        counts = word_counts(text.body, p.stop_words)
        if not counts:
            return (), b""
        value = _signs(self.hashes.each(counts), np.fromiter(counts.values(), np.int64, len(counts)), p.bits)
        return _runs(value, p.bits, p.tables, p.key_bits, self.hashes), value.to_bytes(p.bits // 8, "big")

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """The share of equal bits. A page without a word is like no other."""
        if not (one and other):
            return Agreement(0.0, duplicate=False)
        different = (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).bit_count()
        similarity = 1.0 - different / self.parameters.bits
        return Agreement(similarity, similarity >= self.parameters.similarity)


def _signs(hashes: npt.NDArray[np.uint64], weights: npt.NDArray[np.int64], bits: int) -> int:
    """Return ``bits`` signs; every 64 of them mix the words' hashes anew."""
    value = 0
    for block in range(1, bits // 64 + 1):
        value = value << 64 | sign_bits(mix64(hashes ^ np.uint64(block * _STEP % 2**64)), weights)
    return value


def _runs(value: int, bits: int, tables: int, width: int, hashes: Keyed) -> list[int]:
    """Return the keys: runs of ``width`` bits at equal distances, wrapping around at the end."""
    doubled, mask = value << bits | value, (1 << width) - 1
    return [
        hashes.place(f"random projection {table} {doubled >> table * bits // tables & mask:x}")
        for table in range(tables)
    ]
