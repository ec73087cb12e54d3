"""Texts with the farmhash of others: what anyone can make who reads its source.

For 17 to 32 bytes ``fingerprint64`` is HashLen16 of two sums of the text's four words. Three of the words can be
chosen, and the fourth follows from them and from the wanted hash. Whether that is of letters and digits is chance: one
try in seven million.
"""

from __future__ import annotations

import farmhash
import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]

_K1, _K2 = np.uint64(0xB492B66FBE98F273), np.uint64(0x9AE16A3B2F90404F)
_MUL = 0x9AE16A3B2F90404F + 2 * 32
_INVERSE, _INVERSE_K2 = (np.uint64(pow(odd, -1, 2**64)) for odd in (_MUL, int(_K2)))
_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz0123456789", np.uint8)
_IS_LETTER = np.isin(np.arange(256), _LETTERS)
_TRIES = 1 << 19


def forged(text: str, beginning: bytes = b"", seed: int = 0) -> str:
    """32 letters and digits with the ``fingerprint64`` of a text; up to 16 bytes can be given that they begin with."""
    dice, target = np.random.default_rng(seed), farmhash.fingerprint64(text)
    mixed = _unmixed(np.full(_TRIES, target, np.uint64) * _INVERSE) * _INVERSE  # v ^ a of HashLen16
    while True:
        free = dice.choice(_LETTERS, (_TRIES, 24))
        free[:, : len(beginning)] = np.frombuffer(beginning, np.uint8)
        first, second, fourth = free.view("<u8").astype(np.uint64).T
        a, c = first * _K1, fourth * np.uint64(_MUL)
        v = c + a + _turned(second + _K2, 18)
        u = (_unmixed(mixed ^ v) * _INVERSE) ^ v
        third = (u - _turned(a + second, 43) - _turned(c, 30)) * _INVERSE_K2
        for at in np.flatnonzero(_IS_LETTER[third[:, None].view(np.uint8)].all(axis=1)).tolist():
            words = (first, second, third, fourth)
            found = b"".join(int(word[at]).to_bytes(8, "little") for word in words).decode()
            assert farmhash.fingerprint64(found) == target
            return found


def _unmixed(values: Words) -> Words:
    """The inverse of ``x ^ x >> 47``, which is itself."""
    return values ^ (values >> np.uint64(47))


def _turned(values: Words, by: int) -> Words:
    return (values >> np.uint64(by)) | (values << np.uint64(64 - by))
