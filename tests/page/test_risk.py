"""Pages that may take long to read are recognised, also if they try to hide it."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from lxml import etree

from scrapy_neardup.page.html import parse_page
from scrapy_neardup.page.limits import is_risky
from tests.page.pages import ARTICLE, HOSTILE, NONE, PROSE

MARKS = "\u0300\u0316"
NAMES = [f" a{n}" for n in range(30_000)]
TALL = "<tr><td>x" * 2_500


def test_an_ordinary_page_is_not_risky() -> None:
    for html in ["", ARTICLE, PROSE, NONE, HOSTILE, 30 * ARTICLE]:
        assert not is_risky(html)


def test_slow_pages_are_risky() -> None:
    for html in [
        "x" * 700_001,
        "<p>" * 7_001,
        "a" + MARKS * 2_000,
        "&#x300;" * 3_000,
        "&#768;" * 3_000,
        "&DownBreve;&tdot;" * 2_000,
        "<b>\u0300</b>" * 3_000,
        f"<tr>{'<td>' * 1_000}{TALL}",
        f"<tr><TD ColSpan=1000>{TALL}",
        f"<tr><td colspan='&#49;000'>{TALL}",
        f"<tr><td cols\0pan=1000>{TALL}",
        f"<tr><td colspan=9999>{TALL}",
        "<tr>" + "<td colspan=1000>x" * 500,
        "<tr>" + "<td colspan=100 rowspan=1000>x" * 100 + "<tr><td>x" * 100,
        f"<p{''.join(NAMES)}>",
        f"<p{''.join(NAMES).replace(' ', '/')}>",
        f"<p {''.join(f'''{name.strip()}='>' ''' for name in NAMES)}>",
        f'<p x" y=">"{"".join(NAMES)}>',
        f"<script>'<a b=\"'</script><p y='>' {''.join(NAMES)}>",
    ]:
        assert is_risky(html)


@pytest.mark.slow
@pytest.mark.parametrize("between", ["<b>", '"<>', "='<>' ", "\n\n"])
def test_attributes_are_counted_in_any_sample(between: str) -> None:
    chance = random.Random(1)
    for _ in range(8):
        prose = " ".join(chance.choice(("ferry", "river", "town")) for _ in range(40_000))
        names = between.join("".join(NAMES[start : start + 6]) for start in range(0, len(NAMES), 6))
        assert is_risky(f"{prose}<p {names}>{prose}")


@pytest.mark.parametrize(
    "make",
    [
        lambda n: f"<p>a{MARKS * n}b",
        lambda n: f"<p>a{'&#x300;&#x316;' * n}b",
        lambda n: f"<p>a{'&#768;&#790;' * n}b",
        lambda n: f"<p>a{'&DownBreve;&tdot;' * n}b",
        lambda n: f"<p>x<b>y</b>a{MARKS * n}b",
    ],
)
def test_a_tree_has_no_long_run_of_marks(make: Callable[[int], str]) -> None:
    long, short = parse_page(make(5_000)), parse_page(make(15))
    assert long is not None
    assert short is not None
    assert etree.tostring(long, encoding="unicode") == etree.tostring(short, encoding="unicode")


def test_marks_are_limited_beside_characters_that_lxml_refuses() -> None:
    for odd in ["&#1;", "\x01", "\x0b", "&#11;", "\ufffe", "&#xffff;", "\x7f", "\x85"]:
        letters = "<b>&#233;</b>" * 2_500
        root = parse_page(f"<p>{letters}<i>x{odd}y</i><u>a{MARKS * 20}{odd}b</u>")
        assert root is not None, odd
        assert root.findtext(".//b") == "\xe9", odd
        plain, marked = root.findtext(".//i") or "", root.findtext(".//u") or ""
        assert (plain[0], plain[-1]) == ("x", "y"), odd
        assert (marked[:31], marked[-1]) == (f"a{MARKS * 15}", "b"), odd
        assert len(marked) <= 33, odd
