"""Combining marks in a row, of which no text has many: to put them in order takes time quadratic in their number.

Unicode's Stream-Safe Text Format (UAX #15) allows thirty, and puts a joiner between them; here the others are left out,
so that nobody's later stripping of joiners brings a longer row about.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache

import numpy as np
import numpy.typing as npt

from scrapy_neardup.text.shingles import code_points

#: Marks in a row that stay.
LIMIT = 30
#: Between these code points are all marks.
_FIRST, _LAST = 0x300, 0x1E94A


def few_marks(text: str) -> str:
    """Of combining marks in a row the first 30.

    >>> len(few_marks("a" + 20 * "\\u0300\\u0316" + "b"))
    32
    """
    return text if count_marks(text) <= LIMIT else _long_row().sub(_shortened, text)


def count_marks(text: str) -> int:
    """How many combining marks a text holds.

    >>> count_marks("a\\u0300b\\u0316")
    2
    """
    if text.isascii():
        return 0
    points = code_points(text)
    return int(np.count_nonzero(_is_mark()[points[points >= _FIRST]]))  # most of HTML is below


@cache
def _is_mark() -> npt.NDArray[np.bool_]:
    """Of each code point whether it is put in order.

    Also what is no mark itself and becomes one by normalising, as the half-width voicing marks of Japanese.
    """
    found = np.zeros(sys.maxunicode + 1, np.bool_)
    for point in range(_FIRST, _LAST + 1):
        found[point] = unicodedata.combining(unicodedata.normalize("NFKD", chr(point))[0])
    return found


@cache
def _long_row() -> re.Pattern[str]:
    marks = "".join(map(chr, np.flatnonzero(_is_mark()).tolist()))
    return re.compile(f"[{marks}]{{{LIMIT + 1},}}")


def _shortened(row: re.Match[str]) -> str:
    return row[0][:LIMIT]
