"""The hash that finds pages, and mixers for hashed numbers.

Of FarmHash only ``fingerprint64`` is the same on every machine; ``hash64`` depends on the build and must never reach a
state.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing.farmhash import fingerprint_bytes

#: The name in the recipe of every state: change it with the functions below.
HASH_NAME = "blake2b under a secret, farmhash.fingerprint64"

_ALL = 2**64 - 1
#: Scalars of numpy, which need no conversion.
_SHIFT = np.uint64(33)
_FACTORS = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)


def fingerprint64(text: str) -> int:
    """Return the 64-bit fingerprint of a text's UTF-8 bytes; lone surrogates are replaced.

    >>> hex(fingerprint64("近似网页"))
    '0x3beb437dd06bf736'
    """
    return fingerprint_bytes(text.encode("utf-8", "replace"))


def mix_one(value: int) -> int:
    """Return ``mix64`` of one number; an array of one takes ten times as long.

    >>> hex(mix_one(1)), int(mix64(np.array([1], np.uint64))[0]) == mix_one(1)
    ('0xb456bcfc34c2cb2c', True)
    """
    value ^= value >> 33
    value = value * 0xFF51AFD7ED558CCD & _ALL
    value ^= value >> 33
    value = value * 0xC4CEB9FE1A85EC53 & _ALL
    return value ^ value >> 33


def mix64(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Apply the finaliser of MurmurHash3 (Appleby, public domain) to 64-bit integers.

    It is a bijection in which every input bit flips about half of the output bits, as min-wise sketches need.
    """
    shifted = values >> _SHIFT
    mixed = values ^ shifted
    for factor in _FACTORS:
        mixed *= factor
        np.right_shift(mixed, _SHIFT, out=shifted)
        mixed ^= shifted
    return mixed
