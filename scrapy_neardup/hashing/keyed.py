"""Hashes under the secret of a state: nobody else can make a text that collides.

Anyone can find 32 printable characters with a given farmhash fingerprint in a second, under any seed. So farmhash
may find an earlier page but never proves two texts equal. BLAKE2b under a key (RFC 7693) does. N-grams are too many for
it: a polynomial hashes them, with base and character values drawn from the key. This is universal hashing (Carter and
Wegman 1979): without the base nobody finds collisions.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from hashlib import blake2b, md5

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing import compiled, mix64, mix_one
from scrapy_neardup.hashing.farmhash import fingerprint_bytes

#: Names for ``Keyed.digest``; the first is the faster.
DIGESTS = ("blake2b", "md5")


class Keyed:
    """The hashes of one state under its secret of at most 64 bytes, or without a secret open ones.

    The same secret gives the same hashes in every process, on every machine and in every release.
    """

    __slots__ = ("_base", "_hash", "_offset", "_place", "drawn", "secret")

    def __init__(self, secret: bytes = b"") -> None:
        self.secret = secret
        self._hash = blake2b(key=secret, digest_size=8)
        numbers = blake2b(key=secret, digest_size=24, person=b"neardup numbers").digest()
        base, offset, self._place = struct.unpack("<3Q", numbers)
        #: The two numbers that hash n-grams, as the compiled module takes them.
        self.drawn = offset, base | 1
        self._offset, self._base = map(np.uint64, self.drawn)

    def of(self, text: str) -> int:
        """Return 64 bits of a text's UTF-8 bytes; lone surrogates are replaced.

        >>> hex(Keyed().of("近似网页")), Keyed(b"secret").of("近似网页") == Keyed().of("近似网页")
        ('0x97fe12eb793019e6', False)
        """
        hashed = self._hash.copy()  # for one text faster than the compiled module, which hashes several at once
        hashed.update(text.encode("utf-8", "replace"))
        return int.from_bytes(hashed.digest(), "big")

    def short(self, text: str) -> int:
        """Return the lower 32 bits: enough for a sentence of a page or a site."""
        return self.of(text) & 0xFFFFFFFF

    def shorts(self, texts: Collection[str]) -> list[int]:
        return [one & 0xFFFFFFFF for one in self.every(texts)]

    def each(self, texts: Collection[str]) -> npt.NDArray[np.uint64]:
        """Return 64 bits of each text, in order."""
        return np.array(self.every(texts), np.uint64)

    def every(self, texts: Collection[str]) -> list[int]:
        """Return 64 bits of each text as Python integers."""
        if compiled.kernels is not None:
            return compiled.kernels.hash_texts(self.secret, list(texts))
        return list(map(self.of, texts))

    def place(self, text: str) -> int:
        """Return the key under which to file a text. Other texts may have the same key.

        It is farmhash for speed. The secret is mixed in, because nobody may choose the key.
        """
        return mix_one(fingerprint_bytes(text.encode("utf-8", "replace")) ^ self._place)

    def numbers(self, values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """Hash each number; different numbers have different hashes."""
        return mix64(mix64(values ^ self._offset) * self._base)

    def halves(self, values: npt.NDArray[np.uint32], mixed_with: int) -> npt.NDArray[np.uint32]:
        """Mix each number with a 64-bit number and return the upper 32 bits of its hash."""
        mixed = self.numbers(values.astype(np.uint64) ^ np.uint64(mixed_with))
        return (mixed >> np.uint64(32)).astype(np.uint32)

    def n_grams(self, units: npt.NDArray[np.uint64], n: int) -> npt.NDArray[np.uint64]:
        """Hash every n-gram of a sequence of numbers, in order; shape ``(max(1, len - n + 1),)``.

        Fewer than ``n`` numbers are one n-gram; an empty sequence has none.
        """
        if not len(units):
            return units
        mixed, n = mix64(units ^ self._offset), min(n, len(units))
        sums = np.zeros(len(units) - n + 1, np.uint64)
        for place in range(n):
            sums *= self._base
            sums += mixed[place : place + len(sums)]
        return mix64(sums)

    def gram(self, text: str) -> int:
        """Hash a short text as one n-gram."""
        base, offset, found = int(self._base), int(self._offset), 0
        for char in text:
            found = (found * base + mix_one(ord(char) ^ offset)) % 2**64
        return mix_one(found)

    def digest(self, name: str, text: str) -> int:
        """Hash a text with one of ``DIGESTS``, for methods that were published with MD5."""
        return self.of(text) if name == DIGESTS[0] else self.md5(text.encode("utf-8", "replace"))

    def md5(self, data: bytes) -> int:
        """Return the first 8 bytes of the MD5 of secret and data: without a secret, as published.

        >>> hex(Keyed().md5(b""))
        '0xd41d8cd98f00b204'
        """
        return int.from_bytes(md5(self.secret + data, usedforsecurity=False).digest()[:8], "big")


#: Open hashes, for data that strangers did not write.
OPEN = Keyed()
