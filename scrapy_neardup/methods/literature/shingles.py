"""Methods on the set of a text's shingles: the whole set, its min-hashes, and hashes of groups of min-hashes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing.projections import groups, minima
from scrapy_neardup.methods.base import Parameters, choice, decides, number, whole
from scrapy_neardup.methods.literature.base import Agreement, PublishedMethod, Text, pack_hashes, unpack_hashes
from scrapy_neardup.model import Fingerprint
from scrapy_neardup.text.shingles import distinct, shingles
from scrapy_neardup.text.tokens import words


@dataclass(frozen=True, slots=True)
class ShingleSetParameters(Parameters):
    """The parameters of all methods on shingles."""

    #: ``characters`` makes shingles of ``n`` letters, ``words`` makes shingles of ``n`` words.
    features: str = choice("characters", "characters", "words")
    #: The length of a shingle, in letters or words.
    n: int = whole(5, 1, 64)


class ShingleSetMethod(PublishedMethod):
    """A signature of the hashes of all shingles."""

    parameters: ShingleSetParameters

    @abstractmethod
    def sketch(self, hashes: npt.NDArray[np.uint64]) -> tuple[Sequence[int], bytes]:
        """Return keys and signature of a text's shingles, given in order and at least one."""

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        p = self.parameters
        if p.features == "characters":
            found = shingles(text.letters, p.n, self.hashes)
        else:  # of words: a polynomial over their hashes; fewer than n words are one shingle
            found = self.hashes.n_grams(self.hashes.each(words(text.body, singles=True)), p.n)
        return self.sketch(found) if len(found) else ((), b"")


@dataclass(frozen=True, slots=True)
class ShingleParameters(ShingleSetParameters):
    """The parameters of ``shingle``."""

    #: The smallest Jaccard similarity of two duplicates.
    similarity: float = decides(number(0.95, 0.01))
    #: The number of smallest hashes that are keys.
    keys: int = whole(16, 1, 255)


class Shingle(ShingleSetMethod):
    """Shingling: the share of n-grams that two pages have in common, counted and not estimated.

    Broder 1997 ("On the resemblance and containment of documents"): a text is the set of its n-grams, the shingles. Two
    texts resemble each other by the Jaccard similarity of their sets, the share of all shingles that both have. Part
    3.1 of the article 这就是搜索引擎(8) describes it for Chinese characters. The Chinese paper that compares SimHash
    with it takes texts above 0.95 for the same, which is the default here. 0.8 also finds reposts with another header.

    A page keeps its whole set, 4 bytes a shingle. Between two pages of 1,500 letters fewer than 0.001 shingles are
    equal by a collision of 32 bits. Pages are compared if they share one of the ``keys`` smallest 64-bit hashes,
    Broder's min-wise sample. Two pages of similarity J share none with probability ``(1 - J)**keys`` at most: for 0.8
    in one case of ``10**11``.

    Differences: a shingle is 5 characters, as Chinese has no spaces between words (``features="words"`` is Broder's).
    The article joins all similar pages by union-find. A crawl compares each new page with originals, so groups do not
    drift.
    """

    name = "shingle"
    parameters_type = ShingleParameters
    parameters: ShingleParameters

    def sketch(self, hashes: npt.NDArray[np.uint64]) -> tuple[Sequence[int], bytes]:
        """The smallest hashes are the keys; the signature has the upper halves of all, ascending, 4 bytes each."""
        found = distinct(hashes)
        smallest: list[int] = found[: self.parameters.keys].tolist()
        return smallest, distinct((found >> np.uint64(32)).astype("<u4")).tobytes()

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """Jaccard similarity, and containment of the smaller set."""
        a, b = np.frombuffer(one, "<u4"), np.frombuffer(other, "<u4")
        both = len(a) + len(b) - len(distinct(np.concatenate((a, b))))
        similarity = both / (len(a) + len(b) - both)
        return Agreement(similarity, similarity >= self.parameters.similarity, both / min(len(a), len(b)))


@dataclass(frozen=True, slots=True)
class MinHashParameters(ShingleSetParameters):
    """The parameters of ``minhash``."""

    #: The smallest estimated Jaccard similarity of two duplicates.
    similarity: float = decides(number(0.75, 0.01))
    #: The number of hash functions. A page keeps 2 bytes for each.
    permutations: int = whole(128, 1, 4096)
    #: The number of bands. Each band makes a key.
    bands: int = whole(25, 1, 255, at_most="permutations")


class MinHash(ShingleSetMethod):
    """MinHash: the smallest values of many hash functions estimate the Jaccard similarity of two sets.

    Broder 1997 ("On the resemblance and containment of documents") and Broder, Charikar, Frieze and Mitzenmacher 1998
    ("Min-wise independent permutations"): under a random permutation two sets have the same smallest element with
    probability J, their Jaccard similarity. So the share of equal minima estimates J, with a standard deviation of
    ``sqrt(J * (1 - J) / permutations)``: 0.035 for 0.8 and the default of 128. Part 3.1.2 of the article
    这就是搜索引擎(8) describes n such functions. The default limit is 0.75; a limit of 0.8 would lose half of the pairs
    of J = 0.8 by the error.

    Bands find the pages (Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", chapter 3): two pages meet if
    all ``permutations // bands`` minima (rows) of one band are equal. A pair of similarity J meets with probability ``1
    - (1 - J**rows)**bands``. With 25 bands of 5 rows this misses one pair in 20,000 at 0.8, and finds 0.55 at 0.5 and
    0.06 at 0.3.

    Differences: only 16 bits of each minimum are kept (b-bit minwise hashing, Li and König 2010), 256 bytes a page. The
    share of equal minima is corrected for ``2**-16`` that agree by chance. Shingles are 5 characters and not words.
    """

    name = "minhash"
    parameters_type = MinHashParameters
    parameters: MinHashParameters

    def sketch(self, hashes: npt.NDArray[np.uint64]) -> tuple[Sequence[int], bytes]:
        """The keys are the hashes of the bands; the signature has the lower 16 bits of every minimum."""
        smallest = minima(hashes, self.parameters.permutations)
        keys: list[int] = groups(smallest, self.parameters.bands).tolist()
        return keys, smallest.astype("<u2").tobytes()

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """The estimated Jaccard similarity."""
        equal = int(np.count_nonzero(np.frombuffer(one, "<u2") == np.frombuffer(other, "<u2")))
        chance = 2.0**-16  # that 16 bits of different minima are equal
        similarity = max(0.0, (equal / self.parameters.permutations - chance) / (1.0 - chance))
        return Agreement(similarity, similarity >= self.parameters.similarity)


@dataclass(frozen=True, slots=True)
class SuperShingleParameters(ShingleSetParameters):
    """The parameters of ``supershingle``."""

    #: The number of super-shingles of a page.
    supershingles: int = whole(6, 1, 64)
    #: The number of min-hashes in a super-shingle.
    rows: int = whole(14, 1, 64)
    #: How many super-shingles of two duplicates are equal.
    equal: int = decides(whole(2, 1, 64, at_most="supershingles"))


class SuperShingle(ShingleSetMethod):
    """Super-shingles: hashes of groups of min-hashes; a few equal ones make a duplicate.

    Broder, Glassman, Manasse and Zweig 1997 ("Syntactic clustering of the web"), with the figures of Fetterly, Manasse
    and Najork 2003 ("On the evolution of clusters of near-duplicate web pages"): 84 min-hashes in 6 super-shingles of
    14; 2 equal super-shingles make a duplicate. One is equal with probability ``J**14`` for two pages of Jaccard
    similarity J. So two of six are in 0.88 of cases at J = 0.95, in 0.42 at 0.9 and in 0.03 at 0.8: a soft limit. In
    return a page takes 48 bytes, and two common keys make a duplicate without a comparison.

    Part 3.1.2 of the article 这就是搜索引擎(8) calls the n minima themselves SuperShingle; that is ``minhash`` here.

    Differences: shingles are 5 characters and not words (``features="words"``). The similarity of a verdict is the one
    at which so many equal super-shingles are expected, ``(equal / supershingles)**(1 / rows)``: a rough guess.
    """

    name = "supershingle"
    parameters_type = SuperShingleParameters
    parameters: SuperShingleParameters

    def sketch(self, hashes: npt.NDArray[np.uint64]) -> tuple[Sequence[int], bytes]:
        """The super-shingles are the keys and, in order, the signature: 8 bytes each."""
        p = self.parameters
        found: list[int] = groups(minima(hashes, p.supershingles * p.rows), p.supershingles).tolist()
        return found, pack_hashes(found)

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """The expected Jaccard similarity for so many equal ones."""
        p = self.parameters
        # Each hash depends on its place, so hashes of different places are never equal.
        both = len(frozenset(unpack_hashes(one)).intersection(unpack_hashes(other)))
        return Agreement((both / p.supershingles) ** (1.0 / p.rows), both >= p.equal)
