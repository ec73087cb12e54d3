"""A small sketch that estimates the Jaccard similarity of two sets of hashes.

One permutation hashing (Li, Owen and Zhang 2012): the hashes fall into ``bins`` bins, and each bin keeps its smallest.
An empty bin borrows from a bin drawn by a hash of bin and try (optimal densification, Shrivastava 2017), so short texts
can be compared too. Only ``bits`` bits of each minimum stay (b-bit minwise hashing, Li and König 2010): many bins of
few bits estimate better than few bins of many.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing import compiled, mix64
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.text.shingles import distinct, shingles

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


def sketch_of_text(letters: str, n: int, bins: int, bits: int, hashes: Keyed) -> tuple[int, bytes]:
    """Return the number of different n-grams of a text, and their sketch."""
    kernels = compiled.kernels
    if kernels is not None:
        return kernels.minwise(letters, n, *hashes.drawn, bins, bits)
    grams = distinct(shingles(letters, n, hashes))
    return len(grams), sketch(grams, bins, bits)


def jaccard(one: bytes, other: bytes, bits: int) -> float:
    """Estimate the Jaccard similarity of two sets, in [0, 1].

    Different minima agree by chance in one of 2**bits entries; the share of equal entries is corrected for that.
    """
    equal = equal_entries(one, other, bits) / (len(one) * 8 // bits)
    chance = 2.0**-bits
    return max(0.0, (equal - chance) / (1.0 - chance))


def equal_entries(one: bytes, other: bytes, bits: int) -> int:
    """Count the equal entries of two sketches.

    >>> equal_entries(b"\\x12", b"\\x10", 2)
    3
    """
    kernels = compiled.kernels
    if kernels is not None:
        return kernels.equal_entries(one, other, bits)
    # For a few hundred bytes long integers take a fifth of the time of arrays.
    differing = int.from_bytes(one, "little") ^ int.from_bytes(other, "little")
    shift = 1
    while shift < bits:  # sets the lowest bit of an entry if any of its bits differs
        differing |= differing >> shift
        shift *= 2
    entries = len(one) * 8 // bits
    return entries - (differing & _lowest_bits(entries, bits)).bit_count()


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
