"""The hot stages of reading a text, once in Python and once compiled.

``PythonBackend`` defines them. ``NativeBackend`` returns the same in less time; ``active`` is the one if the compiled
module is there.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

from scrapy_neardup.hashing import compiled
from scrapy_neardup.hashing.compiled import Kernels
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.text.characters import IGNORABLE, SEVERAL, WIDE_MARKS, block, limit_marks
from scrapy_neardup.text.segmenter import NativeSegmenter, Segmenter
from scrapy_neardup.text.sentences import NativeText, PythonText, SegmentedText, sentences

#: Arabic, Persian, Indian and other digits: one site writes them, the next one does not.
_OTHER_DIGIT = re.compile(r"[^\D0-9]")
_IGNORABLE = "".join(f"{chr(first)}-{chr(last)}" for first, last in IGNORABLE)
_INVISIBLE = re.compile(f"[{_IGNORABLE}]+")
_NO_LETTER = re.compile(rf"[\W_{_IGNORABLE}]+")
#: Characters in which most texts have prose enough, so that the rest need not be split.
_BEGINNING = 256


class PythonBackend:
    """The stages in Python."""

    def fold(self, text: str) -> str:
        """Return the normal spelling, see ``normalize``."""
        text = _INVISIBLE.sub("", text)
        # After these replacements most texts pass NFKC's quick check.
        for wide, narrow in WIDE_MARKS:
            text = text.replace(wide, narrow)
        if not unicodedata.is_normalized("NFKC", text):
            text = unicodedata.normalize("NFKC", limit_marks(text))
        return _OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text).casefold()

    def letters(self, normalized: str) -> str:
        """Return the letters and digits alone."""
        return _NO_LETTER.sub("", normalized)

    def has_prose(self, text: str, line: int, needed: int) -> bool:
        """Whether the lines that have ``line`` letters and digits have ``needed`` of them together."""
        if len(text) > _BEGINNING and self.has_prose(text[:_BEGINNING], line, needed):
            return True
        found = 0
        for one in text.splitlines():
            if len(one) >= line and (length := len(self.letters(one))) >= line:
                found += length
            if found >= needed:
                return True
        return False

    def segment(self, text: str, hashes: Keyed, *, is_normalized: bool) -> SegmentedText:
        """Split a text into sentences; bring it into its normal spelling first, or take it as it is."""
        found = sentences(text if is_normalized else self.fold(text))
        return PythonText(found, list(map(self.letters, found)), hashes)

    def make_search(self, *strings: str) -> Callable[[str], bool]:
        """Return a predicate: whether a text holds one of up to 64 strings of 2 to 32 characters."""
        pattern = re.compile("|".join(map(re.escape, strings)))
        return lambda text: pattern.search(text) is not None

    @cached_property
    def segmenter(self) -> Segmenter:
        """Returns the words of texts."""
        return Segmenter()


class NativeBackend(PythonBackend):
    """The same stages in the compiled module."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels

    @cached_property
    def _table(self) -> Any:
        return self._kernels.characters(block)

    def fold(self, text: str) -> str:
        found = self._kernels.folded(self._table, text)
        if found is None and (expanded := _expand(text)) != text:
            found = self._kernels.folded(self._table, expanded)
        return super().fold(text) if found is None else found

    def letters(self, normalized: str) -> str:
        return self._kernels.letters(self._table, normalized)

    def segment(self, text: str, hashes: Keyed, *, is_normalized: bool) -> SegmentedText:
        cut = partial(self._kernels.cut_text, self._table)
        found = None if is_normalized else cut(text, hashes.secret, True)
        if found is None and not is_normalized and (expanded := _expand(text)) != text:
            found = cut(expanded, hashes.secret, True)
        if found is None:
            found = cut(text if is_normalized else super().fold(text), hashes.secret, False)
        assert found is not None  # only a text that must be folded can be refused
        return NativeText(self._kernels, self._table, found, hashes)

    def make_search(self, *strings: str) -> Callable[[str], bool]:
        prepared = self._kernels.strings(list(strings))
        return lambda text: self._kernels.holds_any(text, prepared)

    @cached_property
    def segmenter(self) -> Segmenter:
        return NativeSegmenter(self._kernels, self._table)


def _expand(text: str) -> str:
    """Replace characters whose normal spelling has several; the compiled module takes one for one only."""
    for one, several in SEVERAL:
        text = text.replace(one, several)
    return text


#: The backend in use. Tests replace it, so read it at each call.
active: PythonBackend = PythonBackend() if compiled.kernels is None else NativeBackend(compiled.kernels)
