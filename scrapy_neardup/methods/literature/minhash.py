"""MinHash: the smallest values of many hash functions estimate the Jaccard similarity of two sets.

Broder 1997 ("On the resemblance and containment of documents") and Broder, Charikar, Frieze and Mitzenmacher 1998
("Min-wise independent permutations"): under a random permutation two sets have the same smallest element with
probability J, their Jaccard similarity. So the share of equal minima estimates J, with a standard deviation of ``sqrt(J
* (1 - J) / permutations)``: 0.035 for 0.8 and the default of 128. Part 3.1.2 of the article 这就是搜索引擎(8) describes
n such functions. The default limit is 0.75; a limit of 0.8 would lose half of the pairs of J = 0.8 by the error.

Bands find the pages (Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", chapter 3): two pages meet if all
``permutations // bands`` minima (rows) of one band are equal. A pair of similarity J meets with probability ``1 - (1 -
J**rows)**bands``. With 25 bands of 5 rows this misses one pair in 20,000 at 0.8, and finds 0.55 at 0.5 and 0.06 at 0.3.

Differences: only 16 bits of each minimum are kept (b-bit minwise hashing, Li and König 2010), 256 bytes a page. The
share of equal minima is corrected for ``2**-16`` that agree by chance. Shingles are 5 characters and not words.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing.projections import groups, minima
from scrapy_neardup.methods.base import Parameters, choice, decides, number, whole
from scrapy_neardup.methods.literature.published import Agreement, PublishedMethod, Text
from scrapy_neardup.methods.literature.shingle import text_shingles
from scrapy_neardup.model import Fingerprint

#: Probability that 16 bits of different minima are equal.
_CHANCE = 2.0**-16


@dataclass(frozen=True, slots=True)
class MinHashParameters(Parameters):
    """The parameters of ``minhash``."""

    method: ClassVar[str] = "minhash"

    #: ``characters`` makes shingles of ``n`` letters, ``words`` makes shingles of ``n`` words.
    features: str = choice("characters", "characters", "words")
    #: The length of a shingle, in letters or words.
    n: int = whole(5, 1, 64)
    #: The smallest estimated Jaccard similarity of two duplicates.
    similarity: float = decides(number(0.75, 0.01))
    #: The number of hash functions. A page keeps 2 bytes for each.
    permutations: int = whole(128, 1, 4096)
    #: The number of bands. Each band makes a key.
    bands: int = whole(25, 1, 255)

    def _check(self) -> None:
        if self.bands > self.permutations:
            raise SettingsError(f"minhash: bands must be at most permutations ({self.permutations}), not {self.bands}.")


class MinHash(PublishedMethod):
    """Compares the smallest values of many permutations."""

    name: ClassVar[str] = "minhash"
    version: ClassVar[int] = 1
    parameters_type: ClassVar[type[Parameters]] = MinHashParameters
    parameters: MinHashParameters
    threshold: ClassVar[str] = "similarity"
    sweep: ClassVar[tuple[float, ...]] = (0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """The keys are the hashes of the bands; the signature has the lower 16 bits of every minimum."""
        p = self.parameters
        found = text_shingles(text, p.features, p.n, self.hashes)
        if not len(found):
            return (), b""
        smallest = minima(found, p.permutations)
        keys: list[int] = groups(smallest, p.bands).tolist()
        return keys, smallest.astype("<u2").tobytes()

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """The estimated Jaccard similarity. A page without a shingle is like no other."""
        if not (one and other):
            return Agreement(0.0, duplicate=False)
        equal = int(np.count_nonzero(np.frombuffer(one, "<u2") == np.frombuffer(other, "<u2")))
        similarity = max(0.0, (equal / self.parameters.permutations - _CHANCE) / (1.0 - _CHANCE))
        return Agreement(similarity, similarity >= self.parameters.similarity)
