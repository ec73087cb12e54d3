"""What a page says: its prose, the main text where that can be believed, and its headlines."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_neardup.page.blocks import Block
from scrapy_neardup.page.reading import read_blocks

FERRY = "The new ferry left the pier before dawn, all benches taken by growers."
PEARS = "Pears that used to bruise on the road now arrive at the market by noon."
KEEPER = "The keeper of the rope locker says that he never saw such a crowd here."
ARTICLE = [FERRY, PEARS, KEEPER]


def prose(*texts: str) -> list[Block]:
    return [Block(text) for text in texts]


def link(text: str, *, frame: bool = False) -> Block:
    return Block(text, linked=len(text), frame=frame)


# What is kept


@pytest.mark.parametrize(
    ("block", "kept"),
    [
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
    ],
)
def test_prose_is_kept_and_links_frame_and_mere_marks_are_not(block: Block, kept: bool) -> None:
    found = read_blocks([block], "")
    assert (found.text, found.main) == (block.text if kept else "", "")
    assert (found.reader, found.kept) == ("prose" if kept else "none", (kept,))


def test_lines_stay_in_their_order_and_there_is_an_answer_for_each() -> None:
    found = read_blocks(
        [link("Home"), *prose(FERRY), link("More"), Block("(c)", frame=True), *prose(PEARS, "* * *")], ""
    )
    assert found.text == f"{FERRY}\n{PEARS}"
    assert found.kept == (False, True, False, False, True, False)


@pytest.mark.parametrize(("block", "kept"), [(link(FERRY), True), (link(FERRY, frame=True), False)])
def test_a_line_of_the_main_text_that_is_a_link_is_kept_unless_it_stands_in_the_frame(block: Block, kept: bool) -> None:
    found = read_blocks([block, *prose(PEARS, KEEPER)], "\n".join(ARTICLE))
    assert found.kept == (kept, True, True)
    assert found.text.split("\n") == ARTICLE[not kept :]


@pytest.mark.parametrize(("links", "believed"), [(0, True), (1, True), (2, False), (3, False)])
def test_main_text_that_is_links_for_the_most_part_is_the_menu_and_no_article(links: int, believed: bool) -> None:
    lines = [f"{FERRY} Day {day}" for day in range(5)]
    found = read_blocks([*map(link, lines[:links]), *prose(*lines[links:])], "\n".join(lines))
    assert bool(found.main) is believed
    assert found.text.split("\n") == lines


# Which lines are the main text


@pytest.mark.parametrize(
    "main_text",
    [
        f"{FERRY}\n{PEARS}",
        f"{FERRY} {PEARS}",
        f"# {FERRY}\n- *{PEARS}*",
        f"Yesterday: {FERRY}\n{PEARS} So they say.",
        f"| {FERRY} | {PEARS} |",
    ],
    ids=["line by line", "joined", "marked up", "within longer lines", "a row of a table"],
)
def test_lines_are_found_in_the_main_text_however_that_is_cut(main_text: str) -> None:
    found = read_blocks(prose("Weather", FERRY, PEARS, "Sponsored words"), main_text)
    assert (found.main.split("\n")[:2], found.reader) == ([FERRY, PEARS], "article")
    assert "Weather" not in found.main
    assert "Sponsored words" in found.text


def test_a_line_of_a_few_letters_is_the_main_texts_only_where_it_stands_alone() -> None:
    blocks = prose(PEARS, KEEPER, "the pier", "the pier before dawn")
    joined = [f"{FERRY} And so on.", PEARS, KEEPER]
    assert read_blocks(blocks, "\n".join(joined)).main.split("\n")[:3] == [PEARS, KEEPER, "the pier before dawn"]
    assert read_blocks(blocks, "\n".join([*joined, "the pier"])).main.split("\n")[:4] == [
        block.text for block in blocks
    ]


def test_a_part_of_a_line_that_is_visible_by_itself_is_not_the_main_texts() -> None:
    assert read_blocks(prose(*ARTICLE, "the pier before dawn"), "\n".join(ARTICLE)).main.split("\n") == ARTICLE


def test_what_the_main_text_has_and_nobody_sees_is_added_to_both() -> None:
    found = read_blocks(prose(FERRY, PEARS), f"{FERRY}\n- {KEEPER}\n{PEARS}")
    assert found.text == found.main == f"{FERRY}\n{PEARS}\n- {KEEPER}"
    assert found.kept == (True, True)


@pytest.mark.parametrize("hidden", ["", "a pier", "* * * * * * * *", f"{FERRY} {PEARS}", FERRY[4:20]])
def test_nothing_is_added_that_is_short_or_visible_in_another_cut(hidden: str) -> None:
    assert read_blocks(prose(FERRY, PEARS), f"{FERRY}\n{PEARS}\n{hidden}").text == f"{FERRY}\n{PEARS}"


def test_main_text_alone_is_a_text() -> None:
    found = read_blocks([], "\n".join(ARTICLE))
    assert found.text == found.main == "\n".join(ARTICLE)
    assert (found.reader, found.kept) == ("article", ())


# When it is believed


@pytest.mark.parametrize(
    ("own", "others", "believed"),
    [
        (59, 0, False),
        (60, 0, True),
        (60, 60, True),
        (60, 61, False),
        (500, 500, True),
        (500, 501, False),
        (1000, 10, True),
    ],
)
def test_the_main_text_is_believed_if_it_is_long_enough_and_half_of_what_is_judged(
    own: int, others: int, believed: bool
) -> None:
    found = read_blocks(prose("a" * own, *["b" * others][: bool(others)]), "a" * own)
    assert found.main == "a" * own * believed
    assert found.reader == ("article" if believed else "prose")
    assert found.text == "\n".join(["a" * own, "b" * others]).strip()


def test_neither_links_nor_the_frame_count_against_it_and_the_frame_does_not_count_for_it() -> None:
    around = [link("c" * 500), Block("d" * 500, frame=True)]
    assert read_blocks([*around, Block("a" * 60)], "a" * 60).reader == "article"
    assert read_blocks([*around, Block("a" * 60)], "d" * 500).reader == "prose"


def test_what_nobody_sees_counts_for_it() -> None:
    assert read_blocks(prose("b" * 100), "a" * 99).reader == "prose"
    assert read_blocks(prose("b" * 100), "a" * 100).reader == "article"


@pytest.mark.parametrize("blocks", [[], prose("***"), [link("Home")], [Block("(c) Daybook", frame=True)]])
def test_where_nothing_is_kept_there_is_no_reader(blocks: list[Block]) -> None:
    assert read_blocks(blocks, "").reader == "none"


# Headlines


def test_headlines_are_told_whether_they_are_kept_or_not() -> None:
    blocks = [Block("Daybook", 7, headline=True), Block("Ferry", headline=True), *prose(FERRY)]
    found = read_blocks(blocks, "")
    assert found.headline == "Daybook\nFerry"
    assert found.text == f"Ferry\n{FERRY}"


# Whoever makes the page


def test_of_a_page_with_very_many_lines_and_a_very_long_main_text_the_cost_has_a_limit() -> None:
    """Without one, each of the lines would be looked for in all of the text, and the other way round."""

    def cost(size: int) -> float:
        blocks = prose(*(f"{'a' * 9}{number}" for number in range(size)))
        main_text = "\n".join(f"{'a' * 300}{number}" for number in range(size))
        begun = process_time()
        read_blocks(blocks, main_text)
        return process_time() - begun

    cost(100)
    assert cost(40_000) < 40 * max(cost(4_000), 0.01)


@given(
    st.lists(
        st.builds(
            Block,
            st.sampled_from([*ARTICLE, "pier", "Home", "***", FERRY[:20], f"{FERRY} {PEARS}"]),
            st.integers(0, 20),
            st.booleans(),
            st.booleans(),
        ),
        max_size=12,
    ),
    st.lists(st.sampled_from([*ARTICLE, "pier", "", "- ", f"{PEARS} {KEEPER}"]), max_size=6).map("\n".join),
)
def test_whatever_is_read_the_article_is_a_part_of_the_text(blocks: list[Block], main_text: str) -> None:
    found = read_blocks(blocks, main_text)
    text = found.text.split("\n")
    assert len(found.kept) == len(blocks)
    assert [block.text for block, kept in zip(blocks, found.kept, strict=True) if kept] == text[: sum(found.kept)]
    assert set(found.main.split("\n")) <= {*text, ""}
    assert (found.reader == "article") == bool(found.main)
    assert (found.reader == "none") == (not found.text)
    assert not [block for block, kept in zip(blocks, found.kept, strict=True) if kept and block.frame]
