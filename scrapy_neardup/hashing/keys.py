"""Keys of a state: a page is found by them, and nothing is decided by them.

A key is the lowest 40 bits of a hash. Not the highest: some keys are the smallest of many hashes and begin with zeros.
10 million pages have 80 million keys. One key in 10,000 is then shared by chance, and a page is compared in vain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: Bits and bytes of a key.
BITS = 40
SIZE = BITS // 8
_MASK = (1 << BITS) - 1


def key_of(hash: int) -> int:
    """Return the key in a hash; a key itself stays.

    >>> hex(key_of(0x0123_4567_89AB_CDEF))
    '0x6789abcdef'
    """
    return hash & _MASK


def keys_of(hashes: Iterable[int]) -> tuple[int, ...]:
    """The different keys in several hashes, in their order."""
    return tuple({hash & _MASK: None for hash in hashes})


def pack_key(key: int) -> bytes:
    """The bytes of a key, big-endian; of a longer number the lowest bits."""
    return (key & _MASK).to_bytes(SIZE, "big")


def pack_keys(keys: Sequence[int], before: bytes = b"") -> list[bytes]:
    """``pack_key`` of each of several numbers, behind the bytes ``before``."""
    return [before + (key & _MASK).to_bytes(SIZE, "big") for key in keys]
