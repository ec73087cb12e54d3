"""The sketch of cascade: the bytes it keeps of a page."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from scrapy_neardup.methods.cascade.parameters import FIXED, CascadeParameters
from scrapy_neardup.text.sentences import SegmentedText, SketchForm, TextSketch
from scrapy_neardup.text.tokens import numbers

#: Most lines and headlines in a sketch.
MAX_LINES = 32
_MAX_HEADLINES = 8
#: Most links in a sketch.
MAX_LINKS = 12
_MAX_LETTERS = 255
#: Most shingles of a short text.
SHORT = 400
#: Most long sentences, numbers and title words.
MAX_SENTENCES, MAX_NUMBERS, MAX_WORDS = 3, 32, 16
#: Sentences in the order of a page: so many from its beginning, and from its end.
FIRST, LAST = 16, 8
#: Sentences with which a page opens.
_OPENING = 3
#: Flags in the 24 bits of a title word: it is a number; it occurs in the text.
NUMBER, IN_TEXT = 1, 2
_WORD_BYTES = 3
_LARGEST_WORD = 256**_WORD_BYTES
HEAD = struct.Struct(">QIIIIIBBB")


def _comparable(ours: Set[int], theirs: Set[int], most: int) -> tuple[Set[int], Set[int]]:
    """Return two samples up to the largest hash that both cover; each has at most ``most`` hashes, the smallest."""
    known = min(max(some) if len(some) >= most else 2**32 for some in (ours, theirs))
    return {one for one in ours if one <= known}, {one for one in theirs if one <= known}


@dataclass(frozen=True, slots=True)
class Lines:
    """A sample of a page's lines, and its headlines; they tell pages of one site apart.

    Pages of one site share its template, so lines and headlines that differ are the better evidence. The sample has the
    smallest fingerprints, so two pages sample the same lines (bottom-k sketch, Cohen and Kaplan 2007).

    ``lines``: 32-bit fingerprint to letters (at most 255); ``headlines``: fingerprints of title and h1. ``links``: a
    sample of the links beside the text. Packed, big-endian: B number of headlines · B of lines and links · I per
    headline · I per line and link · B letters per line, 0 for a link.
    """

    headlines: frozenset[int]
    lines: Mapping[int, int]
    links: frozenset[int] = frozenset()

    @staticmethod
    def encode(own: SegmentedText, headlines: Iterable[str], links: Iterable[str] = ()) -> bytes:
        """Pack the headlines, and samples of the lines and links of a page."""
        letters: dict[int, int] = dict(zip(own.line_hashes().tolist(), map(len, own.lines), strict=True))
        heads = sorted({*own.hashes.shorts(list(filter(None, headlines)))})[:_MAX_HEADLINES]
        lines = sorted(letters)[:MAX_LINES]
        others = sorted({*own.hashes.shorts(list(links))})[:MAX_LINKS]
        found = [*heads, *lines, *others]
        head = struct.pack(f">BB{len(found)}I", len(heads), len(found) - len(heads), *found)
        return head + bytes([min(letters[one], _MAX_LETTERS) for one in lines]) + bytes(len(others))

    @classmethod
    def unpack(cls, packed: bytes) -> tuple[Lines, bytes]:
        """Read the lines, and return the bytes after them."""
        headlines, lines = packed[0], packed[1]
        end = 2 + 4 * (headlines + lines)
        found = struct.unpack_from(f">{headlines + lines}I", packed, 2)
        letters = packed[end : end + lines]
        first_link = headlines + lines - letters.count(0)
        own = dict(zip(found[headlines:first_link], letters, strict=False))
        return cls(frozenset(found[:headlines]), own, frozenset(found[first_link:])), packed[end + lines :]

    @property
    def reach(self) -> int:
        """The sample has every fingerprint up to this one."""
        return max(self.lines) if len(self.lines) == MAX_LINES else 2**32 - 1

    def lists_others(self, other: Lines) -> bool:
        """Whether both pages have links beside the text, and most of these are different."""
        ours, theirs = _comparable(self.links, other.links, MAX_LINKS)
        few = min(len(ours), len(theirs))
        return few > 0 and len(ours & theirs) < FIXED.same_links * few


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
    def encode(own: SegmentedText, sketch: TextSketch, shingles: int) -> bytes:
        """Pack the numbers of a text; the judged text has so many different shingles."""
        if shingles > SHORT:
            return sketch.numbers
        each = {*numbers(own.text)}
        hashed = zip(own.hashes.every(each), map(str.isdigit, each), strict=True)
        found = sorted({whole & 0xFFFE | digits for whole, digits in hashed})[:MAX_NUMBERS]  # bit 0 marks digits
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

    def adds_to(self, other: Numbers) -> bool:
        """Whether there is a number that the other text lacks; of a short and a longer text nobody knows."""
        if self.is_long != other.is_long:
            return True
        known = max(other.some) if len(other.some) >= MAX_NUMBERS else 2**16
        return any(one <= known for one in self.some - other.some)

    def contradicts(self, other: Numbers) -> bool:
        """Whether each text has a number that the other lacks; of a short and a longer text nobody knows."""
        return self.is_long == other.is_long and self.adds_to(other) and other.adds_to(self)

    def missing_share(self, other: Numbers) -> float:
        """Return the share of the smaller set of numbers that the other lacks; 0 if nothing contradicts."""
        if self.is_long != other.is_long or not (self.some and other.some):
            return 0.0
        ours, theirs = _comparable(self.some, other.some, MAX_NUMBERS)
        few = min(len(ours), len(theirs))
        return 1.0 - len(ours & theirs) / few if few >= (FIXED.few_numbers if self.is_long else 1) else 0.0


class Article(NamedTuple):
    """Number of different shingles, and their min-wise sketch."""

    shingles: int
    minwise: bytes

    @staticmethod
    def encode(sketch: TextSketch) -> bytes:
        """Pack the two parts from a text's sketch."""
        return struct.pack(">I", sketch.shingles) + sketch.minwise

    @classmethod
    def unpack(cls, packed: bytes) -> Article:
        return cls(struct.unpack_from(">I", packed)[0], packed[4:])


@dataclass(slots=True)  # not frozen: two are made for each comparison, in half the time
class Sketch:
    """The sketch's layout, version 2, big-endian.

    Q fingerprint of the body's letters · I of the title's letters, 0 without one · I of the site, 0 if unknown · I of
    the URL's number (see ``url_number``), 0 without one · I I number of different shingles, with and without
    boilerplate · B B B number of sentences, numbers, title words · min-wise sketch of the shingles · I per sentence · H
    per number (see ``Numbers``) · 24 bits per title word, the lowest two are ``NUMBER`` and ``IN_TEXT`` · B number of
    the first and last sentences · H hash of each of these in their order. Only body, title and the first count include
    boilerplate.

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
    #: The first and last sentences in their order, and as a set.
    order: tuple[int, ...]
    ends: frozenset[int]
    lines: Lines | None = None
    article: Article | None = None

    def article_view(self) -> Sketch:
        """Return the sketch of the article, or of all text without one."""
        if self.article is None:
            return self
        count = self.article.shingles
        return replace(self, whole=count, shingles=count, minwise=self.article.minwise)

    def has_title_of(self, other: Sketch) -> bool:
        """Whether the titles are equal. One of them may have a further part, but not both."""
        return self.title == other.title > 0 and (self.words <= other.words or self.words >= other.words)

    @property
    def word_limit(self) -> int:
        """The sketch has every title word with a hash up to this one."""
        return max(self.words) if len(self.words) >= MAX_WORDS else _LARGEST_WORD

    def opens_like(self, other: Sketch) -> bool:
        """Whether an opening sentence of either page is in the other."""
        return not (self.ends.isdisjoint(other.order[:_OPENING]) and other.ends.isdisjoint(self.order[:_OPENING]))

    @classmethod
    @lru_cache(maxsize=4)
    def unpack(cls, packed: bytes, minwise: int) -> Sketch:
        """Read a sketch with ``minwise`` bytes of min-wise sketch."""
        body, title, site, url_number, whole, shingles, sentences, numbers, words = HEAD.unpack_from(packed)
        middle = HEAD.size + minwise
        rest = struct.unpack_from(f">{sentences}I{numbers}H", packed, middle)
        words_at = middle + 4 * sentences + 2 * numbers
        end = words_at + _WORD_BYTES * words
        marked = [int.from_bytes(packed[at : at + 3], "big") for at in range(words_at, end, _WORD_BYTES)]
        order = struct.unpack_from(f">{packed[end]}H", packed, end + 1)
        tail, lines = packed[end + 1 + 2 * packed[end] :], None
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
            frozenset(order),
            lines,
            Article.unpack(tail) if tail else None,
        )


def pack_sketch(
    head: tuple[int, int, int, int, int, int],
    minwise: bytes,
    sentences: bytes,
    numbers: bytes,
    words: bytes,
    order: bytes,
    lines: bytes,
    article: bytes,
) -> bytes:
    """Pack a sketch; ``head`` is its first six numbers, and the parts in bytes are packed already."""
    counts = len(sentences) // 4, len(numbers) // 2, len(words) // _WORD_BYTES
    count = bytes((len(order) // 2,))
    return b"".join((HEAD.pack(*head, *counts), minwise, sentences, numbers, words, count, order, lines, article))


def sketch_form(p: CascadeParameters) -> SketchForm:
    """Return how much of a text is kept."""
    return SketchForm(
        *(p.shingle, p.bins, p.bits),
        *(p.key_shingle, p.key_shingle_spaced, p.shingle_keys),
        *(p.min_sentence, max(p.sentence_keys, MAX_SENTENCES), MAX_SENTENCES, MAX_NUMBERS, FIRST, LAST),
    )
