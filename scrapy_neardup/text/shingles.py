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


def smallest(hashes: npt.NDArray[np.uint64], count: int) -> list[int]:
    """Return the smallest different hashes: two similar sets are likely to share some."""
    found: list[int] = distinct(hashes)[:count].tolist()
    return found


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
#: Tries whose bins are computed once for all pages.
_EARLY = 16


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


def trace(
    hashes: npt.NDArray[np.uint64], bins: int, bits: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], npt.NDArray[np.uint8]]:
    """Return for a sketch's own entries the bin, the place of the hash that it keeps, and the value.

    Three arrays of one length. Bins that borrow are left out, as their value belongs to another bin.
    """
    ordered = np.argsort(hashes >> np.uint64(bins.bit_length() - 1), kind="stable")
    full, first = np.unique((hashes[ordered] & np.uint64(bins - 1)).astype(np.intp), return_index=True)
    places = ordered[first]
    kept = mix64(hashes[places] >> np.uint64(bins.bit_length() - 1)) & np.uint64(2**bits - 1)
    return full, places, kept.astype(np.uint8)


def entries(packed: bytes, bits: int) -> npt.NDArray[np.uint8]:
    """Return the entries of a sketch, one for each bin.

    >>> entries(bytes([0b11100100]), 2).tolist()
    [0, 1, 2, 3]
    """
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return ((np.frombuffer(packed, np.uint8)[:, None] >> shifts) & np.uint8(2**bits - 1)).ravel()


def _densify(minima: npt.NDArray[np.uint64]) -> None:
    """Let each empty bin borrow from the first full bin of its series."""
    full = minima != _EMPTY
    empty = np.flatnonzero(~full)
    first, tries = 1, 1
    while len(empty):
        end = first + tries
        source = _early_draws(len(minima))[empty, first:end] if end <= _EARLY else _draw(empty, first, end, len(minima))
        hit = full[source]
        found = hit.any(axis=1)
        minima[empty[found]] = minima[source[found, hit[found].argmax(axis=1)]]
        empty = empty[~found]
        first, tries = first + tries, min(64, tries * 2)


def _draw(places: npt.NDArray[np.intp], first: int, end: int, bins: int) -> npt.NDArray[np.intp]:
    """Return the bins from which each place borrows at these tries; shape ``(len(places), end - first)``."""
    tries = np.arange(first, end, dtype=np.uint64)
    series: npt.NDArray[np.uint64] = (places.astype(np.uint64) * _STEP)[:, None] + tries
    return (mix64(series) & np.uint64(bins - 1)).astype(np.intp)


@cache
def _early_draws(bins: int) -> npt.NDArray[np.intp]:
    """Return the draws of all bins at the first tries, which are enough for most pages."""
    return _draw(np.arange(bins), 0, _EARLY, bins)


def _pack(entries: npt.NDArray[np.uint64], bits: int) -> bytes:
    per_byte = 8 // bits
    columns = entries.astype(np.uint8).reshape(-1, per_byte)
    packed = np.zeros(len(columns), np.uint8)
    for column in range(per_byte):
        packed |= columns[:, column] << np.uint8(column * bits)
    return packed.tobytes()
