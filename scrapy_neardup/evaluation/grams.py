"""The sets of character 5-grams of many texts, on disk: what exact similarities are computed from.

As the reference pairs of ``evaluate`` define them: the different 5-grams of the letters and digits of the normalised
text. A gram is its 64-bit hash; of a hundred million different ones two are taken for one with a probability of 0.0003.
"""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Protocol

import numpy as np
import numpy.typing as npt

from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.shingles import distinct, shingles

#: Letters and digits of a gram.
GRAM = 5

Grams = npt.NDArray[np.uint64]


class GramSets(Protocol):
    """Sets by their place, each as ascending hashes."""

    def sizes(self) -> npt.NDArray[np.int64]:
        """How many grams each set has."""

    def __getitem__(self, place: int) -> Grams:
        """A set."""


def grams(text: str) -> Grams:
    """The different grams of a text, ascending; none of a text that is shorter than one.

    >>> len(grams("The ferry, again!")), len(grams("Ship"))
    (9, 0)
    """
    own = letters(normalize(text))
    return distinct(shingles(own, GRAM)) if len(own) >= GRAM else np.zeros(0, np.uint64)


class GramFile:
    """Sets of grams in a file: in memory are 16 bytes of each."""

    def __init__(self, file: IO[bytes]) -> None:
        """``file``: an empty one, open for writing and reading, without a buffer."""
        self._file = file
        self._sizes = array("q")
        self._starts = array("q")
        self._end = 0

    def add(self, text: str) -> Grams:
        """The grams of one more text, which are kept."""
        found = grams(text)
        self._file.seek(self._end)
        self._file.write(found.tobytes())
        self._starts.append(self._end)
        self._sizes.append(len(found))
        self._end += found.nbytes
        return found

    def sizes(self) -> npt.NDArray[np.int64]:
        """How many grams each set has."""
        return np.array(self._sizes, np.int64)

    def __getitem__(self, place: int) -> Grams:
        self._file.seek(self._starts[place])
        return np.frombuffer(self._file.read(8 * self._sizes[place]), np.uint64)


@contextmanager
def gram_file() -> Iterator[GramFile]:
    """Sets in a temporary file, which is gone at the end."""
    with tempfile.TemporaryFile(prefix="neardup-", buffering=0) as file:
        yield GramFile(file)


def common(one: Grams, other: Grams) -> int:
    """How many grams two sets have in common."""
    return len(one) + len(other) - len(distinct(np.concatenate((one, other))))
