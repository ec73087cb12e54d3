"""Strings of pages without what could disturb, and which of them may be links."""

from __future__ import annotations

import pytest

from scrapy_neardup.report.clean import URL, clean_line, clean_text, link

NASTY = [
    ("bell\x07 escape\x1b[2J null\x00 c1\x9b", "bell� escape�[2J null� c1�"),
    ("\u202eright\u202c \u2066to\u2069 \u202dleft", "�right� �to� �left"),
    ("half \ud83d a pair \udc80", "half � a pair �"),
    ("no \ufffe character \uffff", "no � character �"),
    ("🚢 渡口 👩‍👩‍👧 שלום", "🚢 渡口 👩‍👩‍👧 שלום"),
]


@pytest.mark.parametrize(("given", "shown"), NASTY)
def test_what_could_disturb_is_made_visible(given: str, shown: str) -> None:
    assert clean_text(given) == clean_line(given, 100) == shown


def test_ends_of_lines_are_one_and_tabs_are_spaces() -> None:
    assert clean_text("a\r\nb\rc\x0bd\x0ce\x85f\u2028g\u2029h\ti") == "a\nb\nc\nd\ne\nf\ng\nh i"
    assert clean_line(" a\r\nb\u2028\u3000c\t\u00a0d\n", 100) == "a b c d"


@pytest.mark.parametrize(
    ("given", "limit", "shown"),
    [
        ("ferry", 5, "ferry"),
        ("ferries", 5, "ferri…"),
        ("the ferry", 4, "the…"),
        ("渡口" * 50, 3, "渡口渡…"),
        ("a" + " " * 40 + "b", 5, "a…"),  # what stands behind was not read
        ("", 5, ""),
        (" \n ", 5, ""),
    ],
)
def test_a_line_says_that_it_is_cut(given: str, limit: int, shown: str) -> None:
    assert clean_line(given, limit) == shown


@pytest.mark.parametrize("url", ["http://a.example/", "https://a.example/?q=<b>&c='\"", "HTTPS://A.example/渡口"])
def test_addresses_of_the_web_are_links(url: str) -> None:
    assert link(clean_line(url, URL)) == url


@pytest.mark.parametrize(
    "url",
    [
        *("javascript:alert(1)", " javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\nscript:alert(1)"),
        *("data:text/html,x", "file:///etc/passwd", "vbscript:x", "//a.example/", "/a", "a.example", "", "http:/a"),
        *("https:a.example", "http://a.example/ b", "http://a.example/\nb", "http://a.example/\x00"),
        *("http://a.example/\u202egpj", "http://a.example/\ud800", "x http://a.example/", "view-source:http://a/"),
        "http://a.example/" + "x" * URL,
        "http://a.example/" + "x" * (URL - 18) + " y",
        "http://a.example/" + " " * 5 * URL + "y",
    ],
)
def test_nothing_else_is_a_link(url: str) -> None:
    assert link(clean_line(url, URL)) == ""
