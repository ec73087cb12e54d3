"""The judged lines of a page, its credible main text, and its headlines."""

from __future__ import annotations

from time import process_time

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
        found = read_blocks([block], "")
        assert (found.text, found.main) == (block.text if kept else "", "")
        assert (found.reader, found.kept) == ("prose" if kept else "none", (kept,))


def test_links_of_a_main_text_are_kept_unless_it_is_a_menu() -> None:
    for block, kept in [(link(FERRY), True), (link(FERRY, frame=True), False)]:
        found = read_blocks([block, *prose(PEARS, KEEPER)], "\n".join(ARTICLE))
        assert found.kept == (kept, True, True)
        assert found.text.split("\n") == ARTICLE[not kept :]
    for links, credible in [(0, True), (1, True), (2, False), (3, False)]:
        lines = [f"{FERRY} Day {day}" for day in range(5)]
        found = read_blocks([*map(link, lines[:links]), *prose(*lines[links:])], "\n".join(lines))
        assert bool(found.main) is credible
        assert found.text.split("\n") == lines, links


def test_lines_are_found_in_joined_and_marked_up_main_text() -> None:
    for main_text in [
        f"{FERRY}\n{PEARS}",
        f"{FERRY} {PEARS}",
        f"# {FERRY}\n- *{PEARS}*",
        f"Yesterday: {FERRY}\n{PEARS} So they say.",
        f"| {FERRY} | {PEARS} |",
    ]:
        found = read_blocks(prose("Weather", FERRY, PEARS, "Sponsored words"), main_text)
        assert (found.main.split("\n")[:2], found.reader) == ([FERRY, PEARS], "article"), main_text
        assert "Weather" not in found.main, main_text
        assert "Sponsored words" in found.text, main_text


def test_a_short_line_is_in_the_main_text_only_alone() -> None:
    blocks = prose(PEARS, KEEPER, "the pier", "the pier before dawn")
    joined = [f"{FERRY} And so on.", PEARS, KEEPER]
    assert read_blocks(blocks, "\n".join(joined)).main.split("\n")[:3] == [PEARS, KEEPER, "the pier before dawn"]
    assert read_blocks(blocks, "\n".join([*joined, "the pier"])).main.split("\n")[:4] == [
        block.text for block in blocks
    ]


def test_hidden_lines_of_the_main_text_are_added_and_parts_of_visible_ones_not() -> None:
    assert read_blocks(prose(*ARTICLE, "the pier before dawn"), "\n".join(ARTICLE)).main.split("\n") == ARTICLE
    found = read_blocks(prose(FERRY, PEARS), f"{FERRY}\n- {KEEPER}\n{PEARS}")
    assert found.text == found.main == f"{FERRY}\n{PEARS}\n- {KEEPER}"
    assert found.kept == (True, True)
    for hidden in ["", "a pier", "* * * * * * * *", f"{FERRY} {PEARS}", FERRY[4:20]]:
        assert read_blocks(prose(FERRY, PEARS), f"{FERRY}\n{PEARS}\n{hidden}").text == f"{FERRY}\n{PEARS}"


def test_a_credible_main_text_is_long_and_half_of_the_text() -> None:
    for own, others, credible in [
        (59, 0, False),
        (60, 0, True),
        (60, 60, True),
        (60, 61, False),
        (500, 500, True),
        (500, 501, False),
        (1000, 10, True),
    ]:
        found = read_blocks(prose("a" * own, *["b" * others][: bool(others)]), "a" * own)
        assert found.main == "a" * own * credible
        assert found.reader == ("article" if credible else "prose")
        assert found.text == "\n".join(["a" * own, "b" * others]).strip()


def test_links_and_frame_do_not_count() -> None:
    around = [link("c" * 500), Block("d" * 500, frame=True)]
    assert read_blocks([*around, Block("a" * 60)], "a" * 60).reader == "article"
    assert read_blocks([*around, Block("a" * 60)], "d" * 500).reader == "prose"


def test_the_time_for_many_lines_and_a_long_main_text_is_bounded() -> None:
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
def test_the_article_is_a_part_of_the_text(blocks: list[Block], main_text: str) -> None:
    found = read_blocks(blocks, main_text)
    text = found.text.split("\n")
    assert len(found.kept) == len(blocks)
    assert [block.text for block, kept in zip(blocks, found.kept, strict=True) if kept] == text[: sum(found.kept)]
    assert set(found.main.split("\n")) <= {*text, ""}
    assert (found.reader == "article") == bool(found.main)
    assert (found.reader == "none") == (not found.text)
    assert not [block for block, kept in zip(blocks, found.kept, strict=True) if kept and block.frame]
