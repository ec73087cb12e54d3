"""The lines and headlines that a sketch keeps of a page read from HTML, and their bytes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.methods.cascade.sketch import MAX_LINES, Lines
from tests.methods.comparing import split

WORD = st.integers(0, 2**32 - 1)
LINES = st.builds(
    Lines, st.frozensets(WORD, max_size=8), st.dictionaries(WORD, st.integers(1, 255), max_size=MAX_LINES)
)


def many(count: int) -> list[str]:
    return [f"line{number}" for number in range(count)]


def sampled(lines: list[str], headlines: Sequence[str] = ()) -> Lines:
    """What is kept of a page of these lines."""
    return Lines.unpack(Lines.encode(split(lines, OPEN), headlines))[0]


@settings(deadline=None)
@given(LINES, st.binary(max_size=9))
def test_what_is_packed_is_unpacked_and_what_follows_is_left(lines: Lines, rest: bytes) -> None:
    packed = lines.pack()
    assert len(packed) == 2 + 4 * len(lines.headlines) + 5 * len(lines.lines)
    assert Lines.unpack(packed + rest) == (lines, rest)


def test_the_bytes_are_those_that_are_written_down() -> None:
    lines = Lines(frozenset((7, 6)), {0x102: 255, 5: 12, 3: 1})
    assert lines.pack().hex(" ") == ("02 03 00 00 00 06 00 00 00 07 00 00 00 03 00 00 00 05 00 00 01 02 01 0c ff")
    assert Lines(frozenset(), {}).pack() == bytes(2)


def test_each_line_is_kept_with_its_letters_up_to_255() -> None:
    lines = sampled(["ferry", "", "渡口", "x" * 255, "y" * 256, "z" * 9000, "ferry"], ["late", "", "late"])
    letters = {"ferry": 5, "渡口": 2, "x" * 255: 255, "y" * 256: 255, "z" * 9000: 255}
    assert lines.lines == {OPEN.short(line): count for line, count in letters.items()}
    assert lines.headlines == {OPEN.short("late")}


@pytest.mark.parametrize("count", [0, 1, MAX_LINES - 1, MAX_LINES, MAX_LINES + 1, 500])
def test_of_many_lines_those_with_the_smallest_fingerprints_are_kept(count: int) -> None:
    smallest = sorted(map(OPEN.short, many(count)))[:MAX_LINES]
    assert sorted(sampled(many(count)).lines) == smallest
    assert sampled(many(count)[::-1]) == sampled(many(count) * 2)


@pytest.mark.parametrize("count", [1, 8, 9, 300])
def test_of_many_headlines_the_same_eight_are_kept_in_whatever_order(count: int) -> None:
    kept = sampled([], many(count)).headlines
    assert kept == sampled([], many(count)[::-1]).headlines <= set(map(OPEN.short, many(count)))
    assert len(kept) == min(count, 8)


@pytest.mark.parametrize("count", [0, 1, MAX_LINES - 1, MAX_LINES, MAX_LINES + 1, 500])
def test_up_to_its_reach_a_sample_is_all_of_the_page(count: int) -> None:
    lines = sampled(many(count))
    all_lines = set(map(OPEN.short, many(count)))
    assert {one for one in all_lines if one <= lines.reach} == set(lines.lines)
    assert lines.reach == (2**32 - 1 if count < MAX_LINES else max(lines.lines))
