"""Character n-grams (w-shingles of Broder 1997, over characters) as arrays of hashes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing import mix64

_BASE = np.uint64(0x9E3779B97F4A7C15)


def shingles(letters: str, n: int) -> npt.NDArray[np.uint64]:
    """The hash of every n-gram of a string, in order of place; shape ``(max(1, len - n + 1),)``.

    A string shorter than n is one shingle; the empty string has none. The hash is a polynomial in an
    odd 64-bit base over the code points, modulo 2**64, mixed: the same on every machine.

    >>> shingles("abcab", 2)[0] == shingles("xab", 2)[1]
    np.True_
    >>> shingles("", 5).shape, shingles("ab", 5).shape
    ((0,), (1,))
    """
    points = np.frombuffer(letters.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    if not len(points):
        return points
    n = min(n, len(points))
    last = len(points) - n + 1
    hashed = np.zeros(last, dtype=np.uint64)
    for offset in range(n):
        hashed *= _BASE
        hashed += points[offset : offset + last]
    return mix64(hashed)


def distinct(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The different hashes, the smallest first; twice as fast as numpy's own, which hashes what is hashed already."""
    ordered = np.sort(hashes)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    found: npt.NDArray[np.uint64] = ordered[first]
    return found
