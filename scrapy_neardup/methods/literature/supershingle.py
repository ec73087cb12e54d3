"""Super-shingles: hashes of groups of min-hashes; a few equal ones make a duplicate.

Broder, Glassman, Manasse and Zweig 1997 ("Syntactic clustering of the web"), with the figures of Fetterly, Manasse and
Najork 2003 ("On the evolution of clusters of near-duplicate web pages"): 84 min-hashes in 6 super-shingles of 14; 2
equal super-shingles make a duplicate. One is equal with probability ``J**14`` for two pages of Jaccard similarity J. So
two of six are in 0.88 of cases at J = 0.95, in 0.42 at 0.9 and in 0.03 at 0.8: a soft limit. In return a page takes 48
bytes, and two common keys make a duplicate without a comparison.

Part 3.1.2 of the article 这就是搜索引擎(8) calls the n minima themselves SuperShingle; that is ``minhash`` here.

Differences: shingles are 5 characters and not words (``features="words"``). The similarity of a verdict is the one at
which so many equal super-shingles are expected, ``(equal / supershingles)**(1 / rows)``: a rough guess.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing.projections import groups, minima
from scrapy_neardup.methods.base import Parameters, choice, decides, whole
from scrapy_neardup.methods.literature.published import Agreement, PublishedMethod, Text, pack_hashes, unpack_hashes
from scrapy_neardup.methods.literature.shingle import text_shingles
from scrapy_neardup.model import Fingerprint


@dataclass(frozen=True, slots=True)
class SuperShingleParameters(Parameters):
    """The parameters of ``supershingle``."""

    method: ClassVar[str] = "supershingle"

    #: ``characters`` makes shingles of ``n`` letters, ``words`` makes shingles of ``n`` words.
    features: str = choice("characters", "characters", "words")
    #: The length of a shingle, in letters or words.
    n: int = whole(5, 1, 64)
    #: The number of super-shingles of a page.
    supershingles: int = whole(6, 1, 64)
    #: The number of min-hashes in a super-shingle.
    rows: int = whole(14, 1, 64)
    #: How many super-shingles of two duplicates are equal.
    equal: int = decides(whole(2, 1, 64))

    def _check(self) -> None:
        if self.equal > self.supershingles:
            raise SettingsError(
                f"supershingle: equal must be at most supershingles ({self.supershingles}), not {self.equal}."
            )


class SuperShingle(PublishedMethod):
    """Compares hashes of groups of min-hashes."""

    name: ClassVar[str] = "supershingle"
    version: ClassVar[int] = 1
    parameters_type: ClassVar[type[Parameters]] = SuperShingleParameters
    parameters: SuperShingleParameters
    threshold: ClassVar[str] = "equal"
    sweep: ClassVar[tuple[float, ...]] = (1, 2, 3, 4, 5, 6)

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """The super-shingles are the keys and, in order, the signature: 8 bytes each."""
        p = self.parameters
        found = text_shingles(text, p.features, p.n, self.hashes)
        if not len(found):
            return (), b""
        hashes: list[int] = groups(minima(found, p.supershingles * p.rows), p.supershingles).tolist()
        return hashes, pack_hashes(hashes)

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """The expected Jaccard similarity for so many equal ones. A page without a shingle is like no other."""
        p = self.parameters
        # Each hash depends on its place, so hashes of different places are never equal.
        both = len(frozenset(unpack_hashes(one)).intersection(unpack_hashes(other)))
        return Agreement((both / p.supershingles) ** (1.0 / p.rows), both >= p.equal)
