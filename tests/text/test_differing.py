"""What only one of two texts says, told apart from what both say."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_neardup.text.marking import Mark, Part, mark_differences


def own(parts: list[Part]) -> list[str]:
    return [part.text for part in parts if part.mark is Mark.NONE]


@settings(deadline=None)
@given(st.text("ab .\n。x1 é字！", max_size=80), st.text("ab .\n。x1 é字！", max_size=80))
def test_the_parts_are_the_texts(one: str, other: str) -> None:
    first, second = mark_differences(one, other)
    assert "".join(part.text for part in first) == one
    assert "".join(part.text for part in second) == other
    assert all(part.mark is Mark.SHARED for part in mark_differences(one, one)[0])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("渡口九点开航。第一班船是空的。", "渡口八点开航。第一班船是空的。", (["九"], ["八"])),
        ("The boat sank. All swam.", "All swam.", (["The boat sank. "], [])),
        ("The boat sank.", "The boat, sank!", ([], [])),
        ("It cost 12 crowns.", "It cost 13 crowns.", (["12 "], ["13 "])),
        ("", "All swam.", ([], ["All swam."])),
    ],
)
def test_words_and_characters_are_found_that_differ(
    one: str, other: str, expected: tuple[list[str], list[str]]
) -> None:
    first, second = mark_differences(one, other)
    assert (own(first), own(second)) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [("." * 6000, "." * 5999), ("a.\n" * 3000, "a.\n" * 2999), ("ab" * 3000, "ba" * 3000), ("船" * 6000, "来" * 6000)],
)
def test_a_text_that_repeats_itself_takes_no_long_time(one: str, other: str) -> None:
    begun = process_time()
    mark_differences(one, other)
    assert process_time() - begun < 2
