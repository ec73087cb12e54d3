"""The judged lines of a page, their roles, its credible main text, and the reasons for a reader."""

from __future__ import annotations

import re
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_neardup.model import Page
from scrapy_neardup.page import reading
from scrapy_neardup.page.blocks import Block
from scrapy_neardup.page.extraction import Extractor, analyse
from scrapy_neardup.page.reading import LineRole, Reading, read_blocks
from tests.page.pages import ARTICLE, ASIDE, NONE, PARAGRAPHS, PROSE

URL = "https://daybook.example/ferry.html"
FERRY = "The new ferry left the pier before dawn, all benches taken by growers."
PEARS = "Pears that used to bruise on the road now arrive at the market by noon."
KEEPER = "The keeper of the rope locker says that he never saw such a crowd here."
LINES = [FERRY, PEARS, KEEPER]


def read(blocks: list[Block], main_text: str) -> Reading:
    return read_blocks(Page(URL), blocks, main_text)


def is_kept(found: Reading) -> list[bool]:
    return [role in (LineRole.ARTICLE, LineRole.PROSE, LineRole.QUOTE) for role in found.roles]


def prose(*texts: str) -> list[Block]:
    return [Block(text) for text in texts]


def link(text: str, *, frame: bool = False) -> Block:
    return Block(text, linked=len(text), frame=frame)


def test_prose_is_kept_without_links_frame_and_punctuation() -> None:
    for block, kept in [
        (Block("Ferry times"), True),
        (Block("x" * 10, linked=8), True),
        (Block("x" * 10, linked=9), False),
        (Block("x" * 10, linked=10), False),
        (Block("Ferry times", frame=True), False),
        (Block("Ferry times", headline=True), True),
        (Block("Daybook", linked=7, headline=True), False),
        (Block("| » — *"), False),
        (Block("7"), True),
        (Block("渡口"), True),
    ]:
        found = read([block], "")
        assert (found.page.text, found.page.main) == (block.text if kept else "", "")
        assert (found.page.reader, is_kept(found)) == ("prose" if kept else "none", [kept])


def test_links_of_a_main_text_are_kept_unless_it_is_a_menu() -> None:
    for block, kept in [(link(FERRY), True), (link(FERRY, frame=True), False)]:
        found = read([block, *prose(PEARS, KEEPER)], "\n".join(LINES))
        assert is_kept(found) == [kept, True, True]
        assert found.page.text.split("\n") == LINES[not kept :]
    for links, credible in [(0, True), (1, True), (2, False), (3, False)]:
        lines = [f"{FERRY} Day {day}" for day in range(5)]
        found = read([*map(link, lines[:links]), *prose(*lines[links:])], "\n".join(lines))
        assert bool(found.page.main) is credible
        assert found.page.text.split("\n") == lines, links


def test_a_few_links_below_a_long_article_are_no_part_of_it() -> None:
    for above, below, kept in [(9, 2, False), (8, 2, True), (10, 3, False), (10, 4, True)]:
        lines = [f"{FERRY} Day {day}" for day in range(above + below + 1)]
        blocks = [link(lines[0]), *prose(*lines[1 : above + 1]), Block("Latest"), *map(link, lines[above + 1 :])]
        found = read(blocks, "\n".join(block.text for block in blocks))
        assert found.page.text.split("\n")[: above + 2] == [*lines[: above + 1], "Latest"]
        assert (lines[-1] in found.page.text) is kept, (above, below)


def test_lines_are_found_in_joined_and_marked_up_main_text() -> None:
    for main_text in [
        f"{FERRY}\n{PEARS}",
        f"{FERRY} {PEARS}",
        f"# {FERRY}\n- *{PEARS}*",
        f"Yesterday: {FERRY}\n{PEARS} So they say.",
        f"| {FERRY} | {PEARS} |",
    ]:
        found = read(prose("Weather", FERRY, PEARS, "Sponsored words"), main_text)
        assert (found.page.main.split("\n")[:2], found.page.reader) == ([FERRY, PEARS], "article"), main_text
        assert "Weather" not in found.page.main, main_text
        assert "Sponsored words" in found.page.text, main_text


def test_a_short_line_is_in_the_main_text_only_alone() -> None:
    blocks = prose(PEARS, KEEPER, "the pier", "the pier before dawn")
    joined = [f"{FERRY} And so on.", PEARS, KEEPER]
    assert read(blocks, "\n".join(joined)).page.main.split("\n")[:3] == [PEARS, KEEPER, "the pier before dawn"]
    assert read(blocks, "\n".join([*joined, "the pier"])).page.main.split("\n")[:4] == [block.text for block in blocks]


def test_hidden_lines_of_the_main_text_are_added_and_parts_of_visible_ones_not() -> None:
    assert read(prose(*LINES, "the pier before dawn"), "\n".join(LINES)).page.main.split("\n") == LINES
    found = read(prose(FERRY, PEARS), f"{FERRY}\n-  {KEEPER} \n{PEARS}")
    assert found.page.text == found.page.main == f"{FERRY}\n{PEARS}\n- {KEEPER}"
    assert is_kept(found) == [True, True]
    assert [*found.lines()][2:] == [(f"- {KEEPER}", LineRole.UNSEEN)]
    assert read(prose(FERRY, PEARS), f"{FERRY}\n{PEARS}\n{'x' * 12}").page.text == f"{FERRY}\n{PEARS}\n{'x' * 12}"
    for hidden in ["", "a pier", "x" * 11, "* * * * * * * *", f"{FERRY} {PEARS}", FERRY[4:20]]:
        assert read(prose(FERRY, PEARS), f"{FERRY}\n{PEARS}\n{hidden}").page.text == f"{FERRY}\n{PEARS}"


def test_a_credible_main_text_is_long_and_a_third_of_the_text() -> None:
    for own, others, credible in [(59, 0, False), (60, 0, True), (60, 120, True), (60, 121, False)]:
        found = read(prose("a" * own, *["b" * others][: bool(others)]), "a" * own)
        assert found.page.main == "a" * own * credible
        assert found.page.reader == ("article" if credible else "prose")
        assert found.page.text == "\n".join(["a" * own, "b" * others]).strip()
    around = [link("c" * 500), Block("d" * 500, frame=True)]
    assert read([*around, Block("a" * 60)], "a" * 60).page.reader == "article", "links and frame do not count"
    assert read([*around, Block("a" * 60)], "d" * 500).page.reader == "prose"


def test_the_time_for_many_lines_and_a_long_main_text_is_bounded() -> None:
    def cost(size: int) -> float:
        blocks = prose(*(f"{'a' * 9}{number}" for number in range(size)))
        main_text = "\n".join(f"{'a' * 300}{number}" for number in range(size))
        begun = process_time()
        read(blocks, main_text)
        return process_time() - begun

    cost(100)
    assert cost(40_000) < 40 * max(cost(4_000), 0.01)


def test_lines_beyond_the_bound_are_neither_found_nor_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_MAX_SCANNED", 1)
    found = read(prose(FERRY, PEARS), f"{FERRY} {PEARS}\n{KEEPER}")
    assert (found.roles, found.unseen) == ([LineRole.PROSE, LineRole.PROSE], [])


@given(
    st.lists(
        st.builds(
            Block,
            st.sampled_from([*LINES, "pier", "Home", "***", FERRY[:20], f"{FERRY} {PEARS}"]),
            st.integers(0, 20),
            st.booleans(),
            st.booleans(),
        ),
        max_size=12,
    ),
    st.lists(st.sampled_from([*LINES, "pier", "", "- ", f"{PEARS} {KEEPER}"]), max_size=6).map("\n".join),
)
def test_the_article_is_a_part_of_the_text(blocks: list[Block], main_text: str) -> None:
    found = read(blocks, main_text)
    text = found.page.text.split("\n")
    kept = [block for block, is_in in zip(blocks, is_kept(found), strict=True) if is_in]
    assert [block.text for block in kept] == text[: len(kept)]
    assert set(found.page.main.split("\n")) <= {*text, ""}
    assert (found.page.reader == "article") == bool(found.page.main)
    assert (found.page.reader == "none") == (not found.page.text)
    assert not any(block.frame for block in kept)


def by_hand(html: str, url: str) -> str:
    return f"{PARAGRAPHS[0]}\nA line that is nowhere on the page\nHi"


def of_page(html: str, extractor: Extractor | None = None) -> list[tuple[str, LineRole]]:
    return list(analyse(html, URL, max_html=100_000, extractor=extractor).lines())


def test_each_line_has_its_kind() -> None:
    assert [(role.value, text) for text, role in of_page(ARTICLE)] == [
        ("frame", "Home | News"),
        ("article", "The ferry sails again"),
        *(("article", paragraph) for paragraph in PARAGRAPHS),
        ("prose", ASIDE),
        ("links", "The bridge is closed"),
        ("other", "* * *"),
        ("frame", "All rights reserved by the Daybook"),
    ]
    assert {role for _, role in of_page(PROSE)} == {LineRole.PROSE}
    assert [role for _, role in of_page(NONE)] == [LineRole.FRAME, LineRole.FRAME]
    assert of_page("") == of_page("<p> </p>") == []
    assert of_page(ARTICLE, by_hand) == [(line, LineRole.PROSE) for line in by_hand("", "").split("\n")]


def test_quotes_in_messages_are_quotes_and_citations_are_not() -> None:
    for before in ["<div class=gmail_quote><p>Ada wrote:</p>", "<p>On 4 May 2024 at 10:03, Ada wrote:</p><div>"]:
        quote = f"<blockquote><p>{PARAGRAPHS[0]}</p></blockquote></div>"
        lines = of_page(f"<body>{before}{quote}<p>{PARAGRAPHS[1]}</p><p>{PARAGRAPHS[2]}</p></body>")
        assert [role for _, role in lines[:2]] == [LineRole.QUOTE] * 2, before
        assert {role for _, role in lines[2:]} <= {LineRole.ARTICLE, LineRole.PROSE}, before
        cited = of_page(f"<body><div><p>Ada wrote:</p>{quote}<p>{PARAGRAPHS[1]}</p><p>{PARAGRAPHS[2]}</p></body>")
        assert LineRole.QUOTE not in {role for _, role in cited}, before


def test_a_reader_has_a_reason_with_numbers() -> None:
    menu = [link(f"{FERRY} {day}") for day in range(5)]
    for blocks, main, reader, why in [
        ([], "", "none", "it shows no text."),
        ([Block("Menu", linked=4), Block("|")], "", "none", "none of its 2 visible lines is prose."),
        ([Block("a" * 1200)], "", "prose", "so only the 1,200 letters of visible prose are judged."),
        ([Block("a")], "", "prose", "so only the 1 letter of visible prose are judged."),
        ([Block("a" * 80), Block("b" * 1230)], "a" * 80, "prose", "80 of 1,310 .*, but it is ignored: .* 33% of"),
        ([Block("a" * 50), Block("b" * 9)], "a" * 50, "prose", "50 of 59 letters .*, but .* needs 60 letters"),
        (menu, "\n".join(block.text for block in menu), "prose", "but it is ignored: .* at most 30% of links"),
        ([Block("a" * 1204), Block("b" * 106)], "a" * 1204, "article", "1,204 of 1,310 .* also judged on its own"),
    ]:
        found = read(blocks, main)
        assert found.page.reader == reader
        assert re.search(why, found.explain()), found.explain()
