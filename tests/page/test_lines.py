"""The kinds of lines, the reasons for a reader, and the places of the text in the tree."""

from __future__ import annotations

import pytest

from scrapy_neardup.page.blocks import Block
from scrapy_neardup.page.extraction import Extractor, analyse, extract
from scrapy_neardup.page.reading import Line, LineRole, classify_lines, read_blocks
from scrapy_neardup.text.marking import Mark, Part
from tests.page.pages import ARTICLE, ASIDE, BODY, HOSTILE, NONE, PARAGRAPHS, PROSE

URL = "https://daybook.example/ferry.html"


def by_hand(html: str, url: str) -> str:
    return f"{PARAGRAPHS[0]}\nA line that is nowhere on the page\nHi"


def of_page(html: str, extractor: Extractor | None = None, pages: dict[str, int] | None = None) -> list[Line]:
    found = analyse(html, URL, max_html=100_000, extractor=extractor)
    return classify_lines(found.blocks, found.reading, lambda sentence: (pages or {}).get(sentence, 0))


def test_each_line_has_its_kind() -> None:
    assert [(line.role.value, line.text) for line in of_page(ARTICLE)] == [
        ("frame", "Home | News"),
        ("article", "The ferry sails again"),
        *(("article", paragraph) for paragraph in PARAGRAPHS),
        ("prose", ASIDE),
        ("links", "The bridge is closed"),
        ("other", "* * *"),
        ("frame", "All rights reserved by the Daybook"),
    ]
    assert {line.role for line in of_page(PROSE)} == {LineRole.PROSE}
    assert [line.role for line in of_page(NONE)] == [LineRole.FRAME, LineRole.FRAME]
    assert of_page("") == of_page("<p> </p>") == []


def test_quotes_in_messages_are_quotes_and_citations_are_not() -> None:
    for before in ["<div class=gmail_quote><p>Ada wrote:</p>", "<p>On 4 May 2024 at 10:03, Ada wrote:</p><div>"]:
        quote = f"<blockquote><p>{PARAGRAPHS[0]}</p></blockquote></div>"
        lines = of_page(f"<body>{before}{quote}<p>{PARAGRAPHS[1]}</p><p>{PARAGRAPHS[2]}</p></body>")
        assert [line.role for line in lines[:2]] == [LineRole.QUOTE] * 2, before
        assert {line.role for line in lines[2:]} <= {LineRole.ARTICLE, LineRole.PROSE}, before
        cited = of_page(f"<body><div><p>Ada wrote:</p>{quote}<p>{PARAGRAPHS[1]}</p><p>{PARAGRAPHS[2]}</p></body>")
        assert LineRole.QUOTE not in {line.role for line in cited}, before


def test_the_text_of_the_users_extractor_is_judged() -> None:
    lines = of_page(ARTICLE, by_hand)
    assert [line.text for line in lines if line.role is LineRole.PROSE] == [PARAGRAPHS[0]]
    assert [line.text for line in lines if line.role is LineRole.OTHER] == [
        *("The ferry sails again", *PARAGRAPHS[1:], ASIDE, "* * *")
    ]
    assert [(line.role, line.text) for line in lines[-2:]] == [
        *((LineRole.UNSEEN, text) for text in ("A line that is nowhere on the page", "Hi"))
    ]


def test_hidden_lines_of_the_main_text_are_judged() -> None:
    unseen = "a paragraph that a script would unfold, and nobody sees without it"
    found = read_blocks([Block(PARAGRAPHS[0])], f"{PARAGRAPHS[0]}\n{unseen}")
    assert (found.unseen, found.text.split("\n")[-1]) == ((unseen,), unseen)
    assert (found.letters, found.main_letters) == (sum(map(str.isalnum, PARAGRAPHS[0] + unseen)),) * 2


@pytest.mark.parametrize("extractor", [None, by_hand])
@pytest.mark.parametrize("html", [ARTICLE, PROSE, NONE, HOSTILE, "", "\0"])
def test_the_analysed_page_is_the_judged_page(html: str, extractor: Extractor | None) -> None:
    judged = extract(html, URL, max_html=100_000, extractor=extractor)
    assert analyse(html, URL, max_html=100_000, extractor=extractor).page == judged


def test_boilerplate_is_marked_by_sentence_and_by_line() -> None:
    html = f"<p>Subscribe to us today! The ferry sank at nine.</p>{BODY}<p>Write to us. Call us!</p>"
    html += "<p>Write to us. Swim.</p>"
    pages = {"subscribetoustoday": 40, "writetous": 30, "callus": 20}
    first, *_, last, second = of_page(html, pages=pages)
    assert [first, last, second] == [
        Line(
            LineRole.ARTICLE, (Part("Subscribe to us today", Mark.BOILERPLATE), Part("! The ferry sank at nine.")), 40
        ),
        Line(
            LineRole.BOILERPLATE,
            (Part("Write to us", Mark.BOILERPLATE), Part(". "), Part("Call us", Mark.BOILERPLATE), Part("!")),
            pages=20,
        ),
        Line(LineRole.ARTICLE, (Part("Write to us", Mark.BOILERPLATE), Part(". Swim.")), pages=30),
    ]


def test_a_reader_has_a_reason_with_numbers() -> None:
    for blocks, main, reader, why in [
        ([], "", "none", ("no_text", {})),
        ([Block("Menu", linked=4), Block("|")], "", "none", ("no_prose", {"many": 2})),
        ([Block("a" * 1200)], "", "prose", ("no_main", {"letters": 1200})),
        (
            [Block("a" * 80), Block("b" * 1230)],
            "a" * 80,
            "prose",
            ("too_little", {"held": 80, "letters": 1310, "share": 0.5}),
        ),
        ([Block("a" * 50), Block("b" * 9)], "a" * 50, "prose", ("too_few", {"held": 50, "letters": 59, "least": 60})),
        ([Block("a" * 1204), Block("b" * 106)], "a" * 1204, "article", ("article", {"held": 1204, "letters": 1310})),
    ]:
        found = read_blocks(blocks, main)
        assert (found.reader, found.explain()) == (reader, why)
