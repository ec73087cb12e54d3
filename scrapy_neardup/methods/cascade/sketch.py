"""The sketch of cascade: the bytes it keeps of a page."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np

from scrapy_neardup.methods.cascade.parameters import CascadeParameters
from scrapy_neardup.methods.minwise import sketch_of_text
from scrapy_neardup.text.sentences import NativeText, SegmentedText
from scrapy_neardup.text.shingles import smallest_shingles
from scrapy_neardup.text.tokens import has_unspaced, numbers

# ----------------------------------------------------------------------------------------------------------------------
# The lines and headlines of a page that was read from HTML: what tells pages of one site apart.
#
# Two pages of one site share its form, so what they share is weak evidence. What the one shows and the other does not
# is better: a line of text of its own, another headline. A sample of the lines is enough: those with the smallest
# fingerprints, so that two pages sample the same ones (bottom-k sketch, Cohen and Kaplan 2007).


#: Lines that are kept of a page, and headlines.
SAMPLE = 32
_MAX_HEADLINES = 8
_MAX_LETTERS = 255


@dataclass(frozen=True, slots=True)
class Lines:
    """``lines``: 32-bit fingerprint to letters (255 at most); ``headlines``: fingerprints of title and h1.

    As bytes, big-endian: B number of headlines · B of lines · I per headline · I per line · B letters of each line.
    """

    headlines: frozenset[int]
    lines: Mapping[int, int]

    @classmethod
    def packed(cls, own: SegmentedText, headlines: Iterable[str]) -> bytes:
        """As bytes, those of a page: a sample of its own lines."""
        letters = np.minimum(own.lengths(), _MAX_LETTERS).tolist()
        known: dict[int, int] = dict(zip(own.line_hashes().tolist(), letters, strict=True))
        told = sorted({own.hashes.short(headline) for headline in headlines if headline})
        return _packed(told[:_MAX_HEADLINES], sorted(known)[:SAMPLE], known)

    @property
    def reach(self) -> int:
        """Up to which fingerprint all lines of the page are in the sample."""
        return max(self.lines) if len(self.lines) == SAMPLE else 2**32 - 1

    def pack(self) -> bytes:
        """As bytes."""
        return _packed(sorted(self.headlines), sorted(self.lines), self.lines)

    @classmethod
    def unpack(cls, packed: bytes) -> tuple[Lines, bytes]:
        """Read them, and what follows them."""
        headlines, lines = packed[0], packed[1]
        end = 2 + 4 * (headlines + lines)
        found = struct.unpack_from(f">{headlines + lines}I", packed, 2)
        letters = packed[end : end + lines]
        own = dict(zip(found[headlines:], letters, strict=True))
        return cls(frozenset(found[:headlines]), own), packed[end + lines :]


def _packed(headlines: Sequence[int], lines: Sequence[int], letters: Mapping[int, int]) -> bytes:
    count = len(headlines), len(lines)
    head = struct.pack(f">BB{sum(count)}I", *count, *headlines, *lines)
    return head + bytes([letters[one] for one in lines])


# ----------------------------------------------------------------------------------------------------------------------
# The numbers of a page: in a form that is filled in twice they differ, in a report that is told twice they do not.
#
# Of a short text each one counts, those that are written in words too, as one may be all that makes it another notice.
# Of a longer text they are runs of digits, of which there is kept a sample and what all of them come to: two pages with
# the same come to the same.


#: Different shingles of a text that is short, at most.
SHORT = 400
#: Numbers that are kept of a longer text, at most: their count has a byte, and counts what all of them come to as well.
_MOST = 254
#: Different numbers that a longer text must have to say anything: of fewer, two texts have the same ones by chance.
_FEW = 5


class Numbers(NamedTuple):
    """Hashes of some of a text's numbers, 16 bits each, and of a longer text what ``all`` of them come to, or else 0.

    As bytes, big-endian: of a longer text H all · H per number.
    """

    some: frozenset[int] = frozenset()
    all: int = 0
    is_long: bool = False

    @staticmethod
    def packed(own: SegmentedText, shingles: int, most: int) -> bytes:
        """As bytes, those of a text with so many different shingles; ``most`` numbers of it."""
        return own.numbers(min(most, _MOST)) if shingles > SHORT else _short(own, most)

    def pack(self) -> bytes:
        """As bytes."""
        found = [self.all] * (self.is_long and bool(self.some)) + sorted(self.some)
        return struct.pack(f">{len(found)}H", *found)

    @classmethod
    def unpack(cls, found: tuple[int, ...], shingles: int) -> Numbers:
        """Read them, of a text with so many different shingles."""
        if shingles <= SHORT:
            return cls(frozenset(found))
        return cls(frozenset(found[1:]), found[0], True) if found else cls(is_long=True)

    def same(self, other: Numbers) -> bool:
        """Whether two longer texts have the very same numbers, and enough for that to say anything."""
        return self.is_long and len(self.some) >= _FEW and self == other

    def missing(self, other: Numbers) -> float:
        """The share of the fewer numbers that the other text has not; 0 where there is nothing to contradict."""
        if self.is_long != other.is_long or not (self.some and other.some):
            return 0.0
        if not self.is_long:
            return _missing(self.some, other.some)
        # Of either there may be more that are larger than what is kept.
        known = min(max(self.some), max(other.some))
        ours, theirs = ({one for one in numbers.some if one <= known} for numbers in (self, other))
        return _missing(ours, theirs) if min(len(ours), len(theirs)) >= _FEW else 0.0


def _missing(one: Set[int], other: Set[int]) -> float:
    return 1.0 - len(one & other) / min(len(one), len(other))


def _short(own: SegmentedText, most: int) -> bytes:
    """Of more than ``most`` those with the smallest fingerprints; the lowest bit says that it is written in digits."""
    smallest = sorted((own.hashes.of(one), one.isdigit()) for one in set(numbers(own.text)))[:most]
    found = {whole & 0xFFFE | digits for whole, digits in smallest}
    return struct.pack(f">{len(found)}H", *sorted(found))


# ----------------------------------------------------------------------------------------------------------------------
# In which order the sentences of a page stand: two bytes a sentence, and it can be told where in it a text stands.
#
# A sketch of shingles says how much two pages share, and not where. This says whether they open alike, and whether what
# a sentence says stands in the other page.


_T = TypeVar("_T")
#: Sentences that are kept from the beginning of a page, and from its end.
_FIRST, _LAST = 16, 8
#: The bits of its hash by which a sentence is known.
_BITS = 0xFFFF
#: Sentences that are the opening of a page.
_OPENING_SENTENCES = 3


class Order(NamedTuple):
    """16-bit fingerprints of the sentences, in their order; of a long page of the first and last ones.

    As bytes, big-endian: B number · H per sentence.
    """

    sentences: tuple[int, ...]

    @classmethod
    def packed(cls, own: SegmentedText) -> bytes:
        """As bytes, those of a page's own sentences."""
        ends = own.end_hashes(_FIRST, _LAST)
        return bytes((len(ends) // 2,)) + ends

    def pack(self) -> bytes:
        """As bytes."""
        return struct.pack(f">B{len(self.sentences)}H", len(self.sentences), *self.sentences)

    @classmethod
    def unpack(cls, packed: bytes) -> tuple[Order, bytes]:
        """Read them, and what follows them."""
        end = 1 + 2 * packed[0]
        return cls(struct.unpack_from(f">{packed[0]}H", packed, 1)), packed[end:]

    def opens_like(self, other: Order) -> bool:
        """Whether a sentence of the opening of either stands in the other one."""
        ours, theirs = set(self.sentences), set(other.sentences)
        return not (
            ours.isdisjoint(other.sentences[:_OPENING_SENTENCES])
            and theirs.isdisjoint(self.sentences[:_OPENING_SENTENCES])
        )


def known_in_order(own: SegmentedText) -> list[int]:
    """The 16 bits by which each sentence is known in an order."""
    found: list[int] = (own.line_hashes() & _BITS).tolist()
    return found


def kept(lines: Sequence[_T]) -> Sequence[_T]:
    """Those of a page's sentences of which the order is kept."""
    return lines if len(lines) <= _FIRST + _LAST else [*lines[:_FIRST], *lines[-_LAST:]]


# ----------------------------------------------------------------------------------------------------------------------
# What the default method keeps of a page, packed into bytes.


#: Of the 24 bits of a title word: it is a number; it stands in the text of its page.
NUMBER, STANDS = 1, 2
_WORD_BYTES = 3
_LARGEST_WORD = 256**_WORD_BYTES
#: The sketch of an opening: bins and bits of it, and the bytes that these make.
OPENING_BINS, OPENING_BITS = 16, 4
OPENING_BYTES = OPENING_BINS * OPENING_BITS // 8
HEAD = struct.Struct(">QIIIIBBB")


class Article(NamedTuple):
    """The article where it is a part of what is judged: its different shingles, and the min-wise sketch of them."""

    shingles: int
    minwise: bytes

    def pack(self) -> bytes:
        """As bytes."""
        return struct.pack(">I", self.shingles) + self.minwise

    @classmethod
    def unpack(cls, packed: bytes) -> Article:
        """Read what ``pack`` wrote."""
        return cls(struct.unpack_from(">I", packed)[0], packed[4:])


@dataclass(slots=True)  # not frozen, as two are made for each comparison, which takes half the time so
class Sketch:
    """The sketch's layout, version 1, big-endian.

    Q fingerprint of the body's letters · I that of the title's letters, 0 without one · I that of the site, 0 if it is
    not known · I I number of different shingles, with boilerplate and without · B B B how many sentences, numbers,
    title words · min-wise sketch of the shingles · that of those of the opening (8 bytes) · I per sentence · H per
    number (see ``Numbers``) · 24 bits per title word, of which the lowest two say that it is a number, and that it
    stands in the text · the order of the sentences (see ``Order``). But for body, title and the first of the counts,
    all is of what is not boilerplate.

    Of a page read from HTML there follow its lines (see ``Lines``), and where the article is a part of what is judged,
    I number of its different shingles · min-wise sketch of them; then body, numbers, words, opening and order are of
    the article.
    """

    body: int
    title: int
    site: int
    whole: int
    shingles: int
    minwise: bytes
    opening: bytes
    sentences: frozenset[int]
    numbers: Numbers
    words: frozenset[int]
    #: Those of the words that stand in the text.
    standing: frozenset[int]
    order: Order
    lines: Lines | None = None
    article: Article | None = None

    def of_article(self) -> Sketch:
        """The same of the article alone, where that is a part of what is judged; else of all."""
        if self.article is None:
            return self
        count = self.article.shingles
        return replace(self, whole=count, shingles=count, minwise=self.article.minwise)

    def known_words(self, most: int) -> int:
        """The hash up to which all words of the title are among ``words``, where so many are kept at ``most``."""
        return max(self.words) if len(self.words) >= most else _LARGEST_WORD

    def pack(self) -> bytes:
        """The sketch as bytes."""
        return packed_sketch(
            (self.body, self.title, self.site, self.whole, self.shingles),
            self.minwise,
            self.opening,
            self.sentences,
            self.numbers.pack(),
            packed_words(self.words, self.standing),
            self.order.pack(),
            self.lines.pack() if self.lines else b"",
            self.article.pack() if self.article else b"",
        )

    @classmethod
    def unpack(cls, packed: bytes, minwise: int) -> Sketch:
        """Read a sketch whose min-wise part takes ``minwise`` bytes."""
        body, title, site, whole, shingles, sentences, numbers, words = HEAD.unpack_from(packed)
        opening = HEAD.size + minwise
        middle = opening + OPENING_BYTES
        rest = struct.unpack_from(f">{sentences}I{numbers}H", packed, middle)
        words_at = middle + 4 * sentences + 2 * numbers
        end = words_at + 3 * words
        marked = [int.from_bytes(packed[at : at + 3], "big") for at in range(words_at, end, 3)]
        order, tail = Order.unpack(packed[end:])
        lines = None
        if tail:
            lines, tail = Lines.unpack(tail)
        return cls(
            body,
            title,
            site,
            whole,
            shingles,
            packed[HEAD.size : opening],
            packed[opening:middle],
            frozenset(rest[:sentences]),
            Numbers.unpack(rest[sentences:], shingles),
            frozenset(word & ~STANDS for word in marked),
            frozenset(word & ~STANDS for word in marked if word & STANDS),
            order,
            lines,
            Article.unpack(tail) if tail else None,
        )


def packed_sketch(
    head: tuple[int, int, int, int, int],
    minwise: bytes,
    opening: bytes,
    sentences: Set[int],
    numbers: bytes,
    words: bytes,
    order: bytes,
    lines: bytes,
    article: bytes,
) -> bytes:
    """A sketch of parts of which most are packed already; ``head``: its first five numbers."""
    counts = len(sentences), len(numbers) // 2, len(words) // _WORD_BYTES
    packed = struct.pack(f">{counts[0]}I", *sorted(sentences))
    return b"".join((HEAD.pack(*head, *counts), minwise, opening, packed, numbers, words, order, lines, article))


def packed_words(words: Iterable[int], standing: Set[int]) -> bytes:
    """Words of a title as a sketch has them, with a mark on those that stand in the text."""
    return b"".join(
        [(word | STANDS if word in standing else word).to_bytes(_WORD_BYTES, "big") for word in sorted(words)]
    )


# ----------------------------------------------------------------------------------------------------------------------
# What the default method makes of the shingles of a text: how many there are, a sketch of them, and keys.


#: Letters that are the opening of a text.
_OPENING_SHINGLES = 80


class Shingles(NamedTuple):
    """Of the shingles of the letters of one text: all of them, those of its opening, and keys."""

    article: Article
    #: The sketch of those of the opening.
    opening: bytes
    #: The smallest of longer ones: so long that few phrases are common.
    keys: list[int]

    @classmethod
    def of(cls, text: SegmentedText, p: CascadeParameters) -> Shingles:
        """Those of the letters of a text."""
        if isinstance(text, NativeText):
            opening = _OPENING_SHINGLES, OPENING_BINS, OPENING_BITS
            keys = p.key_shingle, p.key_shingle_spaced, p.shingle_keys
            count, minwise, first, smallest = text.shingled(p.shingle, p.bins, p.bits, *opening, *keys)
            return cls(Article(count, minwise), first, smallest)
        letters, hashes = text.letters, text.hashes
        length = p.key_shingle if has_unspaced(letters) else p.key_shingle_spaced
        return cls(
            article_of(text, p),
            sketch_of_text(letters[:_OPENING_SHINGLES], p.shingle, OPENING_BINS, OPENING_BITS, hashes)[1],
            smallest_shingles(letters, length, p.shingle_keys, hashes),
        )


def article_of(text: SegmentedText, p: CascadeParameters) -> Article:
    """How many different shingles there are, and the sketch of them."""
    return Article(*sketch_of_text(text.letters, p.shingle, p.bins, p.bits, text.hashes))
