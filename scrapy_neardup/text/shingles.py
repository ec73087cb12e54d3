"""n-grams (w-shingles of Broder 1997), of characters above all, as arrays of hashes."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing.keyed import OPEN, Keyed

Unsigned = TypeVar("Unsigned", bound=np.unsignedinteger[Any])


def shingles(letters: str, n: int, hashes: Keyed = OPEN) -> npt.NDArray[np.uint64]:
    """The hash of every n-gram of a string, in order of place; shape ``(max(1, len - n + 1),)``.

    A string shorter than n is one shingle; the empty string has none. The hash is a polynomial over the code points
    in 64 bits, of which ``hashes`` has the base: the same on every machine.

    >>> shingles("abcab", 2)[0] == shingles("xab", 2)[1]
    np.True_
    >>> shingles("", 5).shape, shingles("ab", 5).shape
    ((0,), (1,))
    """
    return hashes.n_grams(code_points(letters).astype(np.uint64), n)


def code_points(text: str) -> npt.NDArray[np.uint32]:
    """The number of each character in Unicode, lone surrogates among them.

    >>> code_points("a船").tolist()
    [97, 33337]
    """
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


def distinct(values: npt.NDArray[Unsigned]) -> npt.NDArray[Unsigned]:
    """The different values, the smallest first; many times as fast as ``np.unique``, which hashes what is hashed.

    >>> distinct(np.array([3, 1, 3, 2], np.uint32)).tolist()
    [1, 2, 3]
    """
    ordered = np.sort(values)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    found: npt.NDArray[Unsigned] = ordered[first]
    return found
