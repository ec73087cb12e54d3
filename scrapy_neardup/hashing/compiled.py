"""The compiled module: the same results as the Python functions that call it, but faster.

Those functions define what it does, and work without it. It is built from ``_kernels*.c`` at installation if there is a
C compiler. NEARDUP_PURE=1 in the environment switches it off.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Protocol, cast

#: The version of the module for these files. Another one, left by an editable install, is not used.
_VERSION = 15


class Kernels(Protocol):
    """The functions of the module. ``key`` comes from ``prepared``, ``known`` from ``characters``."""

    VERSION: int

    def prepared(self, secret: bytes, at_once: bool, /) -> bytes:
        """Prepare a secret; ``at_once`` hashes lines in vector lanes: the same output in half the time."""

    def hash_text(self, key: bytes, text: str, /) -> int:
        """See ``Keyed.of``."""

    def hash_texts(self, key: bytes, texts: list[str], /) -> list[int]:
        """See ``Keyed.every``."""

    def word_grams(self, words: list[str], offset: int, base: int, /) -> list[int]:
        """See ``as_shingles``."""

    def n_grams(self, text: str, n: int, offset: int, base: int, /) -> bytearray:
        """See ``shingles``: 8 bytes each."""

    def minwise(self, text: str, n: int, offset: int, base: int, bins: int, bits: int, /) -> tuple[int, bytes]:
        """See ``sketch_of_text``."""

    def smallest(self, text: str, n: int, offset: int, base: int, count: int, /) -> list[int]:
        """See ``smallest_shingles``."""

    def cut_shingled(
        self,
        cut: Any,
        offset: int,
        base: int,
        n: int,
        bins: int,
        bits: int,
        opening: int,
        opening_bins: int,
        opening_bits: int,
        key_n: int,
        key_n_spaced: int,
        keys: int,
        /,
    ) -> tuple[int, bytes, bytes, list[int]]:
        """See ``Shingles.of``."""

    def lacking(
        self, text: str, shortest: int, longest: int, offset: int, base: int, mask: int, asked: list[int], /
    ) -> list[int]:
        """Return which of at most 256 numbers are no masked hash of an n-gram, see ``TitleWords``."""

    def equal_entries(self, one: bytes, other: bytes, bits: int, /) -> int:
        """See ``minwise.equal_entries``."""

    def may_be_alike(
        self,
        body: int,
        title: int,
        minwise: bytes,
        shingles: int,
        all: int,
        whole: bytes,
        old: bytes,
        bits: int,
        least: float,
        telling: float,
        excerpt: float,
        /,
    ) -> bool:
        """See ``Bound.may_be_alike``."""

    def signs(self, strings: tuple[str, ...], /) -> Any:
        """See ``SubstringSet``."""

    def holds_any(self, text: str, signs: Any, /) -> bool:
        """See ``SubstringSet.has_match``."""

    def longer(self, words: list[str], length: int, /) -> list[str]:
        """See ``tokens.longer_than``."""

    def weights(self, lines: bytes, /) -> tuple[Any, bytearray]:
        """Read lines of a word, a space and its weight: the packed table, and all weights in 8 bytes each.

        jieba's takes 8 MB, a dict 40. Raises ValueError if a weight is no number.
        """

    def core_words(self, words: list[str], count: int, weights: Any, unknown: float, /) -> list[str]:
        """See ``lexicon.core_words``; ``weights`` comes from ``weights``, ``count`` is at most 64."""

    def has_unspaced(self, known: Any, letters: str, /) -> bool:
        """See ``tokens.has_unspaced``."""

    def are_unspaced(self, known: Any, words: list[str], /) -> list[bool]:
        """See ``tokens.are_unspaced``."""

    def chinese_runs(self, known: Any, text: str, /) -> str | None:
        """See ``tokens``."""

    def has_prose(self, known: Any, text: str, line: int, needed: int, /) -> bool:
        """See ``prose.has_prose``."""

    def characters(self, block: Callable[[int], bytes], /) -> Any:
        """Make a character table from a function that describes 256 characters, see ``text.characters``."""

    def folded(self, known: Any, text: str, /) -> str | None:
        """Return the normal spelling, or None if the kernel cannot tell, see ``normalize``."""

    def letters(self, known: Any, text: str, /) -> str:
        """See ``normalize.letters``."""

    def cut_text(self, known: Any, text: str, key: bytes, is_to_be_spelt: bool, /) -> tuple[Any, int] | None:
        """Return a segmented text and its number of letters, see ``sentences.read``."""

    def cut_without(self, cut: Any, boilerplate: list[int], /) -> tuple[Any, int] | None:
        """See ``SegmentedText.without``; None if all lines stay."""

    def cut_sentences(self, cut: Any, /) -> str:
        """See ``SegmentedText.text``."""

    def cut_letters(self, cut: Any, /) -> str:
        """See ``SegmentedText.letters``."""

    def cut_lines(self, cut: Any, /) -> list[str]:
        """See ``SegmentedText.lines``."""

    def cut_shorts(self, cut: Any, least: int, /) -> bytearray:
        """See ``SegmentedText.line_hashes``: 4 bytes each."""

    def cut_counted(self, cut: Any, least: int, key: bytes, titles: list[str], end: int, /) -> bytearray:
        """See ``SegmentedText.countable_hashes``: 4 bytes each."""

    def cut_lengths(self, cut: Any, /) -> bytearray:
        """See ``SegmentedText.lengths``: 4 bytes each."""

    def cut_hash(self, cut: Any, key: bytes, /) -> int:
        """See ``SegmentedText.hash``."""

    def cut_ends(self, cut: Any, first: int, last: int, /) -> bytes:
        """See ``SegmentedText.end_hashes``."""

    def cut_longest(self, cut: Any, at_least: int, limit: int, /) -> list[int]:
        """See ``SegmentedText.longest_hashes``; ``limit`` is at most 64."""

    def cut_title(
        self,
        cut: Any,
        words: list[str],
        offset: int,
        base: int,
        most: int,
        shortest: int,
        longest: int,
        mask: int,
        stands: int,
        /,
    ) -> bytes | None:
        """See ``TitleWords.encode``; at most 64 words. None if one has spaces around it."""

    def cut_numbers(self, cut: Any, offset: int, base: int, most: int, /) -> bytes:
        """See ``SegmentedText.numbers``."""

    def cut_standing(self, cut: Any, words: list[str], /) -> list[str]:
        """See ``SegmentedText.find_words``; at most 64 words."""

    def stood(self, asked: Any, block: int, table: Any, of_pages: bool, /) -> bytearray:
        """See ``Recurrence.pages`` and ``Recurrence.sites``: 2 bytes each; ``block``: buckets of one block."""

    def are_common(self, asked: Any, block: int, of_site: int, offset: int, base: int, /, *tables: Any) -> bytearray:
        """See ``Counts.are_common``: a byte each. ``tables``: of each the least number, and the table."""

    def note(self, noted: Any, block: int, bit: int, table: Any, /) -> None:
        """See ``Recurrence.note``; ``bit`` is below 32."""

    def count_page(self, noted: Any, block: int, of_site: int, offset: int, base: int, /, *tables: Any) -> bool:
        """See ``Counts.note``: the site's table, a bit or None, the other table, the page's number or None."""

    def packed_keys(self, keys: Sequence[int], size: int, before: bytes, /) -> list[bytes]:
        """See ``keys.pack_keys``; ``size`` is at most 8 bytes, ``keys`` a tuple or a list."""

    def packed_record(
        self, flags: int, keys: Sequence[int], size: int, url: str, behind: bytes, sketch: bytes, /
    ) -> bytes:
        """See ``Record.pack``; ``behind``: the bytes between URL and sketch."""

    def shares_of_rows(
        self,
        rows: dict[bytes, bytes],
        hashed: Callable[[bytes], int],
        without: bytes,
        but: bytes,
        of_pages: bytes,
        largest: int,
        /,
    ) -> tuple[int, int, list[bytes]]:
        """See ``tally.of_rows``; ``without`` and ``of_pages``: first bytes of keys, ``but``: a key."""

    def witness_line(
        self, kind: bytes, state: bytes, sequence: int, pages: int, total: int, closed: bool, rest: bytes, size: int, /
    ) -> bytes:
        """See ``witness``; ``size``: bytes of a line. The name of a state has 8 bytes."""

    def upper_halves(self, numbers: Any, mixed_with: int, offset: int, base: int, /) -> bytearray:
        """See ``Keyed.halves``: 4 bytes each."""


def _load() -> Kernels | None:
    if os.environ.get("NEARDUP_PURE"):
        return None
    try:
        found = cast("Kernels", import_module("scrapy_neardup.hashing._kernels"))
    except ImportError:
        return None
    return found if found.VERSION == _VERSION else None


#: The module or None. Tests replace it, so read it at each call.
kernels = _load()


def sentence() -> str:
    """Describe in a sentence whether the module is in use."""
    if kernels is not None:
        return "The compiled kernels are in use."
    return (
        "The compiled kernels are missing, so hashing takes about four times as long; verdicts are the same. To "
        "compile them, install scrapy-neardup where there is a C compiler."
    )
