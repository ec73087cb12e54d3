"""Shingling: the share of n-grams that two pages have in common, counted and not estimated.

Broder 1997 ("On the resemblance and containment of documents"): a text is the set of its n-grams, the shingles. Two
texts resemble each other by the Jaccard similarity of their sets, the share of all shingles that both have. Part 3.1 of
the article 这就是搜索引擎(8) describes it for Chinese characters. The Chinese paper that compares SimHash with it takes
texts above 0.95 for the same, which is the default here. 0.8 also finds reposts with another header.

A page keeps its whole set, 4 bytes a shingle. Between two pages of 1,500 letters fewer than 0.001 shingles are equal by
a collision of 32 bits. Pages are compared if they share one of the ``keys`` smallest 64-bit hashes, Broder's min-wise
sample. Two pages of similarity J share none with probability ``(1 - J)**keys`` at most: for 0.8 in one case of
``10**11``.

Differences: a shingle is 5 characters, as Chinese has no spaces between words (``features="words"`` is Broder's). The
article joins all similar pages by union-find. A crawl compares each new page with originals, and
``scrapy_neardup.lab.evaluate`` joins them afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing.keyed import OPEN, Keyed
from scrapy_neardup.methods.base import Parameters, choice, decides, number, whole
from scrapy_neardup.methods.literature.published import Agreement, PublishedMethod, Text
from scrapy_neardup.model import Fingerprint
from scrapy_neardup.text.shingles import distinct, shingles
from scrapy_neardup.text.tokens import words


@dataclass(frozen=True, slots=True)
class ShingleParameters(Parameters):
    """The parameters of ``shingle``."""

    method: ClassVar[str] = "shingle"

    #: ``characters`` makes shingles of ``n`` letters, ``words`` makes shingles of ``n`` words.
    features: str = choice("characters", "characters", "words")
    #: The length of a shingle, in letters or words.
    n: int = whole(5, 1, 64)
    #: The smallest Jaccard similarity of two duplicates.
    similarity: float = decides(number(0.95, 0.01))
    #: The number of smallest hashes that are keys.
    keys: int = whole(16, 1, 255)


class Shingle(PublishedMethod):
    """Compares whole sets of shingles."""

    name: ClassVar[str] = "shingle"
    version: ClassVar[int] = 1
    parameters_type: ClassVar[type[Parameters]] = ShingleParameters
    parameters: ShingleParameters
    threshold: ClassVar[str] = "similarity"
    sweep: ClassVar[tuple[float, ...]] = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98)

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """The smallest hashes are the keys; the signature has the upper halves of all, ascending, 4 bytes each."""
        p = self.parameters
        found = distinct(text_shingles(text, p.features, p.n, self.hashes))
        smallest: list[int] = found[: p.keys].tolist()
        return smallest, distinct((found >> np.uint64(32)).astype("<u4")).tobytes()

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """Jaccard similarity, and containment of the smaller set. An empty set is like no other."""
        a, b = np.frombuffer(one, "<u4"), np.frombuffer(other, "<u4")
        if not (len(a) and len(b)):
            return Agreement(0.0, duplicate=False)
        both = len(a) + len(b) - len(distinct(np.concatenate((a, b))))
        similarity = both / (len(a) + len(b) - both)
        return Agreement(similarity, similarity >= self.parameters.similarity, both / min(len(a), len(b)))


def text_shingles(text: Text, features: str, n: int, hashes: Keyed) -> npt.NDArray[np.uint64]:
    """Hash every shingle of a text, in order: n-grams of its ``characters`` or of its ``words``."""
    if features == "characters":
        return shingles(text.letters, n, hashes)
    return word_shingles(words(text.body, singles=True), n, hashes)


def word_shingles(found: Sequence[str], n: int, hashes: Keyed = OPEN) -> npt.NDArray[np.uint64]:
    """Hash every n-gram of words, in order; shape ``(max(1, len - n + 1),)``.

    Fewer words than ``n`` are one shingle; no words have none. The hash is a polynomial over the words' hashes.

    >>> one, other = word_shingles(["the", "ferry", "sails"], 2), word_shingles(["ferry", "sails", "again"], 2)
    >>> one[1] == other[0], one[0] == word_shingles(["theferry", "sails"], 2)[0]
    (np.True_, np.False_)
    """
    return hashes.n_grams(hashes.each(found), n)
