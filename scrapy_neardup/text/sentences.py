"""Split texts into sentences.

A *line* is the letters and digits of a sentence. Methods mostly need hashes of lines and of all letters, and rarely the
sentences as strings. So the compiled module keeps the text and makes strings only when asked.
"""

from __future__ import annotations

import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence, Set
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing import compiled
from scrapy_neardup.hashing.compiled import Kernels
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.text.characters import CLOSING, MARKS, QUOTES, character_table
from scrapy_neardup.text.normalize import expand_characters, letters, letters_each, normalize
from scrapy_neardup.text.tokens import digits

_CLOSING = re.escape(CLOSING)
# A Latin full stop ends a sentence only before white space or closing quotes, so 3.5 and example.com stay whole. The
# other marks always do, with closing quotes and brackets after them. Abbreviations are cut, in all copies alike. The
# pattern cannot backtrack: hostile pages have 100,000s of characters without a full stop. It begins with one character
# class, twice as fast as an alternative.
_END = re.compile(rf"[{MARKS}.](?:(?<!\.)|(?=[\s{QUOTES}{_CLOSING}]))[{MARKS}]*[{_CLOSING}]*")


def sentences(text: str) -> list[str]:
    """Split a text at its end marks into stripped sentences that are not empty.

    >>> sentences("第一句。“第二句！”他说；\\nIt cost 3.5 million. Nobody paid.")
    ['第一句', '“第二句', '他说', 'It cost 3.5 million', 'Nobody paid.']
    """
    return [piece for piece in map(str.strip, _END.split(text)) if piece]


def longest_sentences(normalized: str, at_least: int, limit: int) -> list[str]:
    """Return the letters of the ``limit`` longest different sentences, the longest first.

    Sentences with fewer than ``at_least`` letters do not count; equally long ones are in order of characters.

    >>> longest_sentences("好。船来了，我们走。船来了我们走！第二班船是空的。", 3, 2)
    ['第二班船是空的', '船来了我们走']
    """
    found: set[str] = set()
    for piece in sorted(sentences(normalized), key=len, reverse=True):
        if len(piece) < at_least:
            break
        own = letters(piece)
        if len(own) >= at_least:
            found.add(own)
            if len(found) >= limit:
                at_least = sorted(map(len, found))[-limit]
    return sorted(found, key=lambda own: (-len(own), own))[:limit]


def shared_sentences(
    text: str, is_known: Callable[[str], bool], at_least: int, limit: int, *, simplified: bool = False
) -> tuple[str, ...]:
    """Return up to ``limit`` sentences that the other page has too, as in the text, the longest first.

    ``is_known`` gets the letters of each normalised sentence with ``at_least`` letters.
    """
    found: dict[str, int] = {}
    for sentence in sentences(text):
        own = letters(normalize(sentence, simplified=simplified))
        if len(own) >= at_least and is_known(own):
            found[sentence] = len(own)
    return tuple(sorted(found, key=lambda sentence: -found[sentence])[:limit])


#: The compiled module takes limits up to this for lines and words.
_KERNEL_LIMIT = 64


class SegmentedText(ABC):
    """The normalised sentences of a text that have letters, and a line for each."""

    def __init__(self, hashes: Keyed) -> None:
        #: Hashes the lines.
        self.hashes = hashes

    @property
    @abstractmethod
    def sentences(self) -> list[str]:
        """Sentences; none is empty or holds a line break."""

    @property
    @abstractmethod
    def lines(self) -> list[str]:
        """One line for each sentence; none is empty."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of letters of all lines."""

    @property
    def text(self) -> str:
        """The normalised text, a sentence a line."""
        return "\n".join(self.sentences)

    @property
    def letters(self) -> str:
        """The letters of all lines."""
        return "".join(self.lines)

    def hash(self) -> int:
        """Return the hash of all letters."""
        return self.hashes.of(self.letters)

    def line_hashes(self, least: int = 0) -> npt.NDArray[np.uint32]:
        """Return 32 bits of the hash of each line worth counting, in order.

        These are lines with at least ``least`` letters, and shorter lines next to another short one: menu entries. A
        single short line is a heading or a caption: templates share it, but it names the topic.
        """
        if min(map(len, self.lines), default=least) >= least:
            return self._halves
        short = [False, *(len(line) < least for line in self.lines), False]
        is_countable = [
            not own or before or after for before, own, after in zip(short, short[1:], short[2:], strict=False)
        ]
        countable: npt.NDArray[np.uint32] = self._halves[np.array(is_countable)]
        return countable

    def countable_hashes(self, titles: list[str], least: int, end: int) -> npt.NDArray[np.uint32]:
        """Return 32 bits of the hash of each title, and of each line worth counting (see ``line_hashes``).

        Of more than ``2 * end`` lines the first and the last ``end``.
        """
        lines = self.line_hashes(least)
        kept = (lines[:end], lines[len(lines) - end :]) if len(lines) > 2 * end else (lines,)
        title_hashes = np.array(self.hashes.every(titles), np.uint64).astype(np.uint32)
        return np.concatenate((title_hashes, *kept))

    def lengths(self) -> npt.NDArray[np.uint32]:
        """Return the number of letters of each line."""
        return np.array(list(map(len, self.lines)), np.uint32)

    def longest_hashes(self, at_least: int, limit: int) -> list[int]:
        """Return the hashes of the longest different lines with ``at_least`` letters, the longest first."""
        hashed = dict(zip(self.lines, self._hashes, strict=True))
        long = [line for line in hashed if len(line) >= at_least]
        return [hashed[line] for line in sorted(long, key=lambda line: (-len(line), line))[:limit]]

    def end_hashes(self, first: int, last: int) -> bytes:
        """Return 16 bits, big-endian, of the hash of each of the first and last lines."""
        packed = self._halves.astype(">u2").tobytes()
        return packed if len(packed) <= 2 * (first + last) else packed[: 2 * first] + packed[len(packed) - 2 * last :]

    def find_words(self, words: list[str]) -> list[str]:
        """Return the words, each of 2 to 32 characters, that occur in a line."""
        return [word for word in words if any(word in line for line in self.lines)]

    def numbers(self, most: int) -> bytes:
        """Return hashes of the numbers (runs of digits): 16 bits of their sum, and 16 bits of some of them.

        These are the ``most`` (at most 255) smallest hashes in ascending order; big-endian. Empty if there are no
        numbers.
        """
        hashed = sorted({self.hashes.gram(number) for line in self.lines for number in digits(line)})
        upper = [one >> 48 for one in (sum(hashed) % 2**64, *hashed[:most])]
        return struct.pack(f">{len(upper)}H", *upper) if hashed else b""

    def without(self, boilerplate: Set[int]) -> SegmentedText:
        """Return the text without lines whose 32-bit hash is among ``boilerplate``."""
        stay = [one not in boilerplate for one in self._halves.tolist()]
        if all(stay):
            return self
        return PythonText(list(compress(self.sentences, stay)), list(compress(self.lines, stay)), self.hashes)

    @cached_property
    def _hashes(self) -> list[int]:
        return self.hashes.every(self.lines)

    @cached_property
    def _halves(self) -> npt.NDArray[np.uint32]:
        return np.array(self._hashes, np.uint64).astype(np.uint32)


class PythonText(SegmentedText):
    """Sentences as strings."""

    def __init__(self, sentences: Sequence[str], lines: Sequence[str], hashes: Keyed) -> None:
        super().__init__(hashes)
        self._sentences = list(compress(sentences, lines))
        self._lines = list(filter(None, lines))

    @property
    def sentences(self) -> list[str]:
        return self._sentences

    @property
    def lines(self) -> list[str]:
        return self._lines

    @property
    def size(self) -> int:
        return sum(map(len, self._lines))


class NativeText(SegmentedText):
    """A text inside the compiled module."""

    def __init__(self, kernels: Kernels, text_and_size: tuple[Any, int], hashes: Keyed) -> None:
        self._kernels = kernels
        self._native, self._size = text_and_size
        self.hashes = hashes

    @cached_property
    def sentences(self) -> list[str]:
        return self.text.split("\n") if self._size else []

    @cached_property
    def lines(self) -> list[str]:
        return self._kernels.cut_lines(self._native)

    @property
    def size(self) -> int:
        return self._size

    @property
    def text(self) -> str:
        return self._kernels.cut_sentences(self._native)

    @property
    def letters(self) -> str:
        return self._kernels.cut_letters(self._native)

    def hash(self) -> int:
        return self._kernels.cut_hash(self._native, self.hashes.key)

    def line_hashes(self, least: int = 0) -> npt.NDArray[np.uint32]:
        return np.frombuffer(self._kernels.cut_shorts(self._native, least), np.uint32)

    def countable_hashes(self, titles: list[str], least: int, end: int) -> npt.NDArray[np.uint32]:
        return np.frombuffer(self._kernels.cut_counted(self._native, least, self.hashes.key, titles, end), np.uint32)

    def lengths(self) -> npt.NDArray[np.uint32]:
        return np.frombuffer(self._kernels.cut_lengths(self._native), np.uint32)

    def longest_hashes(self, at_least: int, limit: int) -> list[int]:
        if limit > _KERNEL_LIMIT:
            return super().longest_hashes(at_least, limit)
        return self._kernels.cut_longest(self._native, at_least, limit)

    def end_hashes(self, first: int, last: int) -> bytes:
        return self._kernels.cut_ends(self._native, first, last)

    def shingled(self, *forms: int) -> tuple[int, bytes, bytes, list[int]]:
        """Return number, sketch, opening sketch and keys of the shingles, see ``Shingles.of``."""
        return self._kernels.cut_shingled(self._native, *self.hashes.drawn, *forms)

    def find_words(self, words: list[str]) -> list[str]:
        if len(words) > _KERNEL_LIMIT:
            return super().find_words(words)
        return self._kernels.cut_standing(self._native, words)

    def title_words(self, words: list[str], most: int, form: tuple[int, int, int, int]) -> bytes | None:
        """See ``TitleWords.packed``; None if a word stands between spaces. At most 64 words."""
        return self._kernels.cut_title(self._native, words, *self.hashes.drawn, most, *form)

    def numbers(self, most: int) -> bytes:
        return self._kernels.cut_numbers(self._native, *self.hashes.drawn, most)

    def without(self, boilerplate: Set[int]) -> SegmentedText:
        found = self._kernels.cut_without(self._native, list(boilerplate))
        return self if found is None else NativeText(self._kernels, found, self.hashes)


def read(text: str, hashes: Keyed, *, simplified: bool = False) -> SegmentedText:
    """Normalise a text and split it into sentences.

    >>> found = read("船来了，我们走！\\n* * *", Keyed())
    >>> found.sentences, found.lines
    (['船来了,我们走'], ['船来了我们走'])
    """
    kernels = compiled.kernels
    if kernels is None:
        return from_sentences(sentences(normalize(text, simplified=simplified)), hashes)
    found = None if simplified else kernels.cut_text(character_table(), text, hashes.key, True)
    if found is None and not simplified and (expanded := expand_characters(text)) != text:
        found = kernels.cut_text(character_table(), expanded, hashes.key, True)
    if found is None:
        found = kernels.cut_text(character_table(), normalize(text, simplified=simplified), hashes.key, False)
    assert found is not None
    return NativeText(kernels, found, hashes)


def from_sentences(sentences: list[str], hashes: Keyed) -> PythonText:
    """Take normalised sentences without line breaks, and leave out those without letters."""
    return PythonText(sentences, letters_each(sentences), hashes)
