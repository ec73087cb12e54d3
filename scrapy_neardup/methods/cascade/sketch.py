"""The sketch of cascade: the bytes it keeps of a page."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from scrapy_neardup.methods.cascade.parameters import FIXED, CascadeParameters
from scrapy_neardup.text.sentences import SegmentedText, SketchForm, TextSketch
from scrapy_neardup.text.tokens import numbers

#: Most lines and headlines in a sketch.
MAX_LINES = 32
_MAX_HEADLINES = 8
_MAX_LETTERS = 255


@dataclass(frozen=True, slots=True)
class Lines:
    """A sample of a page's lines, and its headlines; they tell pages of one site apart.

    Pages of one site share its template, so lines and headlines that differ are the better evidence. The sample has the
    smallest fingerprints, so that two pages sample the same lines (bottom-k sketch, Cohen and Kaplan 2007).

    ``lines``: 32-bit fingerprint to letters (at most 255); ``headlines``: fingerprints of title and h1. Packed,
    big-endian: B number of headlines · B of lines · I per headline · I per line · B letters per line.
    """

    headlines: frozenset[int]
    lines: Mapping[int, int]

    @classmethod
    def encode(cls, own: SegmentedText, headlines: Iterable[str]) -> bytes:
        """Pack the headlines and a sample of the lines of a page."""
        known: dict[int, int] = dict(zip(own.line_hashes().tolist(), own.lengths, strict=True))
        fingerprints = sorted({*own.hashes.shorts(list(filter(None, headlines)))})
        return _pack_lines(fingerprints[:_MAX_HEADLINES], sorted(known)[:MAX_LINES], known)

    @property
    def reach(self) -> int:
        """The sample has every fingerprint up to this one."""
        return max(self.lines) if len(self.lines) == MAX_LINES else 2**32 - 1

    def pack(self) -> bytes:
        """Pack the lines."""
        return _pack_lines(sorted(self.headlines), sorted(self.lines), self.lines)

    @classmethod
    def unpack(cls, packed: bytes) -> tuple[Lines, bytes]:
        """Read the lines, and return the bytes after them."""
        headlines, lines = packed[0], packed[1]
        end = 2 + 4 * (headlines + lines)
        found = struct.unpack_from(f">{headlines + lines}I", packed, 2)
        letters = packed[end : end + lines]
        own = dict(zip(found[headlines:], letters, strict=True))
        return cls(frozenset(found[:headlines]), own), packed[end + lines :]


def _pack_lines(headlines: Sequence[int], lines: Sequence[int], letters: Mapping[int, int]) -> bytes:
    count = len(headlines), len(lines)
    head = struct.pack(f">BB{sum(count)}I", *count, *headlines, *lines)
    return head + bytes([min(letters[one], _MAX_LETTERS) for one in lines])


#: Most shingles of a short text.
SHORT = 400
#: Most numbers of a longer text: with their sum the count must fit a byte.
_MAX_NUMBERS = 254


class Numbers(NamedTuple):
    """16-bit hashes of numbers. A form filled in twice has other numbers, an article that is copied has the same.

    Of a short text every number counts, also number words: one may make it another notice. Of a longer text these are
    runs of digits: a sample, and the sum ``all`` of their hashes, equal if all numbers are equal. Packed, big-endian: H
    all (longer texts) · H per number.
    """

    some: frozenset[int] = frozenset()
    all: int = 0
    is_long: bool = False

    @staticmethod
    def encode(own: SegmentedText, sketch: TextSketch, shingles: int, most: int) -> bytes:
        """Pack the numbers of a text, ``most`` of a short one; the judged text has so many different shingles."""
        return sketch.numbers if shingles > SHORT else _encode_short(own, most)

    def pack(self) -> bytes:
        found = [self.all] * (self.is_long and bool(self.some)) + sorted(self.some)
        return struct.pack(f">{len(found)}H", *found)

    @classmethod
    def unpack(cls, found: tuple[int, ...], shingles: int) -> Numbers:
        """Read the numbers of a text with so many different shingles."""
        if shingles <= SHORT:
            return cls(frozenset(found))
        return cls(frozenset(found[1:]), found[0], True) if found else cls(is_long=True)

    def equals(self, other: Numbers) -> bool:
        """Whether two longer texts have the same numbers, and enough of them to matter."""
        return self.is_long and len(self.some) >= FIXED.few_numbers and self == other

    def adds_to(self, other: Numbers, most: int) -> bool:
        """Whether there is a number that the other text lacks; a longer text keeps ``most`` numbers.

        Numbers of a short and a longer text cannot be compared, so they may.
        """
        if self.is_long != other.is_long:
            return True
        known = max(other.some) if len(other.some) >= most else 2**16
        return any(one <= known for one in self.some - other.some)

    def missing_share(self, other: Numbers) -> float:
        """Return the share of the smaller set of numbers that the other lacks; 0 if nothing contradicts."""
        if self.is_long != other.is_long or not (self.some and other.some):
            return 0.0
        if not self.is_long:
            return _missing_share(self.some, other.some)
        # Compare only up to the largest hash that both samples cover.
        known = min(max(self.some), max(other.some))
        ours, theirs = ({one for one in numbers.some if one <= known} for numbers in (self, other))
        return _missing_share(ours, theirs) if min(len(ours), len(theirs)) >= FIXED.few_numbers else 0.0


def _missing_share(one: Set[int], other: Set[int]) -> float:
    return 1.0 - len(one & other) / min(len(one), len(other))


def _encode_short(own: SegmentedText, most: int) -> bytes:
    """Pack the numbers with the smallest fingerprints; the lowest bit marks those in digits."""
    smallest = sorted((own.hashes.of(one), one.isdigit()) for one in set(numbers(own.text)))[:most]
    found = {whole & 0xFFFE | digits for whole, digits in smallest}
    return struct.pack(f">{len(found)}H", *sorted(found))


_T = TypeVar("_T")
#: Sentences in an order: so many from the beginning of a page, and from its end.
_FIRST, _LAST = 16, 8
#: Sentences with which a page opens.
_OPENING = 3
#: Bits of a sentence's hash.
_BITS = 0xFFFF


class Order(NamedTuple):
    """16-bit fingerprints of the first and last sentences in order.

    They show whether a sentence of one page is in the other. Packed, big-endian: B number · H per sentence.
    """

    sentences: tuple[int, ...]

    def opens_like(self, other: Order) -> bool:
        """Whether an opening sentence of either page is in the other."""
        ours, theirs = set(self.sentences), set(other.sentences)
        return not (ours.isdisjoint(other.sentences[:_OPENING]) and theirs.isdisjoint(self.sentences[:_OPENING]))

    def pack(self) -> bytes:
        return struct.pack(f">B{len(self.sentences)}H", len(self.sentences), *self.sentences)

    @classmethod
    def unpack(cls, packed: bytes) -> tuple[Order, bytes]:
        """Read an order, and return the bytes after it."""
        end = 1 + 2 * packed[0]
        return cls(struct.unpack_from(f">{packed[0]}H", packed, 1)), packed[end:]


def order_hashes(own: SegmentedText) -> list[int]:
    """Return the 16-bit hash of each sentence."""
    hashes: list[int] = (own.line_hashes() & _BITS).tolist()
    return hashes


def take_ends(items: Sequence[_T]) -> Sequence[_T]:
    """Return the items at the places that an order keeps."""
    return items if len(items) <= _FIRST + _LAST else [*items[:_FIRST], *items[-_LAST:]]


#: Flags in the 24 bits of a title word: it is a number; it occurs in the text.
NUMBER, IN_TEXT = 1, 2
_WORD_BYTES = 3
_LARGEST_WORD = 256**_WORD_BYTES
HEAD = struct.Struct(">QIIIIIBBB")


class Article(NamedTuple):
    """Number of different shingles, and their min-wise sketch."""

    shingles: int
    minwise: bytes

    @classmethod
    def of(cls, sketch: TextSketch) -> Article:
        return cls(sketch.shingles, sketch.minwise)

    def pack(self) -> bytes:
        return struct.pack(">I", self.shingles) + self.minwise

    @classmethod
    def unpack(cls, packed: bytes) -> Article:
        return cls(struct.unpack_from(">I", packed)[0], packed[4:])


@dataclass(slots=True)  # not frozen: two are made for each comparison, in half the time
class Sketch:
    """The sketch's layout, version 2, big-endian.

    Q fingerprint of the body's letters · I of the title's letters, 0 without one · I of the site, 0 if unknown · I of
    the URL's number (see ``url_number``), 0 without one · I I number of different shingles, with and without
    boilerplate · B B B number of sentences, numbers, title words · min-wise sketch of the shingles · I per sentence · H
    per number (see ``Numbers``) · 24 bits per title word, the lowest two are ``NUMBER`` and ``IN_TEXT`` · the order of
    the sentences (see ``Order``). Only body, title and the first count include boilerplate.

    A page read from HTML also has its lines (see ``Lines``). If the article is a part of the judged text, I number of
    its different shingles · their min-wise sketch follow; then body, numbers, words and order are the article's.
    """

    body: int
    title: int
    site: int
    url_number: int
    whole: int
    shingles: int
    minwise: bytes
    sentences: frozenset[int]
    numbers: Numbers
    words: frozenset[int]
    #: The words that occur in the text.
    words_in_text: frozenset[int]
    order: Order
    lines: Lines | None = None
    article: Article | None = None

    def article_view(self) -> Sketch:
        """Return the sketch of the article alone, or of all text if there is no article."""
        if self.article is None:
            return self
        count = self.article.shingles
        return replace(self, whole=count, shingles=count, minwise=self.article.minwise)

    def word_limit(self, most: int) -> int:
        """Return the largest hash of a complete part of ``words``, if ``most`` words are kept."""
        return max(self.words) if len(self.words) >= most else _LARGEST_WORD

    def pack(self) -> bytes:
        """Pack the sketch."""
        return pack_sketch(
            (self.body, self.title, self.site, self.url_number, self.whole, self.shingles),
            self.minwise,
            self.sentences,
            self.numbers.pack(),
            pack_words(self.words, self.words_in_text),
            self.order.pack(),
            self.lines.pack() if self.lines else b"",
            self.article.pack() if self.article else b"",
        )

    @classmethod
    def unpack(cls, packed: bytes, minwise: int) -> Sketch:
        """Read a sketch with ``minwise`` bytes of min-wise sketch."""
        body, title, site, url_number, whole, shingles, sentences, numbers, words = HEAD.unpack_from(packed)
        middle = HEAD.size + minwise
        rest = struct.unpack_from(f">{sentences}I{numbers}H", packed, middle)
        words_at = middle + 4 * sentences + 2 * numbers
        end = words_at + 3 * words
        marked = [int.from_bytes(packed[at : at + 3], "big") for at in range(words_at, end, 3)]
        order, tail = Order.unpack(packed[end:])
        lines = None
        if tail:
            lines, tail = Lines.unpack(tail)
        return cls(
            *(body, title, site, url_number, whole, shingles),
            packed[HEAD.size : middle],
            frozenset(rest[:sentences]),
            Numbers.unpack(rest[sentences:], shingles),
            frozenset(word & ~IN_TEXT for word in marked),
            frozenset(word & ~IN_TEXT for word in marked if word & IN_TEXT),
            order,
            lines,
            Article.unpack(tail) if tail else None,
        )


def pack_sketch(
    head: tuple[int, int, int, int, int, int],
    minwise: bytes,
    sentences: Set[int],
    numbers: bytes,
    words: bytes,
    order: bytes,
    lines: bytes,
    article: bytes,
) -> bytes:
    """Pack a sketch from parts, most packed already; ``head`` is its first six numbers."""
    counts = len(sentences), len(numbers) // 2, len(words) // _WORD_BYTES
    packed = struct.pack(f">{counts[0]}I", *sorted(sentences))
    return b"".join((HEAD.pack(*head, *counts), minwise, packed, numbers, words, order, lines, article))


def pack_words(words: Iterable[int], words_in_text: Set[int]) -> bytes:
    """Pack title words, with a flag on those that occur in the text."""
    return b"".join(
        [(word | IN_TEXT if word in words_in_text else word).to_bytes(_WORD_BYTES, "big") for word in sorted(words)]
    )


def sketch_form(p: CascadeParameters) -> SketchForm:
    """Return how much of a text is kept."""
    return SketchForm(
        *(p.shingle, p.bins, p.bits),
        *(p.key_shingle, p.key_shingle_spaced, p.shingle_keys),
        *(p.min_sentence, max(p.sentence_keys, p.max_sentences), min(p.max_numbers, _MAX_NUMBERS), _FIRST, _LAST),
    )
