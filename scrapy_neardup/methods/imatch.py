"""I-Match: one hash of all terms that are neither too common nor too rare.

Chowdhury, Frieder, Grossman and McCabe 2002 ("Collection statistics for fast duplicate document detection"): of a
page's different terms those of a lexicon with a middling inverse document frequency (IDF) are sorted and hashed as one,
and pages with the same hash are duplicates. A copy with one such term more is missed. Kolcz, Chowdhury and Alspector
2004 ("Improved robustness of signature-based near-replica detection via lexicon randomization") mend that by further
copies of the lexicon, each without a share of the terms drawn at random: one equal signature of them all is enough.

Where it departs: BLAKE2b stands for SHA-1. A term's own hash stands for chance, so that the thinned copies need no
file and are the same everywhere. A page that is left with fewer than ``min_terms`` terms has no signature: by a few
terms pages are alike that are not, which is the known weakness on short texts. The title is left out; copies change it.
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
from scrapy_neardup.methods.published import Agreement, PublishedMethod, Text, pack_hashes, unpack_hashes
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
            lexicon(self.lexicon)  # what is wrong with the file is said at once


class IMatch(PublishedMethod):
    """Equal hashes of all middling terms."""

    name: ClassVar[str] = "imatch"
    version: ClassVar[int] = 1
    parameters_type: ClassVar[type[Parameters]] = IMatchParameters
    parameters: IMatchParameters
    threshold: ClassVar[str] = "lexicons"
    sweep: ClassVar[tuple[float, ...]] = (64, 32, 16, 10, 5, 3, 2, 1)

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """The signatures are the keys: 8 bytes each, by lexicon, zeros where there are too few terms.

        Raises LexiconNeeded for a text in a language that the lexicon does not know.
        """
        p = self.parameters
        terms = self._terms(set(words(text.body, singles=True)))
        kept: list[npt.NDArray[np.bool_]] = [np.ones(len(terms), np.bool_)]
        if p.lexicons > 1:
            kept += _thinned(self.hashes.each(terms), p.lexicons - 1, p.thin)
        signatures = [
            self.hashes.of(f"imatch {copy} {' '.join(compress(terms, mask))}") if mask.sum() >= p.min_terms else 0
            for copy, mask in enumerate(kept)
        ]
        return [one for one in signatures if one], pack_hashes(signatures)

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """The share of the lexicons under which both have the same terms."""
        equal = sum(x == y != 0 for x, y in zip(unpack_hashes(one), unpack_hashes(other), strict=True))
        return Agreement(equal / self.parameters.lexicons, equal > 0)

    def _terms(self, found: Set[str]) -> list[str]:
        p = self.parameters
        lexicon(p.lexicon).check_language(found)
        return sorted(found & _band(p.lexicon, p.low, p.high))


@lru_cache(maxsize=4)
def _band(path: str, low: float, high: float) -> frozenset[str]:
    """The terms of a lexicon whose IDF, between its lowest and its highest, is from ``low`` to ``high``."""
    table = lexicon(path)
    lowest, highest = (table.lowest + end * (table.highest - table.lowest) for end in (low, high))
    return frozenset(word for word, idf in table.idf.items() if lowest <= idf <= highest)


def _thinned(hashes: npt.NDArray[np.uint64], copies: int, thin: float) -> list[npt.NDArray[np.bool_]]:
    """For each copy of the lexicon, which terms it has: those whose hash, mixed with its number, is above the share."""
    numbers = mix64(np.arange(1, copies + 1, dtype=np.uint64))
    return list(mix64(hashes ^ numbers[:, None]) >= np.uint64(int(thin * 2**64)))
