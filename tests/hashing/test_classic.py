"""The classic string hashes have the values their literature prints, one text at a time or many at once."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing import classic
from scrapy_neardup.hashing.classic import CLASSIC, classic_hash, classic_hashes
from tests.processes import answer_with_hash_seed

#: The key of Partow's test programs and the values they print, all in 32 bits.
KEY = "abcdefghijklmnopqrstuvwxyz1234567890"
PUBLISHED: dict[str, int] = {
    "rs": 4097835502, "js": 1651003062, "pjw": 126631744, "elf": 126631744, "bkdr": 3153586616, "sdbm": 3449571336,
    "djb": 729241521, "ap": 882643939,
}  # fmt: skip

#: Name -> the values in 32 and in 64 bits: they may stand in somebody's data, so they never change.
CHINESE = "近似网页去重"
WRITTEN_DOWN: dict[str, tuple[int, int]] = {
    "rs": (1999765947, 1961758041371181499), "js": (2597821604, 1412015015521615742),
    "pjw": (90874541, 2791164959038093), "elf": (90874541, 39185511342401789),
    "bkdr": (2853983637, 2507366717296760213), "sdbm": (3446909449, 4380893055120812553),
    "djb": (3912418520, 16761894206300144856), "ap": (1180825860, 4238191372228502154),
}  # fmt: skip

#: Words as a page has them, and what breaks a padded matrix: nothing, zeros at the end, one word too long.
WORDS = ["网页", "", "ferry", "渡口\0", "\0\0", "a", "河\ud800湾", "🚢", "x" * 63, "x" * 64, "x" * 65, "新" * 300]

names = pytest.mark.parametrize("name", CLASSIC)
widths = pytest.mark.parametrize("bits", [32, 64])

any_text = st.text(st.characters(exclude_categories=()))
chinese = st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5), min_size=1, max_size=6)
long_text = st.builds(lambda word, times: word * times, st.text(min_size=1, max_size=4), st.integers(16, 200))
word_lists = st.lists(st.one_of(any_text, chinese, st.just(""), long_text), max_size=30)


def test_the_published_values_and_those_of_a_chinese_word_are_written_down() -> None:
    assert CLASSIC == ("rs", "js", "pjw", "elf", "bkdr", "sdbm", "djb", "ap")
    for name in CLASSIC:
        assert classic_hash(name, KEY) == PUBLISHED[name], name
        assert classic_hashes(name, [KEY]).tolist() == [PUBLISHED[name]], name
        for bits, value in zip((32, 64), WRITTEN_DOWN[name], strict=True):
            assert classic_hash(name, CHINESE, bits) == classic_hashes(name, [CHINESE], bits)[0] == value, name


@names
@widths
def test_words_at_once_have_the_values_of_words_alone(name: str, bits: int) -> None:
    for words in (WORDS, [], [""], ["", ""], ["x" * 65], ["新" * 300, "x" * 65]):
        values = classic_hashes(name, words, bits)
        assert values.dtype == np.uint64
        assert values.tolist() == [classic_hash(name, word, bits) for word in words], words


@pytest.mark.slow
@names
@widths
@settings(deadline=None, max_examples=40)
@given(words=word_lists)
def test_any_words_at_once_have_the_values_of_words_alone(name: str, bits: int, words: list[str]) -> None:
    values = classic_hashes(name, words, bits)
    assert values.shape == (len(words),)
    assert values.tolist() == [classic_hash(name, word, bits) for word in words]
    assert all(0 <= value < 2**bits for value in values.tolist())
    assert np.array_equal(values, classic_hashes(name, words, bits))


def test_a_list_of_several_batches_keeps_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [f"第{number}页" for number in range(100)]
    at_once = classic_hashes("ap", words, 64).tolist()
    monkeypatch.setattr(classic, "_BATCH", 7)
    assert classic_hashes("ap", words, 64).tolist() == at_once == [classic_hash("ap", word, 64) for word in words]


def test_neither_a_long_word_nor_a_long_list_makes_a_large_matrix() -> None:
    for words, megabytes in [(["渡口"] * 399 + ["x" * 100_000], 1), (["渡口"] * 40_000 + ["x" * 64], 13)]:
        tracemalloc.start()
        try:
            classic_hashes("bkdr", words)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert most < megabytes * 2**20


def test_the_empty_text_has_the_first_state_and_a_lone_surrogate_is_a_question_mark() -> None:
    for name, first in (("js", 1315423911), ("djb", 5381), ("ap", 0xAAAAAAAA)):
        assert classic_hash(name, "", 32) == classic_hash(name, "", 64) == first
    for name in CLASSIC:
        assert classic_hashes(name, ["河\ud800湾", "湾"]).tolist() == classic_hashes(name, ["河?湾", "湾"]).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rs", "bkdr", "sdbm", "djb"])
@settings(deadline=None)
@given(text=any_text)
def test_without_a_shift_to_the_right_the_wide_hash_ends_in_the_published_one(name: str, text: str) -> None:
    assert classic_hash(name, text, 64) % 2**32 == classic_hash(name, text, 32)


@settings(deadline=None)
@given(text=any_text)
def test_pjw_and_elf_are_one_hash_in_32_bits(text: str) -> None:
    assert classic_hash("pjw", text) == classic_hash("elf", text)


def test_pjw_and_elf_leave_their_highest_bits_alone_and_use_the_others() -> None:
    for name, bits, used in [("pjw", 32, 28), ("elf", 32, 28), ("pjw", 64, 56), ("elf", 64, 60)]:
        drawn = np.random.default_rng(8).integers(0x21, 0x1000, (1000, 9)).tolist()
        values = classic_hashes(name, ["".join(map(chr, word)) for word in drawn], bits)
        assert int(np.bitwise_or.reduce(values)) == 2**used - 1


def test_two_chinese_characters_do_not_fill_64_bits() -> None:
    for name, used in [("pjw", 48), ("bkdr", 44), ("djb", 43), ("elf", 28)]:
        values = classic_hashes(name, ["一一", "网页", "龥龥"], 64)
        assert 2 ** (used - 1) <= int(values.max()) < 2**used


def test_another_process_with_another_hash_seed_finds_the_same() -> None:
    code = (
        "import json; from scrapy_neardup.hashing.classic import *;"
        f"print(json.dumps({{name: [classic_hash(name, {CHINESE!r}, bits) for bits in (32, 64)] for name in CLASSIC}}))"
    )
    assert answer_with_hash_seed("4711", code) == {name: list(values) for name, values in WRITTEN_DOWN.items()}


def test_other_names_and_widths_are_refused() -> None:
    for name in ("", "SDBM", "fnv", "md5"):
        with pytest.raises(SettingsError, match=rf"^There is no classic hash '{name}'\. Use one of: rs, js, .*, ap\.$"):
            classic_hash(name, "a")
        with pytest.raises(SettingsError, match="There is no classic hash"):
            classic_hashes(name, [])
    for bits in (0, -32, 16, 33, 128):
        with pytest.raises(SettingsError, match=rf"^A classic hash cannot have {bits} bits\. Use one of: 32, 64\.$"):
            classic_hash("ap", "a", bits)
        with pytest.raises(SettingsError, match="cannot have"):
            classic_hashes("ap", [], bits)
