"""Hashes under the secret of a state: nobody else can make a text that collides."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable
from hashlib import blake2b, md5

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing import compiled, fingerprint64, mix64, mixed

#: The names by which ``Keyed.digest`` knows its functions; the first is the faster.
DIGESTS = ("blake2b", "md5")


class Keyed:
    """The hashes of one state, under its secret of at most 64 bytes; without one, those that anyone can compute.

    The same secret gives the same hashes in every process, on every machine and in every release.
    """

    __slots__ = ("_base", "_hash", "_offset", "_place", "drawn", "key", "secret")

    def __init__(self, secret: bytes = b"") -> None:
        self.secret = secret
        self._hash = blake2b(key=secret, digest_size=8)
        numbers = blake2b(key=secret, digest_size=24, person=b"neardup numbers").digest()
        base, offset, self._place = struct.unpack("<3Q", numbers)
        #: The two numbers by which n-grams are hashed, as the compiled module takes them.
        self.drawn = offset, base | 1
        self._offset, self._base = map(np.uint64, self.drawn)
        #: The secret as it hashes texts; without a module nothing.
        self.key = compiled.kernels.prepared(secret, True) if compiled.kernels is not None else b""

    def of(self, text: str) -> int:
        """64 bits of a text's UTF-8 bytes; a lone surrogate is replaced, never an error.

        >>> hex(Keyed().of("近似网页")), Keyed(b"secret").of("近似网页") == Keyed().of("近似网页")
        ('0x97fe12eb793019e6', False)
        """
        kernels = compiled.kernels
        if kernels is not None:
            return kernels.hash_text(self.key, text)
        hashed = self._hash.copy()
        hashed.update(_utf8(text))
        return int.from_bytes(hashed.digest(), "big")

    def short(self, text: str) -> int:
        """The lower 32 bits: enough to know a sentence among those of a page, or of a site."""
        return self.of(text) & 0xFFFFFFFF

    def each(self, texts: Collection[str]) -> npt.NDArray[np.uint64]:
        """The 64 bits of each text, in their order."""
        return np.array(self.every(texts), np.uint64)

    def every(self, texts: Iterable[str]) -> list[int]:
        """The same as numbers of Python."""
        kernels = compiled.kernels
        return list(map(self.of, texts)) if kernels is None else kernels.hash_texts(self.key, list(texts))

    def place(self, text: str) -> int:
        """Where to look for pages with such a text: it may be that of another one, which is for others to tell.

        farmhash, so that it is quick, and mixed with the secret, so that nobody can choose the place.
        """
        return mixed(fingerprint64(text) ^ self._place)

    def numbers(self, values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """The hash of each number: different numbers have different ones."""
        return mix64(mix64(values ^ self._offset) * self._base)

    def halves(self, values: npt.NDArray[np.uint32], mixed_with: int) -> npt.NDArray[np.uint32]:
        """The upper 32 bits of the hash of each of these numbers, mixed with a number of 64 bits."""
        kernels = compiled.kernels
        if kernels is not None:
            found = kernels.upper_halves(np.ascontiguousarray(values, np.uint32), mixed_with, *self.drawn)
            return np.frombuffer(found, np.uint32)
        mixed = self.numbers(values.astype(np.uint64) ^ np.uint64(mixed_with))
        return (mixed >> np.uint64(32)).astype(np.uint32)

    def n_grams(self, units: npt.NDArray[np.uint64], n: int) -> npt.NDArray[np.uint64]:
        """The hash of every n-gram of a sequence of numbers, in order of place; shape ``(max(1, len - n + 1),)``.

        Fewer units than ``n`` are one n-gram; of none there is none.
        """
        return mix64(self._sums(mix64(units ^ self._offset), min(n, len(units)))) if len(units) else units

    def gram(self, text: str) -> int:
        """The hash of a text as one n-gram: of a few letters quicker than ``n_grams``."""
        base, offset, found = int(self._base), int(self._offset), 0
        for char in text:
            found = (found * base + mixed(ord(char) ^ offset)) % 2**64
        return mixed(found)

    def n_grams_each(self, units: npt.NDArray[np.uint64], lengths: Iterable[int]) -> list[npt.NDArray[np.uint64]]:
        """``n_grams`` in each of several lengths, none of which is longer than the sequence: in fewer steps."""
        mixed = mix64(units ^ self._offset)
        sums = [self._sums(mixed, length) for length in lengths]
        return np.split(mix64(np.concatenate(sums)), np.cumsum([len(one) for one in sums])[:-1]) if sums else []

    def _sums(self, mixed: npt.NDArray[np.uint64], n: int) -> npt.NDArray[np.uint64]:
        """The polynomial of every n-gram of numbers that are mixed already.

        That of 2n numbers is made of those of its halves, so 24 numbers take five steps.
        """
        if n == 1:
            return mixed
        half = self._sums(mixed, n // 2)
        last = len(mixed) - n + 1
        sums: npt.NDArray[np.uint64] = half[:last] * np.uint64(pow(int(self._base), n // 2, 2**64))
        sums += half[n // 2 : n // 2 + last]
        if n % 2:
            sums *= self._base
            sums += mixed[n - 1 :]
        return sums

    def digest(self, name: str, text: str) -> int:
        """64 bits by the function of that name, for methods that are published with MD5."""
        return self.of(text) if name == DIGESTS[0] else self.md5(_utf8(text))

    def md5(self, data: bytes) -> int:
        """The first 8 bytes of the MD5 of the secret and the data: without a secret, the one that was published.

        >>> hex(Keyed().md5(b""))
        '0xd41d8cd98f00b204'
        """
        return int.from_bytes(md5(self.secret + data, usedforsecurity=False).digest()[:8], "big")


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


#: The hashes that anyone can compute: for what is compared with nothing that strangers wrote.
OPEN = Keyed()
