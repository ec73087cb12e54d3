"""Marked sentences: how they are shown on a terminal."""

from __future__ import annotations

import pytest

from scrapy_neardup.commands.output import printable, shown
from scrapy_neardup.text.marking import Mark, Part


def test_each_mark_looks_different_and_colours_end_where_they_should() -> None:
    parts = [Part("a", mark) for mark in Mark]
    assert shown(parts, coloured=False) == "a[[a]]{{a}}"
    assert shown(parts, coloured=True) == "a\x1b[32ma\x1b[0m\x1b[90ma\x1b[0m"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b]0;title\x07\x9b2J\0", "�]0;title��2J�"),
        ("a\r\nb\rc\u2028d\te", "a\nb\nc\nd e"),
        ("com\u00adpany \u202egnp.exe\ufeff", "company gnp.exe"),
        ("渡口\u3000开航 é🚢", "渡口\u3000开航 é🚢"),
        ("half \ud800", "half �"),
    ],
)
def test_nothing_in_a_page_commands_the_terminal(text: str, expected: str) -> None:
    assert printable(text) == expected
