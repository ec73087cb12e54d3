"""The most frequent words of a page as one hash; their number is rounded, so that small edits change nothing.

The 近似网页发现算法 of part 5 of the series 网页文本的排重算法 sorts the words without stop words by frequency. It
takes a share of them, rounded down to a multiple of ``sum_interval``, sorts these by characters and hashes them by MD5.
So one rare word more changes nothing. Nutch and Solr have a relative, TextProfileSignature.

Differences: a page with too few words has no signature; by the article all such pages would have that of the empty
string. The article gives neither ``percentage`` nor ``sum_interval``; ours come from tests.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from scrapy_neardup.methods.base import Parameters, file, number, whole
from scrapy_neardup.methods.literature.published import Agreement, PublishedMethod, Text, word_counts
from scrapy_neardup.model import Fingerprint


@dataclass(frozen=True, slots=True)
class TermProfileParameters(Parameters):
    """The parameters of ``term_profile``."""

    method: ClassVar[str] = "term_profile"

    #: The largest share of the different words that is hashed, the most frequent first.
    percentage: float = number(0.1, 0.01)
    #: The number of hashed words is a multiple of this number.
    sum_interval: int = whole(10, 1, 1000)
    #: The path of a file of stop words, one a line; empty for the short list of this package.
    stop_words: str = file("a list of stop words")


class TermProfile(PublishedMethod):
    """Compares one hash of the most frequent words."""

    name: ClassVar[str] = "term_profile"
    version: ClassVar[int] = 1
    parameters_type: ClassVar[type[Parameters]] = TermProfileParameters
    parameters: TermProfileParameters
    threshold: ClassVar[str] = "percentage"
    sweep: ClassVar[tuple[float, ...]] = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0)

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """The hash is the key and, in 8 bytes, the signature; nothing if no word is left."""
        p = self.parameters
        profile = term_profile(word_counts(text.body, p.stop_words), p.percentage, p.sum_interval)
        if not profile:
            return (), b""
        value = self.hashes.md5(" ".join(profile).encode("utf-8"))
        return (value,), value.to_bytes(8, "big")

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """1 or 0."""
        equal = bool(one) and one == other
        return Agreement(float(equal), equal)


def term_profile(counts: dict[str, int], percentage: float, interval: int) -> list[str]:
    """Return the words to hash, in descending order of characters.

    Words of equal frequency are taken in that order too ("from large to small" in the article).

    >>> term_profile({"渡船": 3, "缆绳": 1, "豆浆": 2, "铁桥": 1, "停航": 1}, 0.8, 2)
    ['铁桥', '豆浆', '缆绳', '渡船']
    """
    # Round first: 0.29 * 100 is a little less than 29.
    candidates = int(round(len(counts) * percentage, 6))
    ranked = sorted(((times, word) for word, times in counts.items()), reverse=True)
    return sorted((word for _, word in ranked[: candidates // interval * interval]), reverse=True)
