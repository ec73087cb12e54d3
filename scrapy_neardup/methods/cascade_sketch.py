"""What the default method keeps of a page, packed into bytes."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Sketch:
    """The sketch's layout, version 1, big-endian.

    Q fingerprint of the body's letters · I that of the title's letters · H that of the site, 0 if it is not known ·
    I I number of different shingles, with boilerplate and without · B B B how many sentences, numbers, title words ·
    min-wise sketch of the shingles · that of the vocabulary · I per sentence · H per number · H per title word, of
    which those that are numbers have the lowest bit set, the others not. But for body, title and the first of the
    counts, all is of what is not boilerplate.
    """

    body: int
    title: int
    site: int
    whole: int
    shingles: int
    minwise: bytes
    vocabulary: bytes
    sentences: frozenset[int]
    numbers: frozenset[int]
    words: frozenset[int]

    _HEAD: ClassVar[struct.Struct] = struct.Struct(">QIHIIBBB")

    def pack(self) -> bytes:
        """The sketch as bytes."""
        counts = len(self.sentences), len(self.numbers), len(self.words)
        return b"".join(
            (
                self._HEAD.pack(self.body, self.title, self.site, self.whole, self.shingles, *counts),
                self.minwise,
                self.vocabulary,
                struct.pack(f">{counts[0]}I", *sorted(self.sentences)),
                struct.pack(f">{counts[1]}H{counts[2]}H", *sorted(self.numbers), *sorted(self.words)),
            )
        )

    @classmethod
    def unpack(cls, packed: bytes, minwise: int, vocabulary: int) -> Sketch:
        """Read a sketch whose min-wise parts take ``minwise`` and ``vocabulary`` bytes."""
        body, title, site, whole, shingles, sentences, numbers, words = cls._HEAD.unpack_from(packed)
        middle = cls._HEAD.size + minwise
        end = middle + vocabulary
        rest = struct.unpack_from(f">{sentences}I{numbers}H{words}H", packed, end)
        return cls(
            body,
            title,
            site,
            whole,
            shingles,
            packed[cls._HEAD.size : middle],
            packed[middle:end],
            frozenset(rest[:sentences]),
            frozenset(rest[sentences : sentences + numbers]),
            frozenset(rest[sentences + numbers :]),
        )
