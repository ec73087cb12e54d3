"""The classic string hashes have the values their literature prints, one text at a time or many at once."""

from __future__ import annotations

import pytest

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing.classic import CLASSIC, classic_hash

#: The key of Partow's test programs and the values they print, all in 32 bits.
KEY = "abcdefghijklmnopqrstuvwxyz1234567890"
PUBLISHED: dict[str, int] = {
    "rs": 4097835502,
    "js": 1651003062,
    "pjw": 126631744,
    "elf": 126631744,
    "bkdr": 3153586616,
    "sdbm": 3449571336,
    "djb": 729241521,
    "ap": 882643939,
}

#: Name -> the values in 32 and in 64 bits: they may stand in somebody's data, so they never change.
CHINESE = "近似网页去重"
WRITTEN_DOWN: dict[str, tuple[int, int]] = {
    "rs": (1999765947, 1961758041371181499),
    "js": (2597821604, 1412015015521615742),
    "pjw": (90874541, 2791164959038093),
    "elf": (90874541, 39185511342401789),
    "bkdr": (2853983637, 2507366717296760213),
    "sdbm": (3446909449, 4380893055120812553),
    "djb": (3912418520, 16761894206300144856),
    "ap": (1180825860, 4238191372228502154),
}


def test_the_published_values_and_those_of_a_chinese_word_are_written_down() -> None:
    assert CLASSIC == ("rs", "js", "pjw", "elf", "bkdr", "sdbm", "djb", "ap")
    for name in CLASSIC:
        assert classic_hash(name, KEY) == PUBLISHED[name], name
        for bits, value in zip((32, 64), WRITTEN_DOWN[name], strict=True):
            assert classic_hash(name, CHINESE, bits) == value, name


def test_the_empty_text_has_the_first_state_and_a_lone_surrogate_is_a_question_mark() -> None:
    for name, first in (("js", 1315423911), ("djb", 5381), ("ap", 0xAAAAAAAA)):
        assert classic_hash(name, "", 32) == classic_hash(name, "", 64) == first
    for name in CLASSIC:
        assert classic_hash(name, "河\ud800湾") == classic_hash(name, "河?湾")


def test_other_names_and_widths_are_refused() -> None:
    for name in ("", "SDBM", "fnv", "md5"):
        with pytest.raises(SettingsError, match=rf"^There is no classic hash '{name}'\. Use one of: rs, js, .*, ap\.$"):
            classic_hash(name, "a")
    for bits in (0, -32, 16, 33, 128):
        with pytest.raises(SettingsError, match=rf"^A classic hash cannot have {bits} bits\. Use one of: 32, 64\.$"):
            classic_hash("ap", "a", bits)
