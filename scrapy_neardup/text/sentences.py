"""Sentences of a text."""

from __future__ import annotations

import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence, Set
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing import compiled
from scrapy_neardup.hashing.compiled import Kernels
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.text.characters import CLOSING, MARKS, QUOTES, known
from scrapy_neardup.text.normalize import eased, letters_each, normalize
from scrapy_neardup.text.tokens import digits

# ----------------------------------------------------------------------------------------------------------------------
# Where sentences end.
#
# One pass over the text with a character class, never a pattern that can backtrack: hostile pages
# hold hundreds of thousands of characters without a full stop.


_CLOSING = re.escape(CLOSING)
# A Latin full stop ends a sentence only before white space or what closes a quotation, so that 3.5 and example.com stay
# whole; the other marks always do, with the quotes and brackets that close behind them. Abbreviations are cut: both
# copies have them cut. The pattern begins with one class of characters, which is searched twice as fast as a choice.
_END = re.compile(rf"[{MARKS}.](?:(?<!\.)|(?=[\s{QUOTES}{_CLOSING}]))[{MARKS}]*[{_CLOSING}]*")


def sentences(text: str) -> list[str]:
    """The sentences of a text, stripped, without their end marks and without empty pieces.

    >>> sentences("第一句。“第二句！”他说；\\nIt cost 3.5 million. Nobody paid.")
    ['第一句', '“第二句', '他说', 'It cost 3.5 million', 'Nobody paid.']
    """
    return [piece for piece in map(str.strip, _END.split(text)) if piece]


# ----------------------------------------------------------------------------------------------------------------------
# A text that is cut into sentences once, for all that is asked of it.
#
# A *line* here is the letters and digits of a sentence. Nearly all that a method makes of a text is made of the hashes
# of its lines and of the row of all letters; the sentences themselves are asked for of few pages. So where the compiled
# module is there the text stays in it, and no string is made of a sentence until one is asked for.


#: Longest lines, and words that stand in lines, of which the compiled module finds so many at most.
_FEW = 64


class CutText(ABC):
    """The sentences of a text that have letters, normalised, and the letters of each as a line."""

    def __init__(self, hashes: Keyed) -> None:
        #: What lines are hashed by.
        self.hashes = hashes

    @property
    @abstractmethod
    def sentences(self) -> list[str]:
        """None is empty or holds a line break."""

    @property
    @abstractmethod
    def lines(self) -> list[str]:
        """One for each sentence; none is empty."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many letters all lines have."""

    @property
    def text(self) -> str:
        """Normalised, a sentence a line."""
        return "\n".join(self.sentences)

    @property
    def letters(self) -> str:
        """Those of all lines."""
        return "".join(self.lines)

    def hash(self) -> int:
        """The hash of all letters."""
        return self.hashes.of(self.letters)

    def shorts(self, least: int = 0) -> npt.NDArray[np.uint32]:
        """32 bits of the hash of each line, in their order: of those that are worth counting.

        These are lines of ``least`` letters and more, and shorter ones beside another such: the entries of a menu. A
        short line by itself is a heading or a caption, which forms share too, and which says what the text is about.
        """
        if min(map(len, self.lines), default=least) >= least:
            return self._halves
        short = [False, *(len(line) < least for line in self.lines), False]
        told = [not own or before or after for before, own, after in zip(short, short[1:], short[2:], strict=False)]
        found: npt.NDArray[np.uint32] = self._halves[np.array(told)]
        return found

    def counted(self, titles: list[str], least: int, end: int) -> npt.NDArray[np.uint32]:
        """32 bits of the hash of each title, and of each of the lines that are worth counting (see ``shorts``).

        Of more lines than twice ``end`` so many of the first and of the last ones.
        """
        lines = self.shorts(least)
        ends = (lines[:end], lines[len(lines) - end :]) if len(lines) > 2 * end else (lines,)
        told = np.array(self.hashes.every(titles), np.uint64).astype(np.uint32)
        return np.concatenate((told, *ends))

    def lengths(self) -> npt.NDArray[np.uint32]:
        """How many letters each line has."""
        return np.array(list(map(len, self.lines)), np.uint32)

    def longest(self, at_least: int, limit: int) -> list[int]:
        """The hashes of the longest different lines of so many letters, the longest first; equals in their order."""
        hashed = dict(zip(self.lines, self._hashes, strict=True))
        found = [line for line in hashed if len(line) >= at_least]
        return [hashed[line] for line in sorted(found, key=lambda line: (-len(line), line))[:limit]]

    def ends(self, first: int, last: int) -> bytes:
        """16 bits of the hash of each of so many lines from the beginning and from the end, or of all; big-endian."""
        short = self._halves.astype(">u2").tobytes()
        return short if len(short) <= 2 * (first + last) else short[: 2 * first] + short[len(short) - 2 * last :]

    def standing(self, words: list[str]) -> list[str]:
        """Those of these words, each of 2 to 32 characters, that stand in a line, in their order."""
        return [word for word in words if any(word in line for line in self.lines)]

    def numbers(self, most: int) -> bytes:
        """Of the numbers in the lines, runs of digits: 16 bits that all of them come to, and 16 bits each of some.

        These are so many with the smallest hashes, 255 at most, the smallest first; big-endian. Nothing of none.
        """
        found = sorted({self.hashes.gram(number) for line in self.lines for number in digits(line)})
        upper = [one >> 48 for one in (sum(found) % 2**64, *found[:most])]
        return struct.pack(f">{len(upper)}H", *upper) if found else b""

    def without(self, boilerplate: Set[int]) -> CutText:
        """The text without the lines of which 32 bits of the hash are among these; itself where none is."""
        stay = [one not in boilerplate for one in self._halves.tolist()]
        if all(stay):
            return self
        return Listed(list(compress(self.sentences, stay)), list(compress(self.lines, stay)), self.hashes)

    @cached_property
    def _hashes(self) -> list[int]:
        return self.hashes.every(self.lines)

    @cached_property
    def _halves(self) -> npt.NDArray[np.uint32]:
        return np.array(self._hashes, np.uint64).astype(np.uint32)


class Listed(CutText):
    """Of sentences that are at hand as strings."""

    def __init__(self, sentences: Sequence[str], lines: Sequence[str], hashes: Keyed) -> None:
        """``lines``: the letters of each sentence; what has none is left out."""
        super().__init__(hashes)
        self._sentences = list(compress(sentences, lines))
        self._lines = list(filter(None, lines))

    @property
    def sentences(self) -> list[str]:
        """See ``CutText``."""
        return self._sentences

    @property
    def lines(self) -> list[str]:
        """See ``CutText``."""
        return self._lines

    @property
    def size(self) -> int:
        """See ``CutText``."""
        return sum(map(len, self._lines))


class HeldText(CutText):
    """What the compiled module holds: all that is said by ``CutText``, without strings where that can be."""

    def __init__(self, kernels: Kernels, found: tuple[Any, int], hashes: Keyed) -> None:
        self._kernels = kernels
        self._held, self._size = found
        self.hashes = hashes

    @cached_property
    def sentences(self) -> list[str]:
        return self.text.split("\n") if self._size else []

    @cached_property
    def lines(self) -> list[str]:
        return self._kernels.cut_lines(self._held)

    @property
    def size(self) -> int:
        return self._size

    @property
    def text(self) -> str:
        return self._kernels.cut_sentences(self._held)

    @property
    def letters(self) -> str:
        return self._kernels.cut_letters(self._held)

    def hash(self) -> int:
        return self._kernels.cut_hash(self._held, self.hashes.key)

    def shorts(self, least: int = 0) -> npt.NDArray[np.uint32]:
        return np.frombuffer(self._kernels.cut_shorts(self._held, least), np.uint32)

    def counted(self, titles: list[str], least: int, end: int) -> npt.NDArray[np.uint32]:
        return np.frombuffer(self._kernels.cut_counted(self._held, least, self.hashes.key, titles, end), np.uint32)

    def lengths(self) -> npt.NDArray[np.uint32]:
        return np.frombuffer(self._kernels.cut_lengths(self._held), np.uint32)

    def longest(self, at_least: int, limit: int) -> list[int]:
        if limit > _FEW:
            return super().longest(at_least, limit)
        return self._kernels.cut_longest(self._held, at_least, limit)

    def ends(self, first: int, last: int) -> bytes:
        return self._kernels.cut_ends(self._held, first, last)

    def shingled(self, *forms: int) -> tuple[int, bytes, bytes, list[int]]:
        """See ``Shingles.of``."""
        return self._kernels.cut_shingled(self._held, *self.hashes.drawn, *forms)

    def standing(self, words: list[str]) -> list[str]:
        if len(words) > _FEW:
            return super().standing(words)
        return self._kernels.cut_standing(self._held, words)

    def title_words(self, words: list[str], most: int, form: tuple[int, int, int, int]) -> bytes | None:
        """See ``TitleWords.packed``; None where some words have spaces around them. ``words`` are 64 at most."""
        return self._kernels.cut_title(self._held, words, *self.hashes.drawn, most, *form)

    def numbers(self, most: int) -> bytes:
        return self._kernels.cut_numbers(self._held, *self.hashes.drawn, most)

    def without(self, boilerplate: Set[int]) -> CutText:
        found = self._kernels.cut_without(self._held, list(boilerplate))
        return self if found is None else HeldText(self._kernels, found, self.hashes)


def read(text: str, hashes: Keyed, *, simplified: bool = False) -> CutText:
    """The sentences of a text that is not normalised yet; ``simplified``: see ``normalize``.

    >>> found = read("船来了，我们走！\\n* * *", Keyed())
    >>> found.sentences, found.lines
    (['船来了,我们走'], ['船来了我们走'])
    """
    kernels = compiled.kernels
    if kernels is None:
        return cut(sentences(normalize(text, simplified=simplified)), hashes)
    found = None if simplified else kernels.cut_text(known(), text, hashes.key, True)
    if found is None and not simplified and (easier := eased(text)) != text:
        found = kernels.cut_text(known(), easier, hashes.key, True)
    if found is None:
        found = kernels.cut_text(known(), normalize(text, simplified=simplified), hashes.key, False)
    assert found is not None
    return HeldText(kernels, found, hashes)


def cut(sentences: list[str], hashes: Keyed) -> Listed:
    """Those of these sentences, normalised and each without a line break, that have letters."""
    return Listed(sentences, letters_each(sentences), hashes)
