"""MinHash: two sets' Jaccard similarity, estimated from the smallest value of each of many hash functions.

Broder 1997 ("On the resemblance and containment of documents") and Broder, Charikar, Frieze and Mitzenmacher 1998
("Min-wise independent permutations"): under a random permutation two sets have the same smallest element with a
probability that is their Jaccard similarity J. So the share of equal minima estimates J, with a standard deviation of
sqrt(J * (1 - J) / permutations): 0.035 for 0.8 and the default of 128. Part 3.1.2 of the article 这就是搜索引擎(8)
tells of n such functions. The default limit is 0.75, for at 0.8 the error loses pairs of J = 0.8 as often as not.

Pages are found by bands (Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", chapter 3): those that agree in
all ``permutations // bands`` minima, the rows, of one of the ``bands`` bands. Of pairs of similarity J this finds
1 - (1 - J**rows)**bands; for 25 bands of 5 rows all but one in 20,000 at 0.8, 0.55 at 0.5 and 0.06 at 0.3.

Where it departs: only 16 bits of each minimum are kept (b-bit minwise hashing, Li and König 2010), 256 bytes a page,
and the share of equal ones is freed of the 2**-16 that agree by chance. Shingles are 5 characters and not words.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing.projections import groups, minima
from scrapy_neardup.methods.base import Parameters, choice, decides, number, whole
from scrapy_neardup.methods.published import Agreement, PublishedMethod, Text
from scrapy_neardup.methods.shingle import text_shingles
from scrapy_neardup.model import Fingerprint

#: How often the 16 bits of two different minima are the same.
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
    """The smallest values of many permutations, and how many of them are equal."""

    name: ClassVar[str] = "minhash"
    version: ClassVar[int] = 1
    parameters_type: ClassVar[type[Parameters]] = MinHashParameters
    parameters: MinHashParameters
    threshold: ClassVar[str] = "similarity"
    sweep: ClassVar[tuple[float, ...]] = (0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """A hash of each band; the lower 16 bits of every minimum, in the order of the permutations."""
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
