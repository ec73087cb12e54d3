"""Collisions are counted among different strings, and compared with those of an ideal hash."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing.classic import classic_hash
from scrapy_neardup.lab.collisions import Collisions, count_collisions, expect_collisions
from scrapy_neardup.model import Page
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.tokens import words

TEXTS = [
    "渡口的老船工昨天退休了。他撑船三十年，救起过七个人。",
    "The mill by the river grinds again. Flour costs 3.5 a bag.",
    "渡口的老船工昨天退休了。他撑船三十年，救起过七个人。",
    "渡口的老船工，昨天退休了！他撑船三十年：救起过七个人",  # the same letters
    "",
    "……！！",
]


def pages(texts: list[str] = TEXTS) -> Iterator[Page]:
    return (Page("", text=text) for text in texts)


def by(found: list[Collisions], of: str) -> dict[str, Collisions]:
    return {one.hash: one for one in found if one.of == of}


@pytest.mark.parametrize("bits", [32, 64])
def test_collisions_count_different_strings(bits: int) -> None:
    found = count_collisions(pages(), bits)
    texts = {letters(normalize(text)) for text in TEXTS} - {""}
    different = {word for text in TEXTS for word in words(normalize(text))}
    for of, strings in (("texts", texts), ("words", different)):
        for name, one in by(found, of).items():
            assert one.strings == len(strings)
            assert one.values == len({classic_hash(name, string, bits) for string in strings})
            assert one.collisions == one.strings - one.values
            assert one.expected == expect_collisions(len(strings), bits)
            assert one.milliseconds > 0


@pytest.mark.parametrize(
    ("name", "twins"),
    [("djb", ("000r", "0020")), ("pjw", ("000q", "001a")), ("elf", ("000q", "001a")), ("js", ("000w", "0020"))],
)
def test_strings_that_collide_are_counted(name: str, twins: tuple[str, str]) -> None:
    found = count_collisions(pages([f"{twin} boat." for twin in (*twins, twins[0])]))
    words = by(found, "words")
    assert (words[name].strings, words[name].values, words[name].collisions) == (3, 2, 1)
    assert (words["sdbm"].values, words["sdbm"].collisions) == (3, 0)
    assert by(found, "texts")[name].strings == 2


def test_no_text_has_no_collisions() -> None:
    for one in count_collisions(pages(["", "。"])):
        assert (one.strings, one.values, one.collisions, one.expected) == (0, 0, 0, 0.0)


def test_other_widths_are_refused() -> None:
    with pytest.raises(SettingsError, match="32 or 64 bits, not 16"):
        count_collisions(pages(), 16)


@pytest.mark.parametrize("bits", [4, 16, 32, 64])
@pytest.mark.parametrize("strings", [0, 1, 2, 3, 100, 999])
def test_expected_collisions_are_those_of_the_formula(strings: int, bits: int) -> None:
    m = 2**bits
    exact = strings - m * (1 - (1 - Fraction(1, m)) ** strings)
    assert expect_collisions(strings, bits) == pytest.approx(float(exact), rel=1e-6, abs=1e-300)


@pytest.mark.parametrize("strings", [429_400, 429_600, 10_000_000])
def test_expected_collisions_do_not_jump_where_the_series_ends(strings: int) -> None:
    m = 2.0**32
    series = strings**2 / (2 * m) * (1 - strings / (3 * m) + strings**2 / (12 * m * m))
    assert expect_collisions(strings, 32) == pytest.approx(series, rel=1e-5)
