"""The most frequent words of a page, by rules that search engines are said to have used.

Parts 1 and 3 of the series 网页文本的排重算法. The n most frequent words of a page are its keywords T; their shares of
all words are the weights W. n is 10, the best value in experiments of the search engine Tianwang. ``rule`` names one or
more of these rules, or ``any`` for all; one is enough to make a duplicate:

===============  =================================================================================
frequent         (part 1) the same keywords, each as often: the MD5 of, say, 网页12搜索10引擎7
description      (1) the same meta description, or without one the same first 512 bytes of text
ordered          (2) the same keywords in the same order of weight
set              (3) the same keywords in whatever order
ordered_weights  (4) as ordered, and ||Wi-Wj||² / (||Wi||²+||Wj||²) is below ``alpha``
set_weights      (5) as set, and the same of the weights
===============  =================================================================================

For part 1 the article prints the fingerprint a7eb9d92a83cf438881915e0bc2df70b. It is the MD5 of that string in GBK with
a line feed, and it is computed in this way here. Rules 2 and 3, says the article, pass pages that share only parts; the
weights of 4 and 5 cure that. It gives no ``alpha``. Differences: stop words are no keywords, words of equal frequency
are sorted by characters, and of a description (or the text in its place) only the letters count.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from scrapy_neardup.hashing.keyed import OPEN, Keyed
from scrapy_neardup.methods.base import Parameters, decides, file, names, number, whole
from scrapy_neardup.methods.literature.published import Agreement, PublishedMethod, Text, word_counts
from scrapy_neardup.model import Fingerprint
from scrapy_neardup.text.normalize import letters, normalize

#: Rule -> place of the hash that must be equal in the signature, and whether weights decide then.
_RULES = {
    "frequent": (0, False),
    "description": (1, False),
    "ordered": (2, False),
    "set": (3, False),
    "ordered_weights": (2, True),
    "set_weights": (3, True),
}
_HASHES = struct.Struct(">4Q")
#: Bytes of text that replace a missing description.
_OPENING = 512


@dataclass(frozen=True, slots=True)
class KeywordsParameters(Parameters):
    """The parameters of ``keywords``."""

    method: ClassVar[str] = "keywords"

    #: One or more rules, with commas between them.
    rule: str = names("set_weights", *_RULES, "any")
    #: The number of keywords.
    n: int = whole(10, 1, 1000)
    #: How much the weights may differ: 0 means equal, 1 means nothing in common.
    alpha: float = decides(number(0.01))
    #: The path of a file of stop words, one a line; empty for the short list of this package.
    stop_words: str = file("a list of stop words")

    @property
    def rules(self) -> list[str]:
        """The names of the rules."""
        rules = self.rule.split(",")
        return list(_RULES) if "any" in rules else rules


class Keywords(PublishedMethod):
    """Compares the most frequent words."""

    name: ClassVar[str] = "keywords"
    version: ClassVar[int] = 1
    parameters_type: ClassVar[type[Parameters]] = KeywordsParameters
    parameters: KeywordsParameters
    threshold: ClassVar[str] = "n"
    sweep: ClassVar[tuple[float, ...]] = (2, 3, 5, 7, 10, 15, 20, 30, 50)
    #: If weights decide, many pages have the same keywords, and all must be compared.
    common: ClassVar[int] = 1024
    candidates: ClassVar[int] = 1024

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """One key per rule; the signature has all hashes (8 bytes, 0 for none) and the weights (4 bytes each).

        Weights are in order of the keywords' characters, so that they match in equal sets.
        """
        counts = word_counts(text.body, self.parameters.stop_words)
        top = keywords(counts, self.parameters.n)
        hashes = (
            frequent64(((word, counts[word]) for word in top), self.hashes),
            self._description(text),
            self._md5(" ".join(top)),
            self._md5(" ".join(sorted(top))),
        )
        total = sum(counts.values())
        weights = [counts[word] / total for word in sorted(top)]
        places = {_RULES[rule][0] for rule in self.parameters.rules}
        keys = [value for place, value in enumerate(hashes) if place in places and value]
        return keys, _HASHES.pack(*hashes) + struct.pack(f">{len(weights)}f", *weights)

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """1 if a rule without weights is met, else the nearness of the weights; 0 without an equal hash."""
        a, b = _HASHES.unpack_from(one), _HASHES.unpack_from(other)
        best = Agreement(0.0, duplicate=False)
        for rule in self.parameters.rules:
            place, weighted = _RULES[rule]
            if a[place] != b[place] or not a[place]:
                continue
            difference = weight_difference(_weights(one), _weights(other)) if weighted else 0.0
            found = Agreement(1.0 - difference, not weighted or difference < self.parameters.alpha)
            best = max(best, found, key=lambda agreement: (agreement.duplicate, agreement.similarity))
        return best

    def _md5(self, string: str) -> int:
        return self.hashes.md5(string.encode("utf-8")) if string else 0

    def _description(self, text: Text) -> int:
        described = letters(normalize(text.page.description, simplified=self.parameters.simplified))
        data = (described or text.letters).encode("utf-8", "replace")
        return self.hashes.md5(data if described else data[:_OPENING]) if data else 0


def keywords(counts: dict[str, int], count: int) -> list[str]:
    """Return the most frequent words, the most frequent first; equals in order of characters.

    >>> keywords({"网站": 2, "引擎": 7, "搜索": 10, "网页": 12, "抓取": 2}, 4)
    ['网页', '搜索', '引擎', '抓取']
    """
    return sorted(counts, key=lambda word: (-counts[word], word))[:count]


def frequent64(top: Iterable[tuple[str, int]], hashes: Keyed = OPEN) -> int:
    """Return the first 64 bits of part 1's fingerprint; GB 18030 contains GBK.

    >>> hex(frequent64([("网页", 12), ("搜索", 10), ("引擎", 7)]))
    '0xa7eb9d92a83cf438'
    """
    string = "".join(f"{word}{times}" for word, times in top)
    return hashes.md5(f"{string}\n".encode("gb18030")) if string else 0


def weight_difference(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the squared difference of two vectors over the sum of their squares: 0 to 1.

    >>> weight_difference([3.0, 4.0], [4.0, 3.0])
    0.04
    """
    squares = sum((a - b) ** 2 for a, b in zip(one, other, strict=True))
    return squares / (sum(a * a for a in one) + sum(b * b for b in other))


def _weights(signature: bytes) -> tuple[float, ...]:
    packed = signature[_HASHES.size :]
    return struct.unpack(f">{len(packed) // 4}f", packed)
