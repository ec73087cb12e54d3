"""n-grams (w-shingles of Broder 1997) as arrays of hashes, and small sketches of such sets.

A sketch estimates the Jaccard similarity of two sets. One permutation hashing (Li, Owen and Zhang 2012): the hashes
fall into ``bins`` bins, and each bin keeps its smallest. An empty bin borrows from a bin drawn by a hash of bin and try
(optimal densification, Shrivastava 2017), so short texts can be compared too. Only ``bits`` bits of each minimum stay
(b-bit minwise hashing, Li and König 2010): many bins of few bits estimate better than few bins of many.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing import mix64
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
    return hashes.n_grams(code_points(letters).astype(np.uint64), n)


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


_EMPTY = np.uint64(2**64 - 1)
_STEP = np.uint64(0x632BE59BD9B4E019)
#: Tries at once.
_TRIES = 64


def sketch(hashes: npt.NDArray[np.uint64], bins: int, bits: int) -> bytes:
    """Sketch a set of hashes in ``bins * bits / 8`` bytes.

    ``bins`` is a power of two, ``bits`` is 1, 2, 4 or 8. Repeated hashes count once. The sketch of an empty set is
    zeros and means nothing.
    """
    if not len(hashes):
        return bytes(bins * bits // 8)
    minima = np.full(bins, _EMPTY)
    place = (hashes & np.uint64(bins - 1)).astype(np.intp)
    np.minimum.at(minima, place, hashes >> np.uint64(bins.bit_length() - 1))
    _densify(minima)
    return _pack(mix64(minima) & np.uint64(2**bits - 1), bits)


def jaccard(one: bytes, other: bytes, bits: int) -> float:
    """Estimate the Jaccard similarity of two sets, in [0, 1].

    Different minima agree by chance in one of 2**bits entries; the share of equal entries is corrected for that.
    """
    # For a few hundred bytes long integers take a fifth of the time of arrays.
    differing = int.from_bytes(one, "little") ^ int.from_bytes(other, "little")
    shift = 1
    while shift < bits:  # sets the lowest bit of an entry if any of its bits differs
        differing |= differing >> shift
        shift *= 2
    entries = len(one) * 8 // bits
    equal = 1.0 - (differing & _lowest_bits(entries, bits)).bit_count() / entries
    chance = 2.0**-bits
    return max(0.0, (equal - chance) / (1.0 - chance))


@cache
def _lowest_bits(entries: int, bits: int) -> int:
    """Return a number with the lowest bit of each entry set."""
    return int.from_bytes(bytes([sum(1 << shift for shift in range(0, 8, bits))]) * (entries * bits // 8), "little")


def _densify(minima: npt.NDArray[np.uint64]) -> None:
    """Let each empty bin borrow from the first full bin of its series."""
    full, first = minima != _EMPTY, 1
    empty = np.flatnonzero(~full)
    while len(empty):
        tries = np.arange(first, first + _TRIES, dtype=np.uint64)
        drawn = mix64((empty.astype(np.uint64) * _STEP)[:, None] + tries) & np.uint64(len(minima) - 1)
        source = drawn.astype(np.intp)
        hit = full[source]
        found = hit.any(axis=1)
        minima[empty[found]] = minima[source[found, hit[found].argmax(axis=1)]]
        empty, first = empty[~found], first + _TRIES


def _pack(entries: npt.NDArray[np.uint64], bits: int) -> bytes:
    per_byte = 8 // bits
    columns = entries.astype(np.uint8).reshape(-1, per_byte)
    packed = np.zeros(len(columns), np.uint8)
    for column in range(per_byte):
        packed |= columns[:, column] << np.uint8(column * bits)
    return packed.tobytes()
