"""SimHash: similar texts have fingerprints that differ in few bits.

Charikar 2002 ("Similarity estimation techniques from rounding algorithms") and Manku, Jain and Das Sarma 2007
("Detecting near-duplicates for web crawling"): the hash of each feature votes for each of 64 bits, with the feature's
weight. Two pages are duplicates if their fingerprints differ in at most ``distance`` bits. The verdict is the
Single-Pass clustering of the Chinese paper on SimHash: a page joins the nearest earlier centre within the distance, or
is a new centre.

Differences: the feature hash is BLAKE2b under the secret of the state. SDBM, the paper's choice (``hash="sdbm"``), is a
polynomial in 65599: the bits of short words follow their last characters, and unrelated pages come within 3 bits. Also,
anyone can find words with the same SDBM hash. The article's code takes the last 64 bits of a 128-bit string hash.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from math import comb
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing.classic import CLASSIC, classic_hashes
from scrapy_neardup.hashing.projections import sign_bits
from scrapy_neardup.methods.base import Parameters, choice, file, whole
from scrapy_neardup.methods.literature.published import Agreement, PublishedMethod, Text, top_tfidf, word_counts
from scrapy_neardup.model import Fingerprint
from scrapy_neardup.text.lexicon import lexicon
from scrapy_neardup.text.shingles import shingles

_BITS = 64


@dataclass(frozen=True, slots=True)
class SimHashParameters(Parameters):
    """The parameters of ``simhash``."""

    method: ClassVar[str] = "simhash"

    #: The largest Hamming distance of two duplicates, in bits.
    distance: int = whole(3, 0, 8)
    #: The number of blocks of a fingerprint. A table for each choice of ``blocks - distance`` blocks finds every
    #: fingerprint within the distance: with distance 3, 4 blocks make 4 tables of 16 bits, and 6 blocks make 20 tables
    #: of 32 bits. Fewer pages share a wide key, which helps in states of more than some 100,000 pages. 0: as few blocks
    #: as make keys of 16 bits.
    blocks: int = whole(0, 0, 64)
    #: ``words`` takes all words with their frequency, ``tfidf`` the ``top`` words by TF-IDF, ``characters`` takes
    #: shingles of ``n`` letters.
    features: str = choice("words", "words", "tfidf", "characters")
    #: The number of words with ``tfidf``.
    top: int = whole(50, 1, 10_000)
    #: The length of a shingle with ``characters``.
    n: int = whole(4, 1, 64)
    #: The hash of a word. Shingles always use BLAKE2b.
    hash: str = choice("blake2b", "blake2b", *CLASSIC)
    #: The path of a file of stop words, one a line; empty for the short list of this package.
    stop_words: str = file("a list of stop words")
    #: The path of a file of word frequencies, see ``scrapy neardup lexicon``; empty for jieba's table.
    lexicon: str = file("a lexicon")

    def _check(self) -> None:
        if not self.distance < (self.blocks or self.distance + 1):
            raise SettingsError(f"simhash: blocks must be greater than distance ({self.distance}), not {self.blocks}.")
        if comb(self.blocks, self.distance) > 255:
            raise SettingsError(
                f"simhash: blocks is {self.blocks}, which needs more than 255 tables. Use fewer blocks."
            )
        if self.features == "characters" and self.hash != "blake2b":
            raise SettingsError("simhash: features 'characters' work only with hash 'blake2b'. Set hash to 'blake2b'.")

    @property
    def tables(self) -> tuple[int, ...]:
        """The bit masks of the tables' keys."""
        return _tables(self.blocks or max(1, -(-4 * self.distance // 3)), self.distance)


class SimHash(PublishedMethod):
    """Compares 64 signs of summed feature hashes by Hamming distance."""

    name: ClassVar[str] = "simhash"
    version: ClassVar[int] = 1
    parameters_type: ClassVar[type[Parameters]] = SimHashParameters
    parameters: SimHashParameters
    threshold: ClassVar[str] = "distance"
    sweep: ClassVar[tuple[float, ...]] = (8, 7, 6, 5, 4, 3, 2, 1, 0)
    #: A block alone says little: many fingerprints share one, and all must be compared.
    common: ClassVar[int] = 1024
    candidates: ClassVar[int] = 4096

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """One key per table; the signature is the fingerprint, 8 bytes."""
        hashes, weights = self._features(text)
        if not len(hashes):
            return (), bytes(8)
        value = sign_bits(hashes, weights)
        return self.keys(value), value.to_bytes(8, "big")

    def keys(self, value: int) -> list[int]:
        """Return the key of a fingerprint for each table."""
        return [
            self.hashes.place(f"simhash {table} {value & mask:016x}")
            for table, mask in enumerate(self.parameters.tables)
        ]

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """The share of equal bits. A page without a feature is like no other."""
        if not any(one) or not any(other):
            return Agreement(0.0, duplicate=False)
        distance = (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).bit_count()
        return Agreement(1.0 - distance / _BITS, distance <= self.parameters.distance)

    def _features(self, text: Text) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64] | None]:
        p = self.parameters
        if p.features == "characters":
            return shingles(text.letters, p.n, self.hashes), None
        counts = word_counts(text.body, p.stop_words)
        if p.features == "words":
            weights = np.fromiter(counts.values(), np.int64, len(counts))
            return self._hashes(list(counts)), weights
        top = top_tfidf(counts, lexicon(p.lexicon), p.top)
        # Whole numbers (1024ths) have the same sum on every machine.
        return self._hashes(list(top)), np.array([round(weight * 1024) for weight in top.values()], np.int64)

    def _hashes(self, words: list[str]) -> npt.NDArray[np.uint64]:
        return (
            self.hashes.each(words)
            if self.parameters.hash == "blake2b"
            else classic_hashes(self.parameters.hash, words, 64)
        )


@lru_cache(maxsize=16)
def _tables(blocks: int, distance: int) -> tuple[int, ...]:
    """Return the masks of all choices of ``blocks - distance`` blocks; one of them has no differing bit.

    >>> [f"{mask:016x}" for mask in _tables(4, 3)]
    ['000000000000ffff', '00000000ffff0000', '0000ffff00000000', 'ffff000000000000']
    """
    ends = [_BITS * block // blocks for block in range(blocks + 1)]
    masks = [(1 << end) - (1 << start) for start, end in pairwise(ends)]
    return tuple(sum(chosen) for chosen in combinations(masks, blocks - distance))
