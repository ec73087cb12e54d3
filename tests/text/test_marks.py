"""Combining marks in a row: thirty stay, whatever they are written with."""

from __future__ import annotations

import unicodedata

import pytest

from scrapy_neardup.text.characters import MOST_MARKS, count_marks, limit_marks
from scrapy_neardup.text.normalize import normalize

#: Rows that normalising must put in order.
ROWS = {
    "alternating": "\u0300\u0316",
    "Hebrew": "\u05b0\u0591",
    "Arabic": "\u064b\u0653",
    "astral": "\U0001d165\U0001d16d",
    "half-width voicing, no mark itself": "\uff9e\u0300",
    "one that becomes two": "\u0344\u0316",
    "Tibetan, likewise": "\u0f73\u0300",
    "the first and the last": "\u0300\U0001e94a",
}


def test_a_normalised_text_has_no_long_row() -> None:
    for row in ROWS.values():
        text = f"a{row * 500}b{row * 10}c"
        assert limit_marks(text) == f"a{(row * 15)}b{row * 10}c"
        assert count_marks(text) == 1_020, row
    for row in ROWS.values():
        for invisible in ("", "\u200b", "\u00ad"):
            given = "a" + (row * 15 + invisible) * 1_000
            # One that becomes two by normalising is still counted as one before.
            assert longest_row(normalize(given)) <= 2 * MOST_MARKS, row


def longest_row(text: str) -> int:
    longest = length = 0
    for char in text:
        length = length + 1 if unicodedata.combining(char) else 0
        longest = max(longest, length)
    return longest


def test_ordinary_text_stays() -> None:
    vietnamese = "tie\u0302\u0301ng Vie\u0323\u0302t"
    for text in ("", "ferry", "渡口停航", vietnamese, "שָׁלוֹם", "नौका", "ไทย", f"a{15 * ROWS['alternating']}b"):
        assert limit_marks(text) is text


@pytest.mark.slow
def test_the_table_of_marks_is_that_of_unicode() -> None:
    every = [chr(point) for point in range(0x110000)]
    combining = [char for char in every if unicodedata.combining(char)]
    assert count_marks("".join(combining)) == len(combining)
    become_some = "\uff9e\uff9f\u0f73\u0f75\u0f81"
    assert count_marks(become_some) == 5
    assert count_marks("".join({*every} - {*combining} - {*become_some})) == 0
