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
_VERSION = 31


class Kernels(Protocol):
    """The functions of the module; a comment names the definition of each. ``known`` comes from ``characters``.

    A cut text (``cut``) comes from ``cut_text`` or ``cut_without``, with the number and the hash of its letters.

    Microseconds for a Chinese page of 1,500 letters, here and in Python: all 70 and 1740; ``cut_text`` 15 and 400,
    ``cut_sketch`` 11 and 370, ``words`` 8 and 390, ``cut_title`` 3 and 19 (6 and 70 for words with spaces),
    ``cut_hashes`` 0.4 and 6, ``folded`` of a title 0.6 and 1.6. With boilerplate ``cut_without`` takes 3 and 14. Each
    comparison under another title takes 13 and 830 in ``cut_lacking``.
    """

    VERSION: int

    # ``Keyed.every``; it may change the list.
    def hash_texts(self, secret: bytes, texts: list[str], /) -> list[int]: ...
    # A table of characters, from a function that describes 256 of them (text/characters.py).
    def characters(self, block: Callable[[int], bytes], /) -> Any: ...
    # The normal spelling, unless the text is in it; or its letters, as in ``normalize.letters``. None if it takes more
    # than this table.
    def folded(self, known: Any, text: str, normal: bool, letters: bool, /) -> str | None: ...
    # The sentences of a text, with ``normal`` one in its normal spelling; None if it takes more than this table.
    # ``others``: texts to hash. It may change this list.
    def cut_text(
        self, known: Any, text: str, secret: bytes, offset: int, base: int, normal: bool, others: list[str], /
    ) -> tuple[Any, int, int, list[int]] | None: ...
    # ``SegmentedText.without``; None if all lines stay.
    def cut_without(self, cut: Any, boilerplate: list[int], /) -> tuple[Any, int, int] | None: ...
    # The normalised sentences, one a line, or only their letters.
    def cut_strings(self, cut: Any, letters: bool, /) -> str: ...
    # ``SegmentedText.line_hashes``, 4 bytes each.
    def cut_hashes(self, cut: Any, least: int, /) -> bytearray: ...
    # The fields of ``TextSketch``; ``form`` is a ``SketchForm``.
    def cut_sketch(self, cut: Any, form: tuple[int, ...], /) -> tuple[Any, ...]: ...
    # ``SegmentedText.pack_words``, of at most 64 words; it may change the list. ``form``: from mask to most.
    def cut_title(self, cut: Any, known: Any, words: list[str], /, *form: int) -> bytes: ...
    # ``SegmentedText.missing_grams``, in any order.
    def cut_lacking(self, cut: Any, shortest: int, longest: int, mask: int, hashes: list[int], /) -> list[int]: ...
    # Reads lines of a word, a space and a number, in UTF-8 and ``most`` in all. Numbers of the dictionary say how often
    # words occur; more may follow them. Raises ValueError for any other line.
    def lexicon(self, dictionary: bytes, weights: bytes, most: int, /) -> Any: ...
    # The words of ``Segmenter.words`` if all are wanted, and ``core`` core words.
    def words(
        self, known: Any, text: str, lexicon: Any, singles: bool, core: int, all_words: bool, /
    ) -> tuple[list[str], list[str]]: ...
    # ``farmhash.python_fingerprint``.
    def fingerprint64(self, data: bytes, /) -> int: ...
    # ``Counts.are_common``, a byte each. ``tables``: of each the least number, and the table.
    def are_common(self, hashes: bytes, of_site: int, offset: int, base: int, /, *tables: Any) -> bytearray: ...
    # ``Counts.note``; the page's number is the last of the noted, if it has one. ``tables``: the site's table, a bit or
    # None, the other table.
    def count_page(
        self, noted: bytes, numbered: bool, of_site: int, offset: int, base: int, /, *tables: Any
    ) -> bool: ...


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
        "The compiled kernels are missing, so a fingerprint takes twenty times as long; verdicts are the same. To "
        "compile them, install scrapy-neardup where there is a C compiler."
    )
