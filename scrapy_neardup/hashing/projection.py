"""Sums of hashed features bit by bit, of which the signs are kept (Charikar 2002)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

# For each byte value what it adds to its eight bits: +1 or -1, the highest bit first.
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64) * 2 - 1
_OFFSETS = np.arange(8) * 256
#: Rows of bits that can be added up in a byte.
_ROWS = 255


def sign_bits(hashes: npt.NDArray[np.uint64], weights: npt.NDArray[np.int64] | None = None) -> int:
    """64 bits: the i-th is 1 where the weights of the hashes that have it outweigh those of the others.

    ``weights`` are whole numbers below 2**40, so that the sums are exact and the same on every machine; without
    them each hash counts as often as it stands there.
    """
    sums = _counted(hashes) if weights is None else _weighted(hashes, weights)
    return int.from_bytes(np.packbits(sums > 0).tobytes(), "big")


def _counted(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """How many more hashes have each bit than have it not; rows of bits are added up as bytes, many at a time."""
    bits = np.unpackbits(hashes.astype(">u8").view(np.uint8)).reshape(-1, 64)
    whole = len(bits) - len(bits) % _ROWS
    blocks = np.add.reduce(bits[:whole].reshape(-1, _ROWS, 64), axis=1, dtype=np.uint8)
    rest = np.add.reduce(bits[whole:], axis=0, dtype=np.uint8)
    ones = blocks.sum(axis=0, dtype=np.int64) + rest
    return 2 * ones - len(bits)  # type: ignore[no-any-return]  # an array of 64


def _weighted(hashes: npt.NDArray[np.uint64], weights: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The weights of each byte value in each place, and what it adds to its eight bits."""
    of_bytes = hashes.astype(">u8").view(np.uint8).reshape(-1, 8) + _OFFSETS
    sums = np.bincount(of_bytes.ravel(), np.repeat(weights, 8), minlength=2048).reshape(8, 256) @ _BITS
    return sums.ravel()
