"""n-grams (w-shingles of Broder 1997), of characters above all, as arrays of hashes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing import compiled
from scrapy_neardup.hashing.keyed import OPEN, Keyed

Unsigned = TypeVar("Unsigned", bound=np.unsignedinteger[Any])


def shingles(letters: str, n: int, hashes: Keyed = OPEN) -> npt.NDArray[np.uint64]:
    """Hash every n-gram of a string, in order; shape ``(max(1, len - n + 1),)``.

    A string shorter than n is one shingle, an empty one has none. The hash is a polynomial over the code points in 64
    bits with the base of ``hashes``: the same on every machine.

    >>> shingles("abcab", 2)[0] == shingles("xab", 2)[1]
    np.True_
    >>> shingles("", 5).shape, shingles("ab", 5).shape
    ((0,), (1,))
    """
    kernels = compiled.kernels
    if kernels is not None:
        return np.frombuffer(kernels.n_grams(letters, n, *hashes.drawn), np.uint64)
    return hashes.n_grams(code_points(letters).astype(np.uint64), n)


def hash_words(words: Iterable[str], hashes: Keyed = OPEN) -> dict[str, int]:
    """Hash each word as ``shingles`` hashes it in a text; no word may be empty."""
    kernels = compiled.kernels
    if kernels is not None:
        words = list(words)
        return dict(zip(words, kernels.word_grams(words, *hashes.drawn), strict=True))
    joined, starts = "", {}
    for word in words:
        starts[word], joined = len(joined), joined + word
    lengths = sorted(set(map(len, starts)))
    of_length = dict(zip(lengths, hashes.n_grams_each(code_points(joined).astype(np.uint64), lengths), strict=True))
    return {word: int(of_length[len(word)][start]) for word, start in starts.items()}


def smallest_shingles(letters: str, n: int, count: int, hashes: Keyed = OPEN) -> list[int]:
    """Return the smallest different hashes: two similar sets are likely to share some."""
    kernels = compiled.kernels
    if kernels is not None:
        return kernels.smallest(letters, n, *hashes.drawn, count)
    found = shingles(letters, n, hashes)
    few = distinct(np.partition(found, 4 * count)[: 4 * count] if len(found) > 4 * count else found)
    if len(few) < count:  # the text repeats itself
        few = distinct(found)
    smallest: list[int] = few[:count].tolist()
    return smallest


def code_points(text: str) -> npt.NDArray[np.uint32]:
    """Return the code point of each character, including lone surrogates.

    >>> code_points("a船").tolist()
    [97, 33337]
    """
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


def distinct(values: npt.NDArray[Unsigned]) -> npt.NDArray[Unsigned]:
    """Return the different values in ascending order; faster than ``np.unique``, which hashes them again.

    >>> distinct(np.array([3, 1, 3, 2], np.uint32)).tolist()
    [1, 2, 3]
    """
    ordered = np.sort(values)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    found: npt.NDArray[Unsigned] = ordered[first]
    return found
