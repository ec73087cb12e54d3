"""Cosine: word vectors weighted by TF-IDF, compared exactly. The yardstick for the faster methods.

The vector space model (Salton, Wong and Yang 1975). The article 网页文本的排重算法 (part 7) and the Chinese paper on
SimHash both name it as accurate and too slow. So that no pair is missed and yet not all are compared, pages are found
by a prefix filter (Bayardo, Ma and Srikant 2007, "Scaling up all pairs similarity search"): words are put in one order
for all pages, the rarest first, and a page is filed under its first ones, up to where the rest of its vector is shorter
than ``similarity``. Take the first word that two pages share: were it in one's rest, so would be all that they share,
and their cosine would be less than that rest's length.

A page is filed under at most 255 words. One with a longer prefix, at the default limit of tens of thousands of
characters, is sure to meet only those pages whose cosine with it is at least the length of what remains after them.

The vector tells what a page is about, not how it says it: pages of one topic or one form reach 0.9, so the default
limit is as strict as 0.96. The prefix follows the lexicon: the better that knows the language, the fewer pages are
compared. Words that many pages share are looked up all the same, so the time a page takes grows with the number of
pages; and as a page keeps 8 bytes for every different word, the state is in memory only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from scrapy_neardup.methods.base import Parameters, file, number
from scrapy_neardup.methods.published import Agreement, PublishedMethod, Text, word_counts
from scrapy_neardup.model import Fingerprint
from scrapy_neardup.text.lexicon import lexicon

#: Keys that a record can hold.
_KEYS = 255
#: Weights are rounded to 24 bits and cosines to 6 decimals; a rest must be shorter by this than a cosine can be.
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
    #: Nothing is left out.
    common: ClassVar[int] = 1_000_000
    candidates: ClassVar[int] = 1_000_000
    memory_only: ClassVar[bool] = True

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """The prefix's words; of each word its 32-bit hash with its weight, in ascending order of the hashes."""
        p = self.parameters
        counts, table = word_counts(text.body, p.stop_words), lexicon(p.lexicon)
        idf = np.array([table.weight(word) for word in counts], np.float64)
        return signature(self.hashes.each(counts), idf, np.array(list(counts.values()), np.float64), p.similarity)

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """The cosine, to 6 decimals. A page without a word, or with none that tells anything, is like no other."""
        similarity = cosine(one, other)
        return Agreement(similarity, bool(one and other) and similarity >= self.parameters.similarity)


def signature(
    hashes: npt.NDArray[np.uint64], idf: npt.NDArray[np.float64], times: npt.NDArray[np.float64], similarity: float
) -> tuple[list[int], bytes]:
    """The keys and the vector of different words, given their hashes, their IDF and how often each stands there.

    The keys are the hashes of the words of the prefix: two vectors whose cosine is at least ``similarity`` have one in
    common, if neither prefix is longer than 255 words.
    """
    rarest_first = np.lexsort((hashes, -idf))
    rarest_first = rarest_first[idf[rarest_first] > 0]  # a word that every page has tells nothing
    if not len(rarest_first):
        return [], b""
    whole = (times * idf)[rarest_first]
    # fsum: the same on every machine, whatever the order in which its processor adds.
    weights = (whole / math.sqrt(math.fsum(whole * whole))).astype(np.float32)
    ordered = hashes[rarest_first]
    keys: list[int] = ordered[: min(_KEYS, prefix(weights, similarity))].tolist()
    return keys, _packed(ordered, weights)


def prefix(weights: npt.NDArray[np.float32], similarity: float) -> int:
    """How many of the first weights of a vector leave a rest that is shorter than ``similarity``.

    >>> prefix(np.array([0.6, 0.0, 0.8], np.float32), 0.9), prefix(np.array([0.6, 0.0, 0.8], np.float32), 0.7)
    (1, 3)
    """
    rests = np.cumsum(np.square(weights[::-1], dtype=np.float64))
    return int(np.count_nonzero(np.sqrt(rests) >= similarity - _MARGIN))


def cosine(one: bytes, other: bytes) -> float:
    """The cosine of two packed vectors of length 1, in [0, 1], to 6 decimals; 0 if one is empty.

    Sorted together, a word that both have stands twice in a row, with its two weights.
    """
    merged = np.sort(np.frombuffer(one + other, "<u8"))
    weights, words = merged.view("<f4")[::2].astype(np.float64), merged.view("<u4")[1::2]
    return min(1.0, round(float(np.dot(weights[1:] * weights[:-1], words[1:] == words[:-1])), 6))


def _packed(hashes: npt.NDArray[np.uint64], weights: npt.NDArray[np.float32]) -> bytes:
    """The upper half of each hash with the weight's bits below it, in 8 bytes and ascending; each half once.

    Of two words with the same half, one pair in some 20,000 pages, the lighter one is left out.
    """
    entries = np.sort(hashes >> np.uint64(32) << np.uint64(32) | weights.view(np.uint32))
    places = entries >> np.uint64(32)
    packed: bytes = entries[np.append(places[1:] != places[:-1], True)].astype("<u8").tobytes()
    return packed
