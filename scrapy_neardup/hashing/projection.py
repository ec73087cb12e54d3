"""Sums of hashed features bit by bit, of which the signs are kept (Charikar 2002)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

# For each byte value what it adds to its eight bits: +1 or -1, the highest bit first.
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64) * 2 - 1
_OFFSETS = np.arange(8) * 256


def sign_bits(hashes: npt.NDArray[np.uint64], weights: npt.NDArray[np.int64] | None = None) -> int:
    """64 bits: the i-th is 1 where the weights of the hashes that have it outweigh those of the others.

    ``weights`` are whole numbers below 2**40, so that the sums are exact and the same on every machine; without
    them each hash counts as often as it stands there. The sums go by byte values: 256 rows however long the text.
    """
    of_bytes = hashes.astype(">u8").view(np.uint8).reshape(-1, 8) + _OFFSETS
    repeated = None if weights is None else np.repeat(weights, 8)
    sums = np.bincount(of_bytes.ravel(), repeated, minlength=2048).reshape(8, 256) @ _BITS
    return int.from_bytes(np.packbits(sums.ravel() > 0).tobytes(), "big")
