"""What the default method keeps of a page, packed into bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from scrapy_neardup.methods.cascade_lines import Lines
from scrapy_neardup.methods.cascade_numbers import Numbers
from scrapy_neardup.methods.cascade_order import Order

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
