"""The compiled module, where it was built: the same output as the functions of Python that ask for it, sooner.

What it does is defined by those functions, which do the work themselves where it is missing: it is built from
``_kernels*.c`` when the package is installed, if there is a C compiler. NEARDUP_PURE=1 in the environment leaves it
out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Protocol, cast

#: That of the module that goes with these files. One that was built from others, as an editable install keeps it when
#: the sources change, is not used.
_VERSION = 15


class Kernels(Protocol):
    """The functions of the module. ``key`` is what ``prepared`` made, ``known`` what ``characters`` made."""

    VERSION: int

    def prepared(self, secret: bytes, at_once: bool, /) -> bytes:
        """A secret as the functions that hash texts take it; ``at_once``: lines of a text in the lanes of vectors,
        where the processor has them, with the same output in half the time."""

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
        """See ``TitleWords``: those of at most 256 numbers, in any order, that no n-gram has for its masked hash."""

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
        """See ``text.holding.Signs``."""

    def holds_any(self, text: str, signs: Any, /) -> bool:
        """See ``Signs.stand_in``."""

    def longer(self, words: list[str], length: int, /) -> list[str]:
        """See there."""

    def weights(self, lines: bytes, /) -> tuple[Any, bytearray]:
        """The weights of words, of lines with a word, a space and its weight each, and all of them, 8 bytes each.

        8 megabytes for jieba's, where a dict has 40. Raises ValueError where a weight is no number.
        """

    def core_words(self, words: list[str], count: int, weights: Any, unknown: float, /) -> list[str]:
        """See there; ``weights`` is what ``weights`` made, ``count`` 64 at most."""

    def has_unspaced(self, known: Any, letters: str, /) -> bool:
        """See there."""

    def are_unspaced(self, known: Any, words: list[str], /) -> list[bool]:
        """See there."""

    def chinese_runs(self, known: Any, text: str, /) -> str | None:
        """See there, in ``text.tokens``."""

    def has_prose(self, known: Any, text: str, line: int, needed: int, /) -> bool:
        """See there."""

    def characters(self, told: Callable[[int], bytes], /) -> Any:
        """What is to be known of characters, by a function that tells of 256 at a time: see ``text.characters``."""

    def folded(self, known: Any, text: str, /) -> str | None:
        """See ``normalize``; None where it takes more to tell."""

    def letters(self, known: Any, text: str, /) -> str:
        """See ``letters``."""

    def cut_text(self, known: Any, text: str, key: bytes, is_to_be_spelt: bool, /) -> tuple[Any, int] | None:
        """A cut text, which the functions below take, and how many letters it has; see ``text.cut`` and ``folded``."""

    def cut_without(self, cut: Any, boilerplate: list[int], /) -> tuple[Any, int] | None:
        """See ``CutText.without``; None if all stay."""

    def cut_sentences(self, cut: Any, /) -> str:
        """See ``CutText.text``."""

    def cut_letters(self, cut: Any, /) -> str:
        """See ``CutText.letters``."""

    def cut_lines(self, cut: Any, /) -> list[str]:
        """See ``CutText.lines``."""

    def cut_shorts(self, cut: Any, least: int, /) -> bytearray:
        """See ``CutText.shorts``: 4 bytes each."""

    def cut_counted(self, cut: Any, least: int, key: bytes, titles: list[str], end: int, /) -> bytearray:
        """See ``CutText.counted``: 4 bytes each."""

    def cut_lengths(self, cut: Any, /) -> bytearray:
        """See ``CutText.lengths``: 4 bytes each."""

    def cut_hash(self, cut: Any, key: bytes, /) -> int:
        """See ``CutText.hash``."""

    def cut_ends(self, cut: Any, first: int, last: int, /) -> bytes:
        """See ``CutText.ends``."""

    def cut_longest(self, cut: Any, at_least: int, limit: int, /) -> list[int]:
        """See ``CutText.longest``; ``limit`` is 64 at most."""

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
        """See ``TitleWords.packed``; 64 words at most. None where one has spaces around it."""

    def cut_numbers(self, cut: Any, offset: int, base: int, most: int, /) -> bytes:
        """See ``CutText.numbers``."""

    def cut_standing(self, cut: Any, words: list[str], /) -> list[str]:
        """See ``CutText.standing``; 64 words at most."""

    def stood(self, asked: Any, block: int, table: Any, of_pages: bool, /) -> bytearray:
        """See ``Recurrence.pages`` and ``Recurrence.sites``: 2 bytes each; ``block``: buckets of one, as below."""

    def are_common(self, asked: Any, block: int, of_site: int, offset: int, base: int, /, *tables: Any) -> bytearray:
        """See ``Counts.are_common``: a byte each. Of each table the least number, and the table."""

    def note(self, noted: Any, block: int, bit: int, table: Any, /) -> None:
        """See ``Recurrence.note``; ``bit`` is a number below 32."""

    def count_page(self, noted: Any, block: int, of_site: int, offset: int, base: int, /, *tables: Any) -> bool:
        """See ``Counts.note``: the site's table, a number below 32 or None, the other table, and the page's own number
        or None."""

    def packed_keys(self, keys: Sequence[int], size: int, before: bytes, /) -> list[bytes]:
        """See ``keys.pack_keys``; ``size``: bytes of a key, 8 at most. The keys are a tuple or a list."""

    def packed_record(
        self, flags: int, keys: Sequence[int], size: int, url: str, behind: bytes, sketch: bytes, /
    ) -> bytes:
        """See ``Record.pack``; ``behind``: what stands between URL and sketch."""

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


def _built() -> Kernels | None:
    if os.environ.get("NEARDUP_PURE"):
        return None
    try:
        found = cast("Kernels", import_module("scrapy_neardup.hashing._kernels"))
    except ImportError:
        return None
    return found if found.VERSION == _VERSION else None


#: The module, or None; read at each call, so that tests can do without it.
kernels = _built()


def sentence() -> str:
    """Whether it is in use, for people."""
    if kernels is not None:
        return "The compiled kernels are in use."
    return (
        "The compiled kernels are missing, so hashing takes about four times as long; verdicts are the same. To "
        "compile them, install scrapy-neardup where there is a C compiler."
    )
