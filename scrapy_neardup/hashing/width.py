"""How many bits of a hash are a key, by which a page is found and nothing is decided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from scrapy_neardup.hashing import compiled


@dataclass(frozen=True, slots=True)
class KeyWidth:
    """All keys of a state have the same ``bits``, a multiple of 8: those of two widths never meet.

    Kept are the lowest. Some keys are the smallest of many hashes, and begin with zeros.
    """

    bits: int
    #: Bytes of a key.
    size: int = field(init=False, compare=False, repr=False)
    #: The bits that are kept.
    mask: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", self.bits // 8)
        object.__setattr__(self, "mask", (1 << self.bits) - 1)

    def key(self, hash: int) -> int:
        """What is kept of a hash; of a key of this width all.

        >>> hex(NARROW.key(0x0123_4567_89AB_CDEF))
        '0x6789abcdef'
        """
        return hash & self.mask

    def keys(self, hashes: Iterable[int]) -> tuple[int, ...]:
        """The same of each of several hashes; what is the same then comes once."""
        mask = self.mask
        return tuple({hash & mask: None for hash in hashes})

    def pack_each(self, keys: Sequence[int], before: bytes = b"") -> list[bytes]:
        """``pack`` of each of several numbers of at most 64 bits, behind what stands ``before`` each."""
        kernels = compiled.kernels
        if kernels is not None:
            return kernels.packed_keys(keys, self.size, before)
        size, mask = self.size, self.mask
        return [before + (key & mask).to_bytes(size, "big") for key in keys]

    def pack(self, key: int) -> bytes:
        """The bytes of a key, big-endian; of a longer number the lowest bits."""
        return (key & self.mask).to_bytes(self.size, "big")


#: All of a hash.
WIDE = KeyWidth(64)
#: Among 80 million keys, those of 10 million pages, one of 10,000 is there by chance: a page is compared in vain then.
NARROW = KeyWidth(40)
