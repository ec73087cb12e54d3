"""SimHash: its bits, its tables, its features."""

from __future__ import annotations

import random
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing.classic import CLASSIC, classic_hash
from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.hashing.projections import sign_bits
from scrapy_neardup.methods import make_method
from scrapy_neardup.methods.literature.published import signature_of
from scrapy_neardup.methods.literature.simhash import SimHash, SimHashParameters
from scrapy_neardup.model import Page
from scrapy_neardup.text.lexicon import jieba_lexicon

WORDS = ["ferry", "river", "morning", "captain", "ticket", "bridge", "flood", "winter", "engine", "village", "school"]


def page(text: str) -> Page:
    return Page("http://a.example/", text=text)


def bits(method: SimHash, text: str) -> int:
    return int.from_bytes(signature_of(method.fingerprint(page(text)).sketch), "big")


def by_hand(weights: dict[int, int]) -> int:
    """The fingerprint as the papers write it: a counter for each bit, and its sign."""
    value = 0
    for bit in range(64):
        total = sum(weight if hashed >> bit & 1 else -weight for hashed, weight in weights.items())
        value |= (total > 0) << bit
    return value


@given(st.dictionaries(st.integers(0, 2**64 - 1), st.integers(1, 2**40 - 1), min_size=1, max_size=20))
def test_the_signs_are_those_of_sixty_four_counters(weights: dict[int, int]) -> None:
    hashes, sums = np.array(list(weights), np.uint64), np.array(list(weights.values()), np.int64)
    assert sign_bits(hashes, sums) == by_hand(weights)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20))
def test_without_weights_each_hash_counts_as_often_as_it_stands_there(hashes: list[int]) -> None:
    counted = {one: hashes.count(one) for one in hashes}
    assert sign_bits(np.array(hashes, np.uint64)) == by_hand(counted)


def test_words_count_with_their_frequency_less_stop_words() -> None:
    text = "the ferry and the bridge, the ferry of the village"
    expected = by_hand({OPEN.of("ferry"): 2, OPEN.of("bridge"): 1, OPEN.of("village"): 1})
    assert bits(SimHash(), text) == expected


@pytest.mark.parametrize("name", CLASSIC)
def test_any_classic_hash_serves(name: str) -> None:
    method = SimHash(SimHashParameters(hash=name))
    expected = by_hand({classic_hash(name, word, 64): 1 for word in ("ferry", "bridge", "渡口")})
    assert bits(method, "ferry bridge 渡口") == expected


def test_stop_words_of_a_file_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "stop.txt"
    path.write_text("# ours\nBridge  # at the end\n\n", encoding="utf-8")
    method = SimHash(SimHashParameters(stop_words=str(path)))
    assert bits(method, "the ferry, the bridge") == by_hand({OPEN.of("the"): 2, OPEN.of("ferry"): 1})


def test_the_top_words_by_tfidf_are_those_of_the_table() -> None:
    text = "渡口，发展，嫁接，发展"
    weights = {word: times * jieba_lexicon().weight(word) for word, times in (("渡口", 1), ("发展", 2), ("嫁接", 1))}
    ordered = sorted(weights, key=lambda word: -weights[word])
    assert ordered == ["嫁接", "渡口", "发展"]  # a common word says little, even twice
    for top in (1, 2, 3):
        method = SimHash(SimHashParameters(features="tfidf", top=top))
        chosen = {OPEN.of(word): round(weights[word] * 1024) for word in ordered[:top]}
        assert bits(method, text) == by_hand(chosen)


def test_characters_need_no_words() -> None:
    method = SimHash(SimHashParameters(features="characters"))
    thai = "เรือข้ามฟากลำใหม่ออกเดินทางเมื่อเช้านี้"
    assert bits(method, thai) != 0
    assert bits(method, thai) == bits(method, f" {thai}! ")


@pytest.mark.parametrize(
    ("distance", "blocks", "tables", "width"),
    [
        (0, 0, 1, 64),
        (1, 0, 2, 32),
        (2, 0, 3, 21),
        (3, 0, 4, 16),
        (3, 5, 10, 25),
        (3, 6, 20, 31),
        (6, 0, 28, 16),
        (8, 0, 165, 16),
    ],
)
def test_tables_have_keys_of_at_least_sixteen_bits(distance: int, blocks: int, tables: int, width: int) -> None:
    masks = SimHashParameters(distance=distance, blocks=blocks).tables
    assert len(set(masks)) == len(masks) == tables
    assert min(mask.bit_count() for mask in masks) == width


@pytest.mark.parametrize(("distance", "blocks"), [(0, 0), (1, 0), (3, 0), (3, 5), (3, 6), (4, 0), (6, 0)])
def test_whatever_differs_in_so_many_bits_shares_a_table(distance: int, blocks: int) -> None:
    masks = SimHashParameters(distance=distance, blocks=blocks).tables
    chance = random.Random(distance)
    for _ in range(300):
        flips = sum(1 << place for place in chance.sample(range(64), distance))
        assert any(not mask & flips for mask in masks)


def test_some_that_differ_in_one_bit_more_share_none() -> None:
    masks = SimHashParameters(distance=1).tables
    assert any(all(mask & (1 << a | 1 << b) for mask in masks) for a, b in combinations(range(64), 2))


@pytest.mark.parametrize("distance", [0, 3, 6])
def test_the_distance_decides(distance: int) -> None:
    method = SimHash(SimHashParameters(distance=distance))
    new = method.fingerprint(page(" ".join(WORDS)))
    head, value = new.sketch[:-8], int.from_bytes(new.sketch[-8:], "big")
    other = bytes(8) + head[8:]  # another body, or it would be the same page
    for flips in range(10):
        flipped = value ^ ((1 << flips) - 1)
        found = method.compare(new, other + flipped.to_bytes(8, "big"), frozenset())
        assert found.duplicate is (flips <= distance)
        assert found.similarity == 1 - flips / 64


def test_texts_without_a_word_are_like_nothing() -> None:
    method = SimHash()
    one, other = method.fingerprint(page("the of and")), method.fingerprint(page("的了是"))
    assert not method.compare(one, other.sketch, frozenset()).duplicate
    assert not {*one.keys} & {*other.keys}


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"distance": 3, "blocks": 3}, r"blocks must be greater than distance \(3\), not 3"),
        ({"distance": 3, "blocks": 14}, "blocks is 14.* 255 tables"),
        ({"features": "characters", "hash": "sdbm"}, "features 'characters'.*hash 'blake2b'"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(parameters: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=f"simhash: {said}"):
        make_method("simhash", parameters)
