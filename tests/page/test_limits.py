"""Bounds of text and metadata; pages that may take long to read are recognised, also if they try to hide it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from lxml import etree

from scrapy_neardup.errors import ExtractionError, NoWorker
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import Answer, HtmlReader, PageContent
from scrapy_neardup.page.html import parse_page
from scrapy_neardup.page.limits import is_risky, is_too_long, limit_page
from scrapy_neardup.page.source import PageResponse, PageSource, UnreadPage
from scrapy_neardup.text.normalize import normalize
from tests.page.pages import ARTICLE, BODY, HOSTILE, NONE, PROSE

URL = "http://river.example/ferry"
FIELDS = {name: name for name in ("url", "title", "keywords", "description", "text", "html", "part")}
LARGE = ARTICLE + "<br>" * 9_000


def test_a_text_beyond_the_limit_is_removed() -> None:
    for text in ["x" * 100, "渡" * 100, "\ufdfa" * 5, "\ufdfb" * 12]:
        page = Page(URL, text=text, main=text, headline="Ferry", html=7)
        assert limit_page(page, 100) == page, text
        beyond = limit_page(replace(page, text=text + text[0] * 12, links="Ferry"), 100)
        assert beyond == Page(URL, html=7, unread="too_large"), text


@pytest.mark.slow
def test_the_expansion_of_every_character_is_known() -> None:
    for point in (*range(0x32400), *range(0xE0000, 0xE0200)):  # all that are assigned, and no private ones
        many = len(normalize(chr(point))) + 1
        assert many <= 7 or is_too_long(chr(point), many - 2), hex(point)


def test_metadata_is_cut() -> None:
    many = tuple(f"word{n}" for n in range(5_000))
    page = Page(
        URL,
        title="t" * 9_000,
        keywords=("k" * 9_000, *many),
        description="\ufdfa" * 9_000,
        text="x",
        headline="\n".join(many),
    )
    cut = limit_page(page, 100)
    assert (len(cut.title), len(cut.keywords[0])) == (2_000, 2_000)
    assert sum(map(len, cut.keywords)) <= 20_000
    assert len(limit_page(Page(URL, keywords=("k" * 1_500,) * 20), 100).keywords) == 13
    assert len(normalize(cut.description)) <= 20_000
    assert cut.headline == "\n".join(many[:200])


def source(**more: object) -> PageSource:
    return PageSource(FIELDS, HtmlReader(100_000, 1_000), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("item", "html", "unread"),
    [
        ({}, ARTICLE, ""),
        ({}, ARTICLE + "<p>" * 50_000, "too_large"),
        ({}, f"{ARTICLE}<p>{'The ferry sails. ' * 100}", "too_large"),
        ({"text": "x" * 1_001}, ARTICLE, "too_large"),
        ({"text": ["x" * 600, "y" * 600]}, ARTICLE, "too_large"),
        ({"text": "\ufdfa" * 60}, ARTICLE, "too_large"),
        ({"text": "x" * 1_000}, ARTICLE, ""),
        ({"html": f"<p>{'The ferry sails. ' * 100}"}, ARTICLE, "too_large"),
    ],
)
def test_a_page_beyond_a_limit_has_a_hash_and_no_text(item: dict[str, object], html: str, unread: str) -> None:
    page = source().page(item, PageResponse(URL, html.encode()), URL)
    assert (page.unread, bool(page.text), bool(page.html)) == (unread, not unread, True)
    assert page == source().page(item, PageResponse(URL, html.encode()), URL)


def test_a_risky_page_is_read_by_a_worker() -> None:
    requested: list[str] = []

    def read_risky(content: PageContent) -> Answer:
        requested.append(content.url)
        if "slow" in content.url:
            return ExtractionError("too_slow", "why")
        return Page(content.url, "Read", text="read by a worker", html=1)

    own = source(read_risky=read_risky)
    for url, html, text in [(URL, LARGE, "read by a worker"), (f"{URL}/slow", LARGE, ""), (URL, ARTICLE, BODY[:0])]:
        page = own.page({"title": "Own"}, PageResponse(url, html.encode()), url)
        assert (page.title, page.site) == ("Own", "river.example")
        assert (page.text == text) == (html is LARGE)
        assert page.unread == ("too_slow" if "slow" in url else "")
        assert page.html
    assert requested == [URL, f"{URL}/slow"]


def test_an_answer_of_a_worker_is_a_page_a_limit_or_an_error() -> None:
    one = source()
    unread = one.prepare({"title": "Own"}, PageResponse(URL, ARTICLE.encode()), URL)
    assert isinstance(unread, UnreadPage)
    assert one.read(unread, Page(URL, "Read", text="read", html=1)).title == "Own"
    assert one.read(unread, NoWorker("too_slow", "no process")).reader == "article", "it is read here"
    for reason in ("too_slow", "too_large"):
        skipped = one.read(unread, ExtractionError(reason, "why"))
        assert (skipped.unread, skipped.text, skipped.url) == (reason, "", URL)
        assert skipped.html == one.read(unread).html
    with pytest.raises(ExtractionError, match="no text today"):
        one.read(unread, ExtractionError("extractor_failed", "no text today"))


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
