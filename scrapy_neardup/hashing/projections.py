"""Random permutations (MinHash, Broder 1997) and random projections (SimHash, Charikar 2002)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing import mix64

#: Values computed at a time: fewer cost more calls, more exceed the processor's cache.
_BLOCK = 1 << 16
_BASE = 0x9E3779B97F4A7C15


def minima(hashes: npt.NDArray[np.uint64], count: int) -> npt.NDArray[np.uint32]:
    """Return the smallest value of a set under each of ``count`` permutations; shape ``(count,)``.

    A permutation is ``a * x + b`` modulo 2**32 with an odd ``a``, over the upper half of the hashes. Repeated hashes
    count once. For an empty set each value is 2**32 - 1. The first permutations are the same for every ``count``.
    """
    found = np.full(count, 2**32 - 1, np.uint32)
    if not len(hashes):
        return found
    odd, shift = _constants(count)
    values = (hashes >> np.uint64(32)).astype(np.uint32)
    block = np.empty((min(count, max(1, _BLOCK // len(values))), len(values)), np.uint32)
    for start in range(0, count, len(block)):
        rows = slice(start, start + len(block))
        permuted = np.multiply(odd[rows, None], values, out=block[: count - start])
        permuted += shift[rows, None]
        permuted.min(axis=1, out=found[rows])
    return found


def groups(values: npt.NDArray[np.uint32], count: int) -> npt.NDArray[np.uint64]:
    """Hash each of ``count`` groups of consecutive values, all of one size; shape ``(count,)``.

    The hash depends on the place of the group. Values left over belong to no group.

    >>> same = groups(np.array([7, 8, 7, 8, 9], np.uint32), 2)
    >>> same[0] == same[1], same[0] == groups(np.array([7, 8], np.uint32), 1)[0]
    (np.False_, np.True_)
    """
    size = len(values) // count
    table = values[: count * size].reshape(count, size).astype(np.uint64)
    hashed = np.arange(1, count + 1, dtype=np.uint64)
    for column in range(size):
        hashed *= np.uint64(_BASE)
        hashed += table[:, column]
    return mix64(hashed)


@lru_cache(maxsize=8)
def _constants(count: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    drawn = mix64(np.arange(1, 2 * count + 1, dtype=np.uint64) * np.uint64(_BASE))
    halves = (drawn >> np.uint64(32)).astype(np.uint32)
    return halves[0::2] | np.uint32(1), halves[1::2]


# For each byte value the signs of its eight bits: +1 or -1, the highest bit first.
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64) * 2 - 1
_OFFSETS = np.arange(8) * 256


def sign_bits(hashes: npt.NDArray[np.uint64], weights: npt.NDArray[np.int64]) -> int:
    """Return 64 bits: bit i is 1 if the hashes with this bit weigh more than those without it.

    ``weights`` are whole numbers below 2**40, so sums are exact on every machine.
    """
    of_bytes = hashes.astype(">u8").view(np.uint8).reshape(-1, 8) + _OFFSETS
    sums = np.bincount(of_bytes.ravel(), np.repeat(weights, 8), minlength=2048).reshape(8, 256) @ _BITS
    return int.from_bytes(np.packbits(sums.ravel() > 0).tobytes(), "big")
