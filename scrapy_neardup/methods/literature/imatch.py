"""I-Match: one hash of all terms that are neither too common nor too rare.

Chowdhury, Frieder, Grossman and McCabe 2002 ("Collection statistics for fast duplicate document detection") take those
terms of a page that have a middling inverse document frequency (IDF) in a lexicon, sort them and hash them as one.
Pages with the same hash are duplicates; one such term more, and a copy is missed. Kolcz, Chowdhury and Alspector 2004
("Improved robustness of signature-based near-replica detection via lexicon randomization") add copies of the lexicon,
each without a random share of its terms. One equal signature of all is enough.

Differences: BLAKE2b replaces SHA-1. A term's hash replaces chance, so the thinned lexicons need no file and are the
same everywhere. A page with fewer than ``min_terms`` terms has no signature: a few equal terms prove nothing, the known
weakness on short texts. The title does not count, as copies change it.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing import mix64
from scrapy_neardup.methods.base import Parameters, file, number, whole
from scrapy_neardup.methods.literature.published import Agreement, PublishedMethod, Text, pack_hashes, unpack_hashes
from scrapy_neardup.model import Fingerprint
from scrapy_neardup.text.lexicon import lexicon
from scrapy_neardup.text.tokens import words


@dataclass(frozen=True, slots=True)
class IMatchParameters(Parameters):
    """The parameters of ``imatch``."""

    method: ClassVar[str] = "imatch"

    #: The lowest IDF of a word that counts. 0 is the lowest IDF in the lexicon, 1 the highest.
    low: float = number(0.2)
    #: The highest IDF of a word that counts.
    high: float = number(0.8)
    #: With 1 only the lexicon is used, as published in 2002. With n, n - 1 thinned copies of the lexicon are used as
    #: well.
    lexicons: int = whole(1, 1, 64)
    #: The share of the words that each thinned copy lacks.
    thin: float = number(0.33, 0.0, 0.99)
    #: How many words a signature needs.
    min_terms: int = whole(10, 1, 10_000)
    #: The path of a file of word frequencies, see ``scrapy neardup lexicon``; empty for jieba's table.
    lexicon: str = file("a lexicon")

    def _check(self) -> None:
        if not self.low < self.high:
            raise SettingsError(f"imatch: high must be greater than low ({self.low:g}), not {self.high:g}.")
        if self.lexicon:
            lexicon(self.lexicon)  # report a bad file at once


class IMatch(PublishedMethod):
    """Compares hashes of all middling terms."""

    name: ClassVar[str] = "imatch"
    version: ClassVar[int] = 1
    parameters_type: ClassVar[type[Parameters]] = IMatchParameters
    parameters: IMatchParameters
    threshold: ClassVar[str] = "lexicons"
    sweep: ClassVar[tuple[float, ...]] = (64, 32, 16, 10, 5, 3, 2, 1)

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """The signatures are the keys: 8 bytes for each lexicon, zeros for too few terms.

        Raises LexiconNeeded if the lexicon does not know the language of the text.
        """
        p = self.parameters
        terms = self._terms(set(words(text.body, singles=True)))
        kept: list[npt.NDArray[np.bool_]] = [np.ones(len(terms), np.bool_)]
        if p.lexicons > 1:
            kept += _thin(self.hashes.each(terms), p.lexicons - 1, p.thin)
        signatures = [
            self.hashes.of(f"imatch {copy} {' '.join(compress(terms, mask))}") if mask.sum() >= p.min_terms else 0
            for copy, mask in enumerate(kept)
        ]
        return [one for one in signatures if one], pack_hashes(signatures)

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """The share of lexicons under which both pages have the same terms."""
        equal = sum(x == y != 0 for x, y in zip(unpack_hashes(one), unpack_hashes(other), strict=True))
        return Agreement(equal / self.parameters.lexicons, equal > 0)

    def _terms(self, found: Set[str]) -> list[str]:
        p = self.parameters
        lexicon(p.lexicon).check_language(found)
        return sorted(found & _band(p.lexicon, p.low, p.high))


@lru_cache(maxsize=4)
def _band(path: str, low: float, high: float) -> frozenset[str]:
    """Return the terms with an IDF from ``low`` to ``high`` on the scale of the lexicon."""
    table = lexicon(path)
    lowest, highest = (table.lowest + end * (table.highest - table.lowest) for end in (low, high))
    return frozenset(word for word, idf in table.idf.items() if lowest <= idf <= highest)


def _thin(hashes: npt.NDArray[np.uint64], copies: int, thin: float) -> list[npt.NDArray[np.bool_]]:
    """Return the terms that each copy keeps: those whose hash, mixed with its number, exceeds the share."""
    numbers = mix64(np.arange(1, copies + 1, dtype=np.uint64))
    return list(mix64(hashes ^ numbers[:, None]) >= np.uint64(int(thin * 2**64)))
