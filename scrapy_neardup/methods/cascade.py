"""The default method: a coarse filter that finds candidates, a fine check that decides.

The idea is that of the article "网页文本的排重算法", part 9: fingerprints of the core words of title,
keywords and description rule out the many pages that have nothing to do with this one, fingerprints of
the body's parts decide among the few that are left. Where it departs from the article, and why:

* A repost often has another title. So the longest sentences and a few shingles of the body, chosen by
  smallest hash, are keys as well, and the coarse filter misses nothing that the fine check would take.
* The article compares its segments for equality, which one edited word breaks. Here the segments are
  character n-grams in a sketch that estimates their Jaccard similarity and containment.
* At middling similarity an edited repost and a form filled in for another product look alike. There, how
  much similarity is asked for depends on how far title, numbers and long sentences agree.
"""

from __future__ import annotations

import struct
from collections.abc import Set
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing import fingerprint64
from scrapy_neardup.methods.base import Method
from scrapy_neardup.methods.evidence import longest_sentences, shared_sentences, short_fingerprint
from scrapy_neardup.methods.minwise import jaccard, sketch
from scrapy_neardup.methods.parameters import Parameters, number, option, whole
from scrapy_neardup.model import Comparison, Fingerprint, Page
from scrapy_neardup.text.lexicon import core_words
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.shingles import shingles
from scrapy_neardup.text.titles import article_title
from scrapy_neardup.text.tokens import numbers, words


@dataclass(frozen=True, slots=True)
class CascadeParameters(Parameters):
    """The parameters of ``cascade``; lengths are in letters and digits, shares and similarities in [0, 1].

    From ``certain`` on, similarity alone makes a duplicate. Below it must reach ``base``, less ``by_title``
    times the share of title words in common, less ``by_sentences`` times the share of sentences in common,
    plus ``by_numbers`` times the share of numbers that differ, plus ``by_title_numbers`` if both titles hold
    numbers and not the same ones.
    """

    method: ClassVar[str] = "cascade"

    #: Core words of the title that make a key; as many of keywords and description make another.
    core_words: int = whole(4, 1, 4096)
    #: Longest sentences of the body that are keys, and the length from which a piece is a sentence.
    sentence_keys: int = whole(2, 1, 64)
    min_sentence: int = whole(12, 1, 4096)
    #: Shingles of the body that are keys, and their length: long, so that common phrases are none.
    shingle_keys: int = whole(4, 1, 128)
    key_shingle: int = whole(16, 1, 4096)
    #: Shingles that are compared, and the sketch that holds them.
    shingle: int = whole(5, 1, 4096)
    bins: int = option(512, 64, 128, 256, 512, 1024, 2048, 4096)
    bits: int = option(2, 1, 2, 4, 8)
    #: Sentences, numbers and title words of which the sketch holds a hash.
    max_sentences: int = whole(10, 1, 255)
    max_numbers: int = whole(12, 1, 255)
    max_title_words: int = whole(12, 1, 255)
    #: What decides.
    certain: float = number(0.77)
    base: float = number(0.75)
    by_title: float = number(0.12)
    by_sentences: float = number(0.04)
    by_numbers: float = number(0.03)
    by_title_numbers: float = number(0.06)
    #: Of texts with fewer different shingles than ``short`` one word makes another notice: they are copies from
    #: ``short_certain`` on, or from ``certain`` on with the very same numbers.
    short: int = whole(100, 1, 4096)
    short_certain: float = number(0.90)


@dataclass(frozen=True, slots=True)
class _Sketch:
    """The sketch's layout, version 1, big-endian.

    Q fingerprint of the body's letters · I fingerprint of the title's letters · I number of different
    shingles · B B B how many sentences, numbers, title words · the min-wise sketch · I per sentence,
    then B per sentence (length in letters, at most 255) · H per number · H per title word, of which those
    that are numbers have the lowest bit set, the others not.
    """

    body: int
    title: int
    shingles: int
    minwise: bytes
    sentences: dict[int, int]
    numbers: frozenset[int]
    words: frozenset[int]

    _HEAD: ClassVar[struct.Struct] = struct.Struct(">QIIBBB")

    def pack(self) -> bytes:
        counts = len(self.sentences), len(self.numbers), len(self.words)
        return b"".join(
            (
                self._HEAD.pack(self.body, self.title, self.shingles, *counts),
                self.minwise,
                struct.pack(f">{counts[0]}I{counts[0]}B", *self.sentences, *self.sentences.values()),
                struct.pack(f">{counts[1]}H{counts[2]}H", *sorted(self.numbers), *sorted(self.words)),
            )
        )

    @classmethod
    def unpack(cls, packed: bytes, minwise: int) -> _Sketch:
        """Read a sketch whose min-wise part takes ``minwise`` bytes."""
        body, title, count, *lengths = cls._HEAD.unpack_from(packed)
        at = cls._HEAD.size
        sentences, numbers, words = lengths
        rest = struct.unpack_from(f">{sentences}I{sentences}B{numbers}H{words}H", packed, at + minwise)
        return cls(
            body,
            title,
            count,
            packed[at : at + minwise],
            dict(zip(rest[:sentences], rest[sentences : 2 * sentences], strict=True)),
            frozenset(rest[2 * sentences : 2 * sentences + numbers]),
            frozenset(rest[2 * sentences + numbers :]),
        )


class Cascade(Method):
    """Core words, long sentences and rare shingles find; shingles, sentences, numbers and title decide."""

    name: ClassVar[str] = "cascade"
    version: ClassVar[int] = 1
    parameters_type: ClassVar[type[Parameters]] = CascadeParameters
    parameters: CascadeParameters
    threshold: ClassVar[str] = "base"
    sweep: ClassVar[tuple[float, ...]] = (0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
    witness_below: ClassVar[float] = 0.9

    def fingerprint(self, page: Page) -> Fingerprint:
        p = self.parameters
        title = self._normalize(article_title(page.title))
        title_words = words(title)
        about_words = words(self._normalize(" ".join((*page.keywords, page.description))))
        text = self._normalize(page.text)
        body = letters(text)
        longest = longest_sentences(text, p.min_sentence, max(p.sentence_keys, p.max_sentences))
        whole_sentences = [fingerprint64(sentence) for sentence in longest]
        grams = np.unique(shingles(body, p.shingle))
        keys = [
            *_core_key("title", title_words, p.core_words),
            *_core_key("about", about_words, p.core_words),
            *whole_sentences[: p.sentence_keys],
            *_smallest(shingles(body, p.key_shingle), p.shingle_keys),
        ]
        packed = _Sketch(
            body=fingerprint64(body),
            title=fingerprint64(letters(title)) & 0xFFFFFFFF,
            shingles=len(grams),
            minwise=sketch(grams, p.bins, p.bits),
            sentences={
                one & 0xFFFFFFFF: min(len(sentence), 255)
                for one, sentence in list(zip(whole_sentences, longest, strict=True))[: p.max_sentences]
            },
            numbers=_short(numbers(text), p.max_numbers),
            words=_short(title_words, p.max_title_words),
        ).pack()
        return Fingerprint(tuple(dict.fromkeys(keys)), packed)

    def compare(self, new: Fingerprint, old: bytes, common: Set[int]) -> Comparison:
        p = self.parameters
        a, b = self._unpack(new.sketch), self._unpack(old)
        if a.body == b.body:
            return Comparison(1.0, 1.0, duplicate=True, certain=True, identical=a.title == b.title)
        similarity = jaccard(a.minwise, b.minwise, p.bits)
        both = similarity / (1.0 + similarity) * (a.shingles + b.shingles)
        containment = min(1.0, both / max(1, min(a.shingles, b.shingles)))
        short = max(a.shingles, b.shingles) < p.short
        certain = similarity >= (p.short_certain if short and a.numbers != b.numbers else p.certain)
        duplicate = certain or (not short and similarity >= self._needed(a, b, common))
        return Comparison(similarity, containment, duplicate, certain, identical=False)

    def _needed(self, a: _Sketch, b: _Sketch, common: Set[int]) -> float:
        """The similarity that makes a duplicate, by how far everything else agrees."""
        p = self.parameters
        boilerplate = {key & 0xFFFFFFFF for key in common}
        return (
            p.base
            - p.by_title * _in_common(a.words, b.words)
            - p.by_sentences * _sentence_share(a.sentences, b.sentences, boilerplate)
            + p.by_numbers * (1.0 - _contained(a.numbers, b.numbers))
            + p.by_title_numbers * _conflict(a.words, b.words)
        )

    def shared(self, page: Page, old: bytes, limit: int = 3) -> tuple[str, ...]:
        known = self._unpack(old).sentences.keys()
        p = self.parameters
        return shared_sentences(
            page.text,
            lambda sentence: short_fingerprint(sentence) in known,
            p.min_sentence,
            limit,
            simplified=p.simplified,
        )

    def _normalize(self, text: str) -> str:
        return normalize(text, simplified=self.parameters.simplified)

    def _unpack(self, packed: bytes) -> _Sketch:
        return _Sketch.unpack(packed, self.parameters.bins * self.parameters.bits // 8)


def _core_key(family: str, found: list[str], count: int) -> list[int]:
    """One key of the set of core words; two words at least, or the key would say nothing."""
    core = sorted(core_words(found, count))
    return [fingerprint64(f"{family} {' '.join(core)}")] if len(core) > 1 else []


def _smallest(hashes: npt.NDArray[np.uint64], count: int) -> list[int]:
    """The smallest different hashes: two similar sets are likely to have some of them in common."""
    few = np.unique(np.partition(hashes, 4 * count)[: 4 * count] if len(hashes) > 4 * count else hashes)
    if len(few) < count:  # a text that repeats itself
        few = np.unique(hashes)
    return [int(value) for value in few[:count]]


def _short(found: list[str], count: int) -> frozenset[int]:
    """16-bit hashes of the different strings; of more than ``count`` those with the smallest fingerprints."""
    smallest = sorted((fingerprint64(one), one.isdigit()) for one in set(found))[:count]
    return frozenset(whole & 0xFFFE | digits for whole, digits in smallest)


def _in_common(one: frozenset[int], other: frozenset[int]) -> float:
    """The Jaccard similarity of two title word sets; one half where a title is missing."""
    return len(one & other) / len(one | other) if one and other else 0.5


def _contained(one: frozenset[int], other: frozenset[int]) -> float:
    """The share of the smaller set that the other one holds; 1 where there is nothing to contradict."""
    return len(one & other) / min(len(one), len(other)) if one and other else 1.0


def _conflict(one: frozenset[int], other: frozenset[int]) -> bool:
    """Whether both titles hold numbers and not the same ones."""
    digits = [{word for word in words if word & 1} for words in (one, other)]
    return bool(digits[0] and digits[1] and digits[0] != digits[1])


def _sentence_share(one: dict[int, int], other: dict[int, int], ignored: set[int]) -> float:
    """The smaller of the two length-weighted shares of sentences in common; 0 where nothing is left to compare."""
    both = sum(size for whole, size in one.items() if whole in other and whole not in ignored)
    sizes = [sum(size for whole, size in side.items() if whole not in ignored) for side in (one, other)]
    return both / max(sizes) if max(sizes) else 0.0
