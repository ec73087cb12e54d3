"""Methods on the vector of a text's weighted words: signs of random projections of it, and its cosine."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise

import numpy as np
import numpy.typing as npt

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing import mix64
from scrapy_neardup.hashing.classic import CLASSIC, classic_hash
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.hashing.projections import sign_bits
from scrapy_neardup.methods.base import Parameters, choice, decides, file, number, whole
from scrapy_neardup.methods.literature.base import Agreement, PublishedMethod, Text, word_counts
from scrapy_neardup.model import Fingerprint
from scrapy_neardup.text.lexicon import read_lexicon, read_stop_words

#: Bits of the fingerprint of ``simhash``.
_BITS = 64


@dataclass(frozen=True, slots=True)
class SimHashParameters(Parameters):
    """The parameters of ``simhash``."""

    #: The largest Hamming distance of two duplicates, in bits.
    distance: int = whole(3, 0, 8)
    #: The number of blocks of a fingerprint. A table for each choice of ``blocks - distance`` blocks finds every
    #: fingerprint within the distance: with distance 3, 4 blocks make 4 tables of 16 bits, and 6 blocks make 20 tables
    #: of 32 bits. Fewer pages share a wide key, which helps in states of more than some 100,000 pages. 0: as few blocks
    #: as make keys of 16 bits.
    blocks: int = whole(0, 0, 64)
    #: ``words`` takes all words with their frequency, ``tfidf`` the ``top`` words by TF-IDF.
    features: str = choice("words", "words", "tfidf")
    #: The number of words with ``tfidf``.
    top: int = whole(50, 1, 10_000)
    #: The hash of a word.
    hash: str = choice("blake2b", "blake2b", *CLASSIC)
    #: The path of a file of stop words, one a line; empty for the short list of this package.
    stop_words: str = file("a list of stop words", read_stop_words)
    #: The path of a file of lines of a word, a space and its inverse document frequency; empty for jieba's table.
    lexicon: str = file("a lexicon", read_lexicon)

    def _check(self) -> None:
        if not self.distance < (self.blocks or self.distance + 1):
            raise SettingsError(f"simhash: blocks must be greater than distance ({self.distance}), not {self.blocks}.")
        if math.comb(self.blocks, self.distance) > 255:
            raise SettingsError(
                f"simhash: blocks is {self.blocks}, which needs more than 255 tables. Use fewer blocks."
            )

    @property
    def tables(self) -> tuple[int, ...]:
        """The bit masks of the tables' keys."""
        return _tables(self.blocks or max(1, -(-4 * self.distance // 3)), self.distance)


class SimHash(PublishedMethod):
    """SimHash: similar texts have fingerprints that differ in few bits.

    Charikar 2002 ("Similarity estimation techniques from rounding algorithms") and Manku, Jain and Das Sarma 2007
    ("Detecting near-duplicates for web crawling"): the hash of each feature votes for each of 64 bits, with the
    feature's weight. Two pages are duplicates if their fingerprints differ in at most ``distance`` bits. The verdict is
    the Single-Pass clustering of the Chinese paper on SimHash: a page joins the nearest earlier centre within the
    distance, or is a new centre.

    Differences: the feature hash is BLAKE2b under the secret of the state. SDBM, the paper's choice (``hash="sdbm"``),
    is a polynomial in 65599: the bits of short words follow their last characters, and unrelated pages come within 3
    bits. Also, anyone can find words with the same SDBM hash. The article's code takes the last 64 bits of a 128-bit
    string hash.
    """

    name = "simhash"
    parameters_type = SimHashParameters
    parameters: SimHashParameters
    #: One block says little: many fingerprints share one, and all must be compared.
    common = 1024
    candidates = 4096

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """One key per table; the signature is the fingerprint, 8 bytes."""
        hashes, weights = self._features(text)
        if not len(hashes):
            return (), bytes(8)
        value, tables = sign_bits(hashes, weights), enumerate(self.parameters.tables)
        keys = [self.hashes.place(f"simhash {table} {value & mask:016x}") for table, mask in tables]
        return keys, value.to_bytes(8, "big")

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        similarity = _equal_share(one, other)
        return Agreement(similarity, similarity >= 1.0 - self.parameters.distance / _BITS)

    def _features(self, text: Text) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        p = self.parameters
        weights = word_counts(text.body, p.stop_words)
        if p.features == "tfidf":
            idf = read_lexicon(p.lexicon).weight
            found = sorted((-times * idf(word), word) for word, times in weights.items() if len(word) > 1)
            # Whole numbers (1024ths) have the same sum on every machine.
            weights = {word: round(-weight * 1024) for weight, word in found[: p.top]}
        words = list(weights)
        if p.hash == "blake2b":
            hashes = self.hashes.each(words)
        else:
            hashes = np.array([classic_hash(p.hash, word, _BITS) for word in words], np.uint64)
        return hashes, np.array(list(weights.values()), np.int64)


@lru_cache(maxsize=16)
def _tables(blocks: int, distance: int) -> tuple[int, ...]:
    """Return the masks of all choices of ``blocks - distance`` blocks; one of them has no differing bit.

    >>> [f"{mask:016x}" for mask in _tables(4, 3)]
    ['000000000000ffff', '00000000ffff0000', '0000ffff00000000', 'ffff000000000000']
    """
    ends = [_BITS * block // blocks for block in range(blocks + 1)]
    masks = [(1 << end) - (1 << start) for start, end in pairwise(ends)]
    return tuple(sum(chosen) for chosen in combinations(masks, blocks - distance))


def _equal_share(one: bytes, other: bytes) -> float:
    """Return the share of equal bits of two fingerprints; 0 if one is of a page without a word, all zeros."""
    if not (any(one) and any(other)):
        return 0.0
    different = (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).bit_count()
    return 1.0 - different / (8 * len(one))


_STEP = 0xA0761D6478BD642F


@dataclass(frozen=True, slots=True)
class RandomProjectionParameters(Parameters):
    """The parameters of ``random_projection``."""

    #: The number of bits of a fingerprint, a multiple of 64.
    bits: int = whole(256, 64, 4096, step=64)
    #: The smallest share of equal bits of two duplicates. Unrelated pages agree in half of the bits.
    similarity: float = decides(number(0.92, 0.5))
    #: The number of keys of a page.
    tables: int = whole(16, 1, 255)
    #: The number of bits of a key. Fewer pages share a wide key, whether they are duplicates or not.
    key_bits: int = whole(16, 1, 64)
    #: The path of a file of stop words, one a line; empty for the short list of this package.
    stop_words: str = file("a list of stop words", read_stop_words)


class RandomProjection(PublishedMethod):
    """Random projection: the signs of many random sums over a page's words, compared bit by bit.

    Part 4 of the article 网页文本的排重算法: each word has a random vector; the vectors of a page's words are added up,
    and the number of equal bits judges two pages. Charikar 2002 ("Similarity estimation techniques from rounding
    algorithms") proves that a bit of two pages is equal with probability ``1 - angle / pi``, where angle lies between
    their vectors of word frequencies. So the default limit, 0.92 of the bits, means a cosine of 0.97; the standard
    deviation of the share of 256 bits is 0.017. The method is ``simhash`` with more bits and a limit on their share.

    Differences: a word's vector, of +1 and -1, comes from its hash and is never stored, so it is the same in every
    process. A page is not compared with all others: each of ``tables`` keys is a run of ``key_bits`` bits. Two pages
    with a share s of equal bits have a common key with probability ``1 - (1 - s**key_bits)**tables``. For 16 runs of 16
    bits that is 0.99 at 0.92, 0.96 at 0.9 and 0.37 at 0.8, so a lower limit needs narrower runs.
    """

    name = "random_projection"
    parameters_type = RandomProjectionParameters
    parameters: RandomProjectionParameters
    #: One key says little: many pages share one, and all must be compared.
    common = 1024
    candidates = 4096

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """One key per table; the signature is the signs, the first one in the highest bit."""
        p = self.parameters
        counts = word_counts(text.body, p.stop_words)
        if not counts:
            return (), b""
        value = project(self.hashes.each(counts), np.fromiter(counts.values(), np.int64, len(counts)), p.bits)
        return cut_keys(value, p.bits, p.tables, p.key_bits, self.hashes), value.to_bytes(p.bits // 8, "big")

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        similarity = _equal_share(one, other)
        return Agreement(similarity, similarity >= self.parameters.similarity)


def project(hashes: npt.NDArray[np.uint64], weights: npt.NDArray[np.int64], bits: int) -> int:
    """Return ``bits`` signs of random sums; every 64 of them mix the words' hashes again."""
    value = 0
    for block in range(1, bits // 64 + 1):
        value = value << 64 | sign_bits(mix64(hashes ^ np.uint64(block * _STEP % 2**64)), weights)
    return value


def cut_keys(value: int, bits: int, tables: int, width: int, hashes: Keyed) -> list[int]:
    """Return the keys: runs of ``width`` bits at equal distances, wrapping around at the end."""
    doubled, mask = value << bits | value, (1 << width) - 1
    return [
        hashes.place(f"random projection {table} {doubled >> table * bits // tables & mask:x}")
        for table in range(tables)
    ]


#: Most keys of a record.
_KEYS = 255
#: Tolerance: weights are rounded to 24 bits and cosines to 6 decimals.
_MARGIN = 1e-6


@dataclass(frozen=True, slots=True)
class CosineParameters(Parameters):
    """The parameters of ``cosine``."""

    #: The smallest cosine of two duplicates.
    similarity: float = number(0.96, 0.1)
    #: The path of a file of stop words, one a line; empty for the short list of this package.
    stop_words: str = file("a list of stop words", read_stop_words)
    #: The path of a file of lines of a word, a space and its inverse document frequency; empty for jieba's table.
    lexicon: str = file("a lexicon", read_lexicon)


class Cosine(PublishedMethod):
    """Cosine: word vectors weighted by TF-IDF, compared exactly. The yardstick for the faster methods.

    This is the vector space model (Salton, Wong and Yang 1975). The article 网页文本的排重算法 (part 7) and the Chinese
    paper on SimHash call it accurate and too slow. A prefix filter (Bayardo, Ma and Srikant 2007, "Scaling up all pairs
    similarity search") finds every pair without comparing all pages. All pages have their words in one order, the
    rarest first. A page is filed under its first words, until the rest of its vector is shorter than ``similarity``. If
    the first common word of two pages were in one's rest, so would be all common words, and the cosine would be less
    than that rest's length.

    A page is filed under at most 255 words. At the default limit only pages of tens of thousands of characters have a
    longer prefix. Such a page is sure to meet only pages whose cosine with it is at least the length of its remaining
    vector.

    A vector shows the topic of a page and not its wording. Pages of one topic or one form reach 0.9, so the default
    limit is 0.96. The prefix depends on the lexicon: a lexicon that knows the language means fewer comparisons. Words
    that many pages share are looked up too, so the time per page grows with the number of pages. Each different word
    takes 8 bytes, so the state is in memory only.
    """

    name = "cosine"
    parameters_type = CosineParameters
    parameters: CosineParameters
    #: Every key counts, and every candidate is compared.
    common = 1_000_000
    candidates = 1_000_000
    memory_only = True

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """The keys are the words of the prefix; the signature has the 32-bit hash and the weight of each word."""
        p = self.parameters
        counts, table = word_counts(text.body, p.stop_words), read_lexicon(p.lexicon)
        idf = np.array([table.weight(word) for word in counts], np.float64)
        return vector(self.hashes.each(counts), idf, np.array(list(counts.values()), np.float64), p.similarity)

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """The cosine, to 6 decimals."""
        similarity = cosine(one, other)
        return Agreement(similarity, similarity >= self.parameters.similarity)


def vector(
    hashes: npt.NDArray[np.uint64], idf: npt.NDArray[np.float64], times: npt.NDArray[np.float64], similarity: float
) -> tuple[list[int], bytes]:
    """Return keys and vector for different words, from their hashes, IDF and frequencies.

    The keys are the hashes of the prefix's words: two vectors with a cosine of at least ``similarity`` share one, if
    neither prefix is longer than 255 words. The vector has 8 bytes a word, ascending: the upper half of its hash and
    its weight.
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
    entries = np.sort(ordered >> np.uint64(32) << np.uint64(32) | weights.view(np.uint32))
    places = entries >> np.uint64(32)
    # If two words share a half (one pair in some 20,000 pages), the heavier stays.
    return keys, entries[np.append(places[1:] != places[:-1], True)].astype("<u8").tobytes()


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
