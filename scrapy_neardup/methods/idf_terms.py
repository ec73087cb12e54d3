"""The rarer words of a page in order of rarity, compared as one string.

The Hash算法 of part 6 of the series 网页文本的排重算法: of a page's different words the 70 % with the highest inverse
document frequency (IDF), in descending order of it, are its feature string. A classic string hash of that finds earlier
pages, of which those with the very same string are duplicates. It takes little more than copies of the same words.

Where it departs: the signature holds 16 bytes of BLAKE2b in the place of the string; they tell strings with the same
hash apart as well. The IDF is that of a lexicon, not of the pages themselves, for these are judged as they come in.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from hashlib import blake2b
from typing import ClassVar

from scrapy_neardup.hashing.classic import CLASSIC, classic_hash
from scrapy_neardup.methods.base import Parameters, choice, file, number
from scrapy_neardup.methods.published import Agreement, PublishedMethod, Text
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
            lexicon(self.lexicon)  # what is wrong with the file is said at once


class IDFTerms(PublishedMethod):
    """An equal string of the rarer words."""

    name: ClassVar[str] = "idf_terms"
    version: ClassVar[int] = 1
    parameters_type: ClassVar[type[Parameters]] = IDFTermsParameters
    parameters: IDFTermsParameters
    threshold: ClassVar[str] = "share"
    sweep: ClassVar[tuple[float, ...]] = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """The 32-bit hash is the key; it and the BLAKE2b of the same string, 4 and 16 bytes, are the signature.

        Raises LexiconNeeded for a text in a language that the lexicon does not know.
        """
        p = self.parameters
        string = " ".join(rarest(set(words(text.body, singles=True)), lexicon(p.lexicon), p.share))
        if not string:
            return (), b""
        value = classic_hash(p.hash, string, 32)
        return (value,), value.to_bytes(4, "big") + blake2b(string.encode("utf-8"), digest_size=16).digest()

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """Yes or no; two strings that only have the same hash say no."""
        equal = bool(one) and one == other
        return Agreement(float(equal), equal)


def rarest(found: Collection[str], table: Lexicon, share: float) -> list[str]:
    """That share of the words, rounded down but at least one, by descending IDF; equals in order of characters.

    Raises LexiconNeeded for words in a language that the table does not know.
    """
    table.check_language(found)
    idf, unknown = table.idf, table.unknown
    ranked = sorted((-idf.get(word, unknown), word) for word in found)
    return [word for _, word in ranked[: max(1, int(round(len(ranked) * share, 6)))]]
