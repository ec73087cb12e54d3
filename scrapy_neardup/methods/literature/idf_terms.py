"""The rarer words of a page in order of rarity, compared as one string.

The Hash算法 of part 6 of the series 网页文本的排重算法 takes 70 % of a page's different words: those with the highest
inverse document frequency (IDF). In descending order they are its feature string. A classic hash of the string finds
earlier pages; an equal string makes a duplicate. The method finds little more than copies with the same words.

Differences: the signature has 16 bytes of BLAKE2b instead of the string, which also distinguish strings with one hash.
The IDF comes from a lexicon and not from the pages, as these are judged one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from hashlib import blake2b
from typing import ClassVar

from scrapy_neardup.hashing.classic import CLASSIC, classic_hash
from scrapy_neardup.methods.base import Parameters, choice, file, number
from scrapy_neardup.methods.literature.published import Agreement, PublishedMethod, Text
from scrapy_neardup.model import Fingerprint
from scrapy_neardup.text.lexicon import Lexicon, lexicon
from scrapy_neardup.text.tokens import words


@dataclass(frozen=True, slots=True)
class IDFTermsParameters(Parameters):
    """The parameters of ``idf_terms``."""

    method: ClassVar[str] = "idf_terms"

    #: The share of the different words that makes the feature string, the rarest first.
    share: float = number(0.7, 0.01)
    #: The hash of the feature string. The article counted the fewest collisions with AP.
    hash: str = choice("ap", *CLASSIC)
    #: The path of a file of word frequencies, see ``scrapy neardup lexicon``; empty for jieba's table.
    lexicon: str = file("a lexicon")

    def _check(self) -> None:
        if self.lexicon:
            lexicon(self.lexicon)  # report a bad file at once


class IDFTerms(PublishedMethod):
    """Compares the string of the rarer words."""

    name: ClassVar[str] = "idf_terms"
    version: ClassVar[int] = 1
    parameters_type: ClassVar[type[Parameters]] = IDFTermsParameters
    parameters: IDFTermsParameters
    threshold: ClassVar[str] = "share"
    sweep: ClassVar[tuple[float, ...]] = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """The 32-bit hash is the key; the signature is hash and BLAKE2b of the string, 4 and 16 bytes.

        Raises LexiconNeeded if the lexicon does not know the language of the text.
        """
        p = self.parameters
        string = " ".join(rarest(set(words(text.body, singles=True)), lexicon(p.lexicon), p.share))
        if not string:
            return (), b""
        value = classic_hash(p.hash, string, 32)
        return (value,), value.to_bytes(4, "big") + blake2b(string.encode("utf-8"), digest_size=16).digest()

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """1 or 0: two different strings with one hash do not agree."""
        equal = bool(one) and one == other
        return Agreement(float(equal), equal)


def rarest(found: Collection[str], table: Lexicon, share: float) -> list[str]:
    """Return this share of the words by descending IDF, rounded down but at least one word.

    Equals are in order of characters. Raises LexiconNeeded if the table does not know the language.
    """
    table.check_language(found)
    idf, unknown = table.idf, table.unknown
    ranked = sorted((-idf.get(word, unknown), word) for word in found)
    return [word for _, word in ranked[: max(1, int(round(len(ranked) * share, 6)))]]
