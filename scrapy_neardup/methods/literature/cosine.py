"""Cosine: word vectors weighted by TF-IDF, compared exactly. The yardstick for the faster methods.

This is the vector space model (Salton, Wong and Yang 1975). The article 网页文本的排重算法 (part 7) and the Chinese
paper on SimHash call it accurate and too slow. A prefix filter (Bayardo, Ma and Srikant 2007, "Scaling up all pairs
similarity search") finds every pair without comparing all pages. All pages have their words in one order, the rarest
first. A page is filed under its first words, until the rest of its vector is shorter than ``similarity``. If the first
common word of two pages were in one's rest, so would be all common words, and the cosine would be less than that rest's
length.

A page is filed under at most 255 words. At the default limit only pages of tens of thousands of characters have a
longer prefix. Such a page is sure to meet only pages whose cosine with it is at least the length of its remaining
vector.

A vector shows the topic of a page and not its wording. Pages of one topic or one form reach 0.9, so the default limit
is 0.96. The prefix depends on the lexicon: a lexicon that knows the language means fewer comparisons. Words that many
pages share are looked up too, so the time per page grows with the number of pages. Each different word takes 8 bytes,
so the state is in memory only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from scrapy_neardup.methods.base import Parameters, file, number
from scrapy_neardup.methods.literature.published import Agreement, PublishedMethod, Text, word_counts
from scrapy_neardup.model import Fingerprint
from scrapy_neardup.text.lexicon import lexicon

#: Most keys of a record.
_KEYS = 255
#: Tolerance: weights are rounded to 24 bits and cosines to 6 decimals.
_MARGIN = 1e-6


@dataclass(frozen=True, slots=True)
class CosineParameters(Parameters):
    """The parameters of ``cosine``."""

    method: ClassVar[str] = "cosine"

    #: The smallest cosine of two duplicates.
    similarity: float = number(0.96, 0.1)
    #: The path of a file of stop words, one a line; empty for the short list of this package.
    stop_words: str = file("a list of stop words")
    #: The path of a file of word frequencies, see ``scrapy neardup lexicon``; empty for jieba's table.
    lexicon: str = file("a lexicon")


class Cosine(PublishedMethod):
    """The cosine of two pages' TF-IDF vectors."""

    name: ClassVar[str] = "cosine"
    version: ClassVar[int] = 1
    parameters_type: ClassVar[type[Parameters]] = CosineParameters
    parameters: CosineParameters
    threshold: ClassVar[str] = "similarity"
    sweep: ClassVar[tuple[float, ...]] = (0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.96, 0.97, 0.98)
    #: Every key counts, and every candidate is compared.
    common: ClassVar[int] = 1_000_000
    candidates: ClassVar[int] = 1_000_000
    memory_only: ClassVar[bool] = True

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """The keys are the words of the prefix; the signature has the 32-bit hash and the weight of each word."""
        p = self.parameters
        counts, table = word_counts(text.body, p.stop_words), lexicon(p.lexicon)
        idf = np.array([table.weight(word) for word in counts], np.float64)
        return signature(self.hashes.each(counts), idf, np.array(list(counts.values()), np.float64), p.similarity)

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """The cosine, to 6 decimals. A page without a word of any weight is like no other."""
        similarity = cosine(one, other)
        return Agreement(similarity, bool(one and other) and similarity >= self.parameters.similarity)


def signature(
    hashes: npt.NDArray[np.uint64], idf: npt.NDArray[np.float64], times: npt.NDArray[np.float64], similarity: float
) -> tuple[list[int], bytes]:
    """Return keys and vector for different words, from their hashes, IDF and frequencies.

    The keys are the hashes of the prefix's words: two vectors with a cosine of at least ``similarity`` share one, if
    neither prefix is longer than 255 words.
    """
    rarest_first = np.lexsort((hashes, -idf))
    rarest_first = rarest_first[idf[rarest_first] > 0]  # a word of every page has no weight
    if not len(rarest_first):
        return [], b""
    whole = (times * idf)[rarest_first]
    # fsum gives the same sum on every machine, in any order.
    weights = (whole / math.sqrt(math.fsum(whole * whole))).astype(np.float32)
    ordered = hashes[rarest_first]
    keys: list[int] = ordered[: min(_KEYS, prefix(weights, similarity))].tolist()
    return keys, _pack(ordered, weights)


def prefix(weights: npt.NDArray[np.float32], similarity: float) -> int:
    """Return how many weights to take until the rest of a vector is shorter than ``similarity``.

    >>> prefix(np.array([0.6, 0.0, 0.8], np.float32), 0.9), prefix(np.array([0.6, 0.0, 0.8], np.float32), 0.7)
    (1, 3)
    """
    rests = np.cumsum(np.square(weights[::-1], dtype=np.float64))
    return int(np.count_nonzero(np.sqrt(rests) >= similarity - _MARGIN))


def cosine(one: bytes, other: bytes) -> float:
    """Return the cosine of two packed vectors of length 1, in [0, 1], to 6 decimals; 0 if one is empty.

    In the sorted union a common word stands twice in a row, with its two weights.
    """
    merged = np.sort(np.frombuffer(one + other, "<u8"))
    weights, words = merged.view("<f4")[::2].astype(np.float64), merged.view("<u4")[1::2]
    return min(1.0, round(float(np.dot(weights[1:] * weights[:-1], words[1:] == words[:-1])), 6))


def _pack(hashes: npt.NDArray[np.uint64], weights: npt.NDArray[np.float32]) -> bytes:
    """Pack the upper half of each hash with its weight in 8 bytes, ascending.

    If two words share a half (one pair in some 20,000 pages), the heavier stays.
    """
    entries = np.sort(hashes >> np.uint64(32) << np.uint64(32) | weights.view(np.uint32))
    places = entries >> np.uint64(32)
    packed: bytes = entries[np.append(places[1:] != places[:-1], True)].astype("<u8").tobytes()
    return packed
