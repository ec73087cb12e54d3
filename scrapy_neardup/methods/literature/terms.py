"""Methods that choose some words of a page and hash them as one."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing.classic import CLASSIC, classic_hash
from scrapy_neardup.hashing.keyed import OPEN, Keyed
from scrapy_neardup.methods.base import Parameters, choice, decides, file, number, whole
from scrapy_neardup.methods.literature.base import Agreement, PublishedMethod, Text, word_counts
from scrapy_neardup.model import Fingerprint
from scrapy_neardup.text.lexicon import Lexicon, read_lexicon, read_stop_words
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.tokens import words


@dataclass(frozen=True, slots=True)
class TermProfileParameters(Parameters):
    """The parameters of ``term_profile``."""

    #: The largest share of the different words that is hashed, the most frequent first.
    percentage: float = number(0.1, 0.01)
    #: The number of hashed words is a multiple of this number.
    sum_interval: int = whole(10, 1, 1000)
    #: The path of a file of stop words, one a line; empty for the short list of this package.
    stop_words: str = file("a list of stop words", read_stop_words)


class TermProfile(PublishedMethod):
    """The most frequent words of a page as one hash; their number is rounded, so that small edits change nothing.

    The 近似网页发现算法 of part 5 of the series 网页文本的排重算法 sorts the words without stop words by frequency. It
    takes a share of them, rounded down to a multiple of ``sum_interval``, sorts these by characters and hashes them by
    MD5. So one rare word more changes nothing. Nutch and Solr have a relative, TextProfileSignature.

    Differences: a page with too few words has no signature; by the article all such pages would have that of the empty
    string. The article gives neither ``percentage`` nor ``sum_interval``; ours come from tests.
    """

    name = "term_profile"
    parameters_type = TermProfileParameters
    parameters: TermProfileParameters

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """The hash is the key and, in 8 bytes, the signature; nothing if no word is left."""
        p = self.parameters
        profile = term_profile(word_counts(text.body, p.stop_words), p.percentage, p.sum_interval)
        if not profile:
            return (), b""
        value = self.hashes.md5(" ".join(profile).encode("utf-8"))
        return (value,), value.to_bytes(8, "big")


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


@dataclass(frozen=True, slots=True)
class IDFTermsParameters(Parameters):
    """The parameters of ``idf_terms``."""

    #: The share of the different words that makes the feature string, the rarest first.
    share: float = number(0.7, 0.01)
    #: The hash of the feature string. The article counted the fewest collisions with AP.
    hash: str = choice("ap", *CLASSIC)
    #: The path of a file of lines of a word, a space and its inverse document frequency; empty for jieba's table.
    lexicon: str = file("a lexicon", read_lexicon)


class IDFTerms(PublishedMethod):
    """The rarer words of a page in order of rarity, compared as one string.

    The Hash算法 of part 6 of the series 网页文本的排重算法 takes 70 % of a page's different words: those with the
    highest inverse document frequency (IDF). In descending order they are its feature string. A classic hash of the
    string finds earlier pages; an equal string makes a duplicate. The method finds little more than copies with the
    same words.

    Differences: the signature has 16 bytes of BLAKE2b instead of the string, which also distinguish strings with one
    hash. The IDF comes from a lexicon and not from the pages, as these are judged one by one.
    """

    name = "idf_terms"
    parameters_type = IDFTermsParameters
    parameters: IDFTermsParameters

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """The 32-bit hash is the key; the signature is hash and BLAKE2b of the string, 4 and 16 bytes.

        Raises LexiconNeeded if the lexicon does not know the language of the text.
        """
        p = self.parameters
        string = " ".join(rarest(set(words(text.body, singles=True)), read_lexicon(p.lexicon), p.share))
        if not string:
            return (), b""
        value = classic_hash(p.hash, string, 32)
        return (value,), value.to_bytes(4, "big") + blake2b(string.encode("utf-8"), digest_size=16).digest()


def rarest(found: Collection[str], table: Lexicon, share: float) -> list[str]:
    """Return this share of the words by descending IDF, rounded down but at least one word.

    Equals are in order of characters. Raises LexiconNeeded if the table does not know the language.
    """
    table.check_language(found)
    ranked = sorted((-table.weight(word), word) for word in found)
    return [word for _, word in ranked[: max(1, int(round(len(ranked) * share, 6)))]]


@dataclass(frozen=True, slots=True)
class IMatchParameters(Parameters):
    """The parameters of ``imatch``."""

    #: The lowest IDF of a word that counts. 0 is the lowest IDF in the lexicon, 1 the highest.
    low: float = number(0.2)
    #: The highest IDF of a word that counts.
    high: float = number(0.8)
    #: How many words a signature needs.
    min_terms: int = whole(10, 1, 10_000)
    #: The path of a file of lines of a word, a space and its inverse document frequency; empty for jieba's table.
    lexicon: str = file("a lexicon", read_lexicon)

    def _check(self) -> None:
        if not self.low < self.high:
            raise SettingsError(f"imatch: high must be greater than low ({self.low:g}), not {self.high:g}.")


class IMatch(PublishedMethod):
    """I-Match: one hash of all terms that are neither too common nor too rare.

    Chowdhury, Frieder, Grossman and McCabe 2002 ("Collection statistics for fast duplicate document detection") take
    those terms of a page that have a middling inverse document frequency (IDF) in a lexicon, sort them and hash them as
    one. Pages with the same hash are duplicates; one such term more, and a copy is missed.

    Differences: BLAKE2b replaces SHA-1. A page with fewer than ``min_terms`` terms has no signature: a few equal terms
    prove nothing, the known weakness on short texts. The title does not count, as copies change it.
    """

    name = "imatch"
    parameters_type = IMatchParameters
    parameters: IMatchParameters

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """The hash is the key and, in 8 bytes, the signature; nothing for too few terms.

        Raises LexiconNeeded if the lexicon does not know the language of the text.
        """
        p = self.parameters
        found = set(words(text.body, singles=True))
        read_lexicon(p.lexicon).check_language(found)
        terms = sorted(found & _band(p.lexicon, p.low, p.high))
        if len(terms) < p.min_terms:
            return (), b""
        value = self.hashes.of(f"imatch 0 {' '.join(terms)}")
        return (value,), value.to_bytes(8, "big")


@lru_cache(maxsize=4)
def _band(path: str, low: float, high: float) -> frozenset[str]:
    """Return the terms with an IDF from ``low`` to ``high`` on the scale of the lexicon."""
    table = read_lexicon(path)
    lowest, highest = (table.lowest + end * (table.highest - table.lowest) for end in (low, high))
    return frozenset(word for word, idf in table.idf.items() if lowest <= idf <= highest)


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

    #: One of the rules, or ``any`` for all.
    rule: str = choice("set_weights", *_RULES, "any")
    #: The number of keywords.
    n: int = whole(10, 1, 1000)
    #: How much the weights may differ: 0 means equal, 1 means nothing in common.
    alpha: float = decides(number(0.01))
    #: The path of a file of stop words, one a line; empty for the short list of this package.
    stop_words: str = file("a list of stop words", read_stop_words)

    @property
    def rules(self) -> Collection[str]:
        return _RULES if self.rule == "any" else (self.rule,)


class Keywords(PublishedMethod):
    """The most frequent words of a page, by rules that search engines are said to have used.

    Parts 1 and 3 of the series 网页文本的排重算法. The n most frequent words of a page are its keywords T; their shares
    of all words are the weights W. n is 10, the best value in experiments of the search engine Tianwang. ``rule`` names
    one of these rules; with ``any``, one of all is enough to make a duplicate:

    ===============  =================================================================================
    frequent         (part 1) the same keywords, each as often: the MD5 of, say, 网页12搜索10引擎7
    description      (1) the same meta description, or without one the same first 512 bytes of text
    ordered          (2) the same keywords in the same order of weight
    set              (3) the same keywords in any order
    ordered_weights  (4) as ordered, and ||Wi-Wj||² / (||Wi||²+||Wj||²) is below ``alpha``
    set_weights      (5) as set, and the same of the weights
    ===============  =================================================================================

    For part 1 the article prints the fingerprint a7eb9d92a83cf438881915e0bc2df70b. It is the MD5 of that string in GBK
    with a line feed, and it is computed in this way here. Rules 2 and 3, says the article, pass pages that share only
    parts; the weights of 4 and 5 cure that. It gives no ``alpha``. Differences: stop words are no keywords, words of
    equal frequency are sorted by characters, and of a description (or the text in its place) only the letters count.
    """

    name = "keywords"
    parameters_type = KeywordsParameters
    parameters: KeywordsParameters
    #: If weights decide, many pages have the same keywords, and all must be compared.
    common = 1024
    candidates = 1024

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """One key per rule; the signature has all hashes (8 bytes, 0 for none) and the weights (4 bytes each).

        Weights are in order of the keywords' characters, because equal sets must match.
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
