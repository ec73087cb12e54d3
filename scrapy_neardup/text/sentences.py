"""Texts as sentences, and the sketch that cascade keeps of them.

A *line* is the letters and digits of a sentence. Methods mostly need hashes of lines and of all letters, and rarely the
sentences as strings. So the compiled module keeps the text, and makes strings only on request.
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Sequence, Set
from functools import cached_property
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scrapy_neardup.errors import AnyReason
from scrapy_neardup.hashing import compiled
from scrapy_neardup.hashing.compiled import Kernels
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.text.characters import CLOSING, MARKS, QUOTES, has_unspaced, known_characters
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.shingles import code_points, distinct, shingles, sketch

_CLOSING = re.escape(CLOSING)
# A Latin full stop ends a sentence only before white space or closing quotes, so 3.5 and example.com stay whole. The
# other marks always do, with closing quotes and brackets after them. Abbreviations are cut, in all copies alike. The
# pattern cannot backtrack: hostile pages have 100,000s of characters without a full stop. It begins with one character
# class, twice as fast as an alternative.
_END = re.compile(rf"[{MARKS}.](?:(?<!\.)|(?=[\s{QUOTES}{_CLOSING}]))[{MARKS}]*[{_CLOSING}]*")
_DIGITS = re.compile(r"[0-9]+")
#: Checksums and keys. Of every fourth character of one, eight in a row are hexadecimal digits; of few other texts.
_CHECKSUM = re.compile(r"[0-9A-Fa-f]{32,}")
_IS_HEX, _HEX_ONLY = bytes(chr(byte) in "0123456789ABCDEFabcdef" for byte in range(256)), bytes([1] * 8)
#: Fewest letters of a line of prose: menu entries and captions are shorter.
_PROSE_LINE = 10
#: Most texts have prose enough in so many characters; then the rest is not split.
_BEGINNING = 128
#: Most words that the compiled module looks for at once.
_MOST_WORDS = 64


def sentences(text: str) -> list[str]:
    """Split a text at its end marks into stripped sentences that are not empty.

    >>> sentences("第一句。“第二句！”他说；\\nIt cost 3.5 million. Nobody paid.")
    ['第一句', '“第二句', '他说', 'It cost 3.5 million', 'Nobody paid.']
    """
    return [piece for piece in map(str.strip, _END.split(text)) if piece]


def digits(letters: str) -> list[str]:
    """Return runs of digits in order.

    >>> digits("2024年3月12")
    ['2024', '3', '12']
    """
    return _DIGITS.findall(letters)


def shorten_checksums(text: str) -> str:
    """Return a text with the first digits of each checksum only: translations of release notes share little else.

    >>> shorten_checksums("MD5 0f343b0931126a20f133d67c2b018a3b, 31415926535897932384626433832795")
    'MD5 0f343, 31415926535897932384626433832795'
    """
    if _HEX_ONLY not in text[3::4].encode("ascii", "ignore").translate(_IS_HEX):  # nearly all
        return text
    return _CHECKSUM.sub(lambda found: found[0] if found[0].isdigit() else found[0][:5], text)


def why_unjudged(text: str, needed: int) -> AnyReason:
    """Return why a text cannot be judged, or an empty string if it can.

    >>> why_unjudged(" ", 15), why_unjudged("首页", 15), why_unjudged("渡口今天早上开航，第一班船是空的。", 15)
    ('no_text', 'too_short', '')
    """
    if has_prose(text, needed):
        return ""
    return "too_short" if text.strip() else "no_text"


def has_prose(text: str, needed: int) -> bool:
    """Whether the lines that are longer than menu entries have ``needed`` letters and digits.

    >>> has_prose("首页\\n新闻\\n渡口今天早上开航了，第一班船是空的。", 15)
    True
    """
    if len(text) > _BEGINNING and has_prose(text[:_BEGINNING], needed):
        return True
    found = 0
    for line in text.splitlines():
        if len(line) >= _PROSE_LINE and (length := len(letters(line))) >= _PROSE_LINE:
            found += length
        if found >= needed:
            return True
    return False


class SketchForm(NamedTuple):
    """How much ``SegmentedText.sketch`` keeps; the compiled module takes these numbers in this order."""

    #: Length of a shingle, bins and bits of the sketch.
    shingle: int
    bins: int
    bits: int
    #: Length of the shingles that are keys, the same in scripts with spaces, and their number.
    key_shingle: int
    key_shingle_spaced: int
    keys: int
    #: Fewest letters of a long sentence, most hashes of these, and most packed ones.
    min_sentence: int
    longest: int
    sentences: int
    #: Most numbers.
    numbers: int
    #: Sentences of the beginning, and of the end.
    first: int
    last: int


class TextSketch(NamedTuple):
    """What cascade keeps of a text."""

    #: Number of different shingles, and their min-wise sketch.
    shingles: int
    minwise: bytes
    #: The smallest hashes of longer shingles: so long that few phrases are common.
    keys: list[int]
    #: Hashes of the longest different lines, the longest first; equally long ones in order of characters.
    longest: list[int]
    #: 32 bits, big-endian, of the hash of each of the first of these, in ascending order.
    sentences: bytes
    #: Numbers (runs of digits): 16 bits of the sum of all their hashes, and 16 bits of the smallest of these in
    #: ascending order; big-endian. Empty if there are no numbers.
    numbers: bytes
    #: 16 bits, big-endian, of the hash of each of the first and last lines.
    ends: bytes


def segment(text: str, hashes: Keyed, others: Sequence[str] = (), *, simplified: bool = False) -> SegmentedText:
    """Normalise a text and split it into sentences. ``others`` are hashed as they are, beside it in little time.

    >>> found = segment("船来了，我们走！\\n* * *", Keyed())
    >>> found.sentences, found.lines
    (['船来了,我们走'], ['船来了我们走'])
    """
    text = shorten_checksums(text)
    if (kernels := compiled.kernels) is not None:
        known, keys = known_characters(), (hashes.secret, *hashes.drawn)
        cut = None if simplified else kernels.cut_text(known, text, *keys, False, [*others])
        cut = cut or kernels.cut_text(known, normalize(text, simplified=simplified), *keys, True, [*others])
        assert cut is not None
        return NativeText(kernels, hashes, *cut)
    found = sentences(normalize(text, simplified=simplified))
    return SegmentedText(found, list(map(letters, found)), hashes, hashes.every(others))


class SegmentedText:
    """The normalised sentences of a text that have letters, and a line for each.

    ``sentences``: none is empty or holds a line break. ``lines``: one for each sentence, none empty. ``size``: the
    letters of all lines. ``others``: hashes of the other texts.
    """

    def __init__(
        self, sentences: Sequence[str], lines: Sequence[str], hashes: Keyed, others: Sequence[int] = ()
    ) -> None:
        """Take normalised sentences without line breaks, and leave out those with an empty line."""
        self.hashes = hashes
        self.others = others
        self.sentences = list(compress(sentences, lines))
        self.lines = list(filter(None, lines))
        self.size = sum(map(len, self.lines))

    @cached_property
    def text(self) -> str:
        """The normalised text, a sentence a line."""
        return "\n".join(self.sentences)

    @property
    def letters(self) -> str:
        """The letters of all lines."""
        return "".join(self.lines)

    @property
    def body(self) -> int:
        """Hash of all letters."""
        return self.hashes.of(self.letters)

    def has_lines_of(self, other: SegmentedText) -> bool:
        """Whether two texts have the same lines, by their hashes."""
        return self.size == other.size and self.line_hashes() == other.line_hashes()

    def sketch(self, form: SketchForm) -> TextSketch:
        """Return what cascade keeps of the text; made once, so always ask for the same form."""
        if self._sketched is None:
            self._sketched = self._make_sketch(form)
        return self._sketched

    _sketched: TextSketch | None = None

    def _make_sketch(self, form: SketchForm) -> TextSketch:
        letters, hashes = self.letters, self.hashes
        grams = shingles(letters, form.shingle, hashes)
        key_length = form.key_shingle if has_unspaced(letters) else form.key_shingle_spaced
        hashed = dict(zip(self.lines, self._hashes, strict=True))
        long = sorted((-len(line), line) for line in hashed if len(line) >= form.min_sentence)
        longest = [hashed[line] for _, line in long[: form.longest]]
        ends = self._halves.astype(">u2").tobytes()
        if len(self.lines) > form.first + form.last:
            ends = ends[: 2 * form.first] + ends[len(ends) - 2 * form.last :]
        return TextSketch(
            len(distinct(grams)),
            sketch(grams, form.bins, form.bits),
            distinct(shingles(letters, key_length, hashes))[: form.keys].tolist(),
            longest,
            distinct(np.array(longest[: form.sentences], np.uint64).astype(np.uint32)).astype(">u4").tobytes(),
            self._numbers(form.numbers),
            ends,
        )

    def _numbers(self, most: int) -> bytes:
        hashed = sorted({self.hashes.gram(number) for line in self.lines for number in digits(line)})
        upper = [one >> 48 for one in (sum(hashed) % 2**64, *hashed[:most])]
        return struct.pack(f">{len(upper)}H", *upper) if hashed else b""

    def line_hashes(self, least: int = 0) -> memoryview:
        """Return 32 bits (``I``) of the hash of each line worth counting, in order.

        These are lines with at least ``least`` letters, and shorter lines next to another short one: menu entries. A
        single short line is a heading or a caption: templates share it, but it names the topic.
        """
        short = [False, *(len(line) < least for line in self.lines), False]
        around = zip(short, short[1:], short[2:], strict=False)
        countable = [not own or before or after for before, own, after in around]
        return memoryview(array("I", compress(self._halves.tolist(), countable)))

    def pack_words(self, words: list[str], *form: int) -> bytes | None:
        """Pack words, see ``TitleWords``; None if this takes the definition there."""
        return None

    def missing_grams(self, hashes: list[int], shortest: int, longest: int, mask: int) -> list[int]:
        """Return which of the hashes, at most 256, no n-gram of these lengths has; only bits of ``mask`` count."""
        points = code_points(self.letters).astype(np.uint64)
        lengths = range(shortest, min(longest, len(points)) + 1)
        found = {one for n in lengths for one in (self.hashes.n_grams(points, n) & np.uint64(mask)).tolist()}
        return [one for one in hashes if one not in found]

    def without(self, boilerplate: Set[int]) -> SegmentedText:
        """Return the text without lines that have their 32-bit hash among ``boilerplate``."""
        stay = [one not in boilerplate for one in self._halves.tolist()]
        if all(stay):
            return self
        return SegmentedText(list(compress(self.sentences, stay)), list(compress(self.lines, stay)), self.hashes)

    @cached_property
    def _hashes(self) -> list[int]:
        return self.hashes.every(self.lines)

    @cached_property
    def _halves(self) -> npt.NDArray[np.uint32]:
        return np.array(self._hashes, np.uint64).astype(np.uint32)


class NativeText(SegmentedText):
    """The same inside the compiled module."""

    def __init__(
        self, kernels: Kernels, hashes: Keyed, native: Any, size: int, body: int, others: Sequence[int] = ()
    ) -> None:
        """Take what ``cut_text`` returns."""
        self._kernels, self._native, self._body = kernels, native, body
        self.hashes, self.size, self.others = hashes, size, others

    @cached_property
    def text(self) -> str:
        return self._kernels.cut_strings(self._native, False)

    @cached_property
    def sentences(self) -> list[str]:  # type: ignore[override]  # made on request
        return self.text.split("\n") if self.size else []

    @cached_property
    def lines(self) -> list[str]:  # type: ignore[override]
        return self._kernels.cut_strings(self._native, True).split("\n") if self.size else []

    @property
    def body(self) -> int:
        return self._body or super().body  # 0 if lines were left out

    def _make_sketch(self, form: SketchForm) -> TextSketch:
        return TextSketch(*self._kernels.cut_sketch(self._native, form))

    def line_hashes(self, least: int = 0) -> memoryview:
        return memoryview(self._kernels.cut_hashes(self._native, least)).cast("I")

    def pack_words(self, words: list[str], *form: int) -> bytes | None:
        if len(words) > _MOST_WORDS:
            return None
        return self._kernels.cut_title(self._native, known_characters(), [*words], *form)

    def missing_grams(self, hashes: list[int], shortest: int, longest: int, mask: int) -> list[int]:
        return self._kernels.cut_lacking(self._native, shortest, longest, mask, hashes)

    def without(self, boilerplate: Set[int]) -> SegmentedText:
        found = self._kernels.cut_without(self._native, list(boilerplate))
        return self if found is None else NativeText(self._kernels, self.hashes, *found)
