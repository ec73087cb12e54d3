"""The compiled module: the same results as the Python functions that call it, but faster.

Those functions are its definition, and work without it. It is built from ``_kernels.c`` at installation if there is a
C compiler. NEARDUP_PURE=1 in the environment switches it off.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol, cast

#: The version of the module for these files. Another one, left by an editable install, is not used.
_VERSION = 26


class Kernels(Protocol):
    """The functions of the module. ``known`` comes from ``characters``.

    A cut text (``cut``) comes from ``cut_text`` or ``cut_without``, with the number and the hash of its letters.
    """

    VERSION: int

    def hash_texts(self, secret: bytes, texts: list[str], /) -> list[int]:
        """See ``Keyed.every``."""

    def characters(self, block: Callable[[int], bytes], /) -> Any:
        """Make a character table from a function that describes 256 characters, see ``text.characters``."""

    def folded(self, known: Any, text: str, /) -> str | None:
        """Return the normal spelling, or None if it takes more than this table."""

    def letters(self, known: Any, text: str, /) -> str:
        """See ``letters``."""

    def cut_text(self, known: Any, text: str, secret: bytes, /) -> tuple[Any, int, int]:
        """Cut a text in its normal spelling into sentences."""

    def cut_without(self, cut: Any, boilerplate: list[int], /) -> tuple[Any, int, int] | None:
        """See ``SegmentedText.without``; None if all lines stay."""

    def cut_strings(self, cut: Any, letters: bool, /) -> str:
        """Return the normalised sentences, one a line, or only their ``letters``."""

    def cut_hashes(self, cut: Any, least: int, /) -> bytearray:
        """See ``SegmentedText.line_hashes``: 4 bytes each."""

    def cut_sketch(self, cut: Any, offset: int, base: int, form: tuple[int, ...], /) -> tuple[Any, ...]:
        """Return the fields of ``TextSketch``; ``form``: a ``SketchForm``."""

    def cut_title(
        self,
        cut: Any,
        known: Any,
        words: list[str],
        offset: int,
        base: int,
        mask: int,
        flag: int,
        longest: int,
        most: int,
        /,
    ) -> bytes | None:
        """See ``SegmentedText.pack_words``; None if a word has spaces around it. At most 64 words."""

    def cut_lacking(
        self, cut: Any, shortest: int, longest: int, offset: int, base: int, mask: int, hashes: list[int], /
    ) -> list[int]:
        """See ``SegmentedText.missing_grams``; in any order."""

    def lexicon(self, dictionary: str, weights: str, most: int, /) -> Any:
        """Read lines of a word, a space and a number, ``most`` in all.

        Numbers of ``dictionary`` say how often words occur; more may follow them. Raises ValueError for any other line.
        """

    def words(
        self, known: Any, text: str, lexicon: Any, singles: bool, core: int, all_words: bool, /
    ) -> tuple[list[str], list[str]]:
        """Return the words of ``Segmenter.words`` if ``all_words`` are wanted, and ``core`` core words."""

    def are_common(self, asked: bytes, block: int, of_site: int, offset: int, base: int, /, *tables: Any) -> bytearray:
        """See ``Counts.are_common``: a byte each. ``tables``: of each the least number, and the table."""

    def fingerprint64(self, data: bytes, /) -> int:
        """See ``farmhash.python_fingerprint``."""

    def count_page(
        self, noted: bytes, numbered: bool, block: int, of_site: int, offset: int, base: int, /, *tables: Any
    ) -> bool:
        """See ``Counts.note``. ``numbered``: the last of the noted is the page's number.

        ``tables``: the site's table, a bit or None, the other table.
        """


def _load() -> Kernels | None:
    if os.environ.get("NEARDUP_PURE"):
        return None
    try:
        found = cast("Kernels", import_module("scrapy_neardup.hashing._kernels"))
    except ImportError:
        return None
    return found if found.VERSION == _VERSION else None


#: The module or None.
kernels = _load()


def sentence() -> str:
    """Describe in a sentence whether the module is in use."""
    if kernels is not None:
        return "The compiled kernels are in use."
    return (
        "The compiled kernels are missing, so a fingerprint takes fifteen times as long; verdicts are the same. To "
        "compile them, install scrapy-neardup where there is a C compiler."
    )
