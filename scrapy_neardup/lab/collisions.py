"""How often the string hashes of the literature collide on texts and words of a corpus.

The article "网页文本的排重算法", part 6, counts collisions of eight hashes on 1,000 blog files, true copies included.
Here equal strings count once, beside the collisions of an ideal hash.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from math import expm1, log1p
from time import perf_counter

import numpy as np

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing import fingerprint64
from scrapy_neardup.hashing.classic import CLASSIC, classic_hashes
from scrapy_neardup.model import Page
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.tokens import words


@dataclass(frozen=True, slots=True)
class Collisions:
    """The collisions of one hash on ``strings`` different strings, ``texts`` or ``words``.

    ``values``: different hash values. ``collisions``: strings minus values. ``expected``: collisions of random values.
    ``milliseconds``: time to hash, without cutting words.
    """

    hash: str
    of: str
    strings: int
    values: int
    collisions: int
    expected: float
    milliseconds: float


class _Strings:
    """Hash values of different strings, in 8 bytes a string and 8 more for each hash."""

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._seen: set[int] = set()
        self._values = {name: array("Q") for name in CLASSIC}
        self._seconds = dict.fromkeys(CLASSIC, 0.0)

    def add(self, strings: Iterable[str]) -> None:
        """Hash the strings that are new."""
        new = {fingerprint64(string): string for string in strings}
        fresh = [string for fingerprint, string in new.items() if fingerprint not in self._seen]
        self._seen.update(new)
        for name in CLASSIC if fresh else ():
            begun = perf_counter()
            hashed = classic_hashes(name, fresh, self._bits)
            self._seconds[name] += perf_counter() - begun
            self._values[name].frombytes(hashed.tobytes())

    def count(self, of: str) -> list[Collisions]:
        """Return a line for each hash."""
        strings = len(self._seen)
        expected = expect_collisions(strings, self._bits)
        found = []
        for name in CLASSIC:
            values = len(np.unique(np.frombuffer(self._values[name], np.uint64)))
            seconds = self._seconds[name]
            found.append(Collisions(name, of, strings, values, strings - values, expected, seconds * 1e3))
        return found


def count_collisions(pages: Iterable[Page], bits: int = 32) -> list[Collisions]:
    """Return the collisions of each classic hash, on the letters of normalised texts and on their words.

    Memory grows with the number of different strings. Raises SettingsError unless ``bits`` is 32 or 64.
    """
    if bits not in (32, 64):
        raise SettingsError(f"A hash has 32 or 64 bits, not {bits!r}. Give one of these.")
    of_texts, of_words = _Strings(bits), _Strings(bits)
    for page in pages:
        text = normalize(page.text)
        if own := letters(text):
            of_texts.add([own])
            of_words.add(words(text))
    return of_texts.count("texts") + of_words.count("words")


def expect_collisions(strings: int, bits: int) -> float:
    """Return n - m(1 - (1 - 1/m)**n) for n strings and the m values of an ideal hash.

    For few strings it uses the first terms of the series, because the difference loses all digits.

    >>> expect_collisions(2, 1), round(expect_collisions(77_163, 32), 3)
    (0.5, 0.693)
    """
    n, m = float(strings), 2.0**bits
    if n < m / 1e4:
        pairs = n * (n - 1) / (2 * m)
        return pairs - pairs * (n - 2) / (3 * m)
    return n + m * expm1(n * log1p(-1 / m))
