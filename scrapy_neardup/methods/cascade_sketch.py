"""What the default method keeps of a page, packed into bytes."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import ClassVar

from scrapy_neardup.methods.cascade_lines import Lines


@dataclass(frozen=True, slots=True)
class Article:
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


@dataclass(frozen=True, slots=True)
class Sketch:
    """The sketch's layout, version 1, big-endian.

    Q fingerprint of the body's letters · I that of the title's letters · I that of the site, 0 if it is not known ·
    I I number of different shingles, with boilerplate and without · B B B how many sentences, numbers, title words ·
    min-wise sketch of the shingles · that of the vocabulary · I per sentence · H per number · H per title word, of
    which those that are numbers have the lowest bit set, the others not. But for body, title and the first of the
    counts, all is of what is not boilerplate.

    Of a page read from HTML there follow its lines (see ``Lines``), and where the article is a part of what is judged,
    I number of its different shingles · min-wise sketch of them; then body, vocabulary and numbers are of the article.
    """

    body: int
    title: int
    site: int
    whole: int
    shingles: int
    minwise: bytes
    vocabulary: bytes
    sentences: frozenset[int]
    numbers: frozenset[int]
    words: frozenset[int]
    lines: Lines | None = None
    article: Article | None = None

    _HEAD: ClassVar[struct.Struct] = struct.Struct(">QIIIIBBB")

    def of_article(self) -> Sketch:
        """The same of the article alone, where that is a part of what is judged; else of all."""
        if self.article is None:
            return self
        count = self.article.shingles
        return replace(self, whole=count, shingles=count, minwise=self.article.minwise)

    def pack(self) -> bytes:
        """The sketch as bytes."""
        counts = len(self.sentences), len(self.numbers), len(self.words)
        return b"".join(
            (
                self._HEAD.pack(self.body, self.title, self.site, self.whole, self.shingles, *counts),
                self.minwise,
                self.vocabulary,
                struct.pack(f">{counts[0]}I", *sorted(self.sentences)),
                struct.pack(f">{counts[1]}H{counts[2]}H", *sorted(self.numbers), *sorted(self.words)),
                self.lines.pack() if self.lines else b"",
                self.article.pack() if self.article else b"",
            )
        )

    @classmethod
    def unpack(cls, packed: bytes, minwise: int, vocabulary: int) -> Sketch:
        """Read a sketch whose min-wise parts take ``minwise`` and ``vocabulary`` bytes."""
        body, title, site, whole, shingles, sentences, numbers, words = cls._HEAD.unpack_from(packed)
        middle = cls._HEAD.size + minwise
        end = middle + vocabulary
        rest = struct.unpack_from(f">{sentences}I{numbers}H{words}H", packed, end)
        lines, article = None, packed[end + 4 * sentences + 2 * (numbers + words) :]
        if article:
            lines, article = Lines.unpack(article)
        return cls(
            body,
            title,
            site,
            whole,
            shingles,
            packed[cls._HEAD.size : middle],
            packed[middle:end],
            frozenset(rest[:sentences]),
            frozenset(rest[sentences : sentences + numbers]),
            frozenset(rest[sentences + numbers :]),
            lines,
            Article.unpack(article) if article else None,
        )
