"""Random projection: what the share of equal bits estimates, how pages are found by runs of bits, and the limits."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.methods.literature.published import signature_of
from scrapy_neardup.methods.literature.random_projection import (
    RandomProjection,
    RandomProjectionParameters,
    _runs,
    _signs,
)
from scrapy_neardup.model import Comparison, Fingerprint
from tests.methods.comparing import NONE, compared, made

FERRY = "新渡口星期六清晨正式开航，第一班船载着三十六位乘客，从对岸的柳林村慢慢驶来。"


def agreed(method: RandomProjection, one: int, other: int) -> tuple[float, bool]:
    size = method.parameters.bits // 8
    found = method.agreement(Fingerprint((), b""), one.to_bytes(size, "big"), other.to_bytes(size, "big"), NONE)
    return found.similarity, found.duplicate


@pytest.mark.parametrize("cosine", [0.0, 0.5, 0.8, 0.95, 1.0])
def test_the_share_of_equal_bits_is_that_of_the_angle(cosine: float) -> None:
    # Of two texts of 100 words, each once, the cosine is the share of words that both have.
    chance, bits = np.random.default_rng(1), 256
    once, found = np.ones(100, np.int64), []
    for _ in range(60):
        words = chance.integers(0, 2**64, 200, dtype=np.uint64)
        own = round(100 * (1 - cosine))
        one, other = _signs(words[:100], once, bits), _signs(words[own : own + 100], once, bits)
        found.append(1 - (one ^ other).bit_count() / bits)
    expected = 1 - math.acos(cosine) / math.pi
    assert np.mean(found) == pytest.approx(expected, abs=0.01)
    assert np.std(found) <= 1.4 * math.sqrt(expected * (1 - expected) / bits)


def test_a_word_counts_as_often_as_it_stands_there() -> None:
    words = np.random.default_rng(2).integers(0, 2**64, 3, dtype=np.uint64)
    heavy = _signs(words, np.array([3, 1, 1], np.int64), 256)
    assert heavy == _signs(words[:1], np.array([1], np.int64), 256)
    assert heavy != _signs(words, np.array([1, 1, 1], np.int64), 256)


def test_every_64_bits_are_drawn_anew() -> None:
    words = np.random.default_rng(3).integers(0, 2**64, 50, dtype=np.uint64)
    value = _signs(words, np.ones(50, np.int64), 512)
    blocks = [value >> 64 * block & 2**64 - 1 for block in range(8)]
    assert all(16 < (blocks[0] ^ other).bit_count() < 48 for other in blocks[1:])
    assert _signs(words, np.ones(50, np.int64), 256) == value >> 256


@pytest.mark.parametrize(
    ("different", "limit", "duplicate"),
    [(0, 1.0, True), (1, 1.0, False), (16, 240 / 256, True), (17, 240 / 256, False), (256, 0.5, False)],
)
def test_similarity_is_the_share_of_equal_bits(different: int, limit: float, duplicate: bool) -> None:
    value = random.Random(4).getrandbits(256)
    flipped = sum(1 << bit for bit in random.Random(5).sample(range(256), different))
    method = RandomProjection(RandomProjectionParameters(similarity=limit))
    assert agreed(method, value, value ^ flipped) == (1 - different / 256, duplicate)


def test_by_default_ninety_nine_pages_in_a_hundred_at_the_limit_share_a_key() -> None:
    p, chance, missed = RandomProjectionParameters(), random.Random(6), 0
    different = math.floor((1 - p.similarity) * p.bits)
    for _ in range(2000):
        value = chance.getrandbits(p.bits)
        flipped = sum(1 << bit for bit in chance.sample(range(p.bits), different))
        keys, others = (_runs(one, p.bits, p.tables, p.key_bits, OPEN) for one in (value, value ^ flipped))
        missed += set(keys).isdisjoint(others)
    assert missed / 2000 <= 0.01


@pytest.mark.parametrize(("tables", "width"), [(16, 16), (20, 14), (3, 60), (8, 64)])
def test_a_key_changes_with_the_bits_of_its_run_alone(tables: int, width: int) -> None:
    bits, value = 256, random.Random(7).getrandbits(256)
    keys = _runs(value, bits, tables, width, OPEN)
    assert len(set(keys)) == tables
    for bit in range(bits):
        changed = _runs(value ^ 1 << bit, bits, tables, width, OPEN)
        starts = [table * bits // tables for table in range(tables)]
        expected = [(bit - start) % bits < width for start in starts]
        assert [one != other for one, other in zip(keys, changed, strict=True)] == expected


def test_the_same_bits_in_another_run_are_another_key() -> None:
    assert len(set(_runs(0, 256, 16, 16, OPEN))) == 16


def test_the_order_of_words_is_no_evidence_and_stop_words_are_none() -> None:
    one, other = "The harbour lamp was lit last night.", "Lit: a harbour lamp, last night!"
    assert compared(RandomProjection(), one, other).similarity == 1.0


def test_stop_words_may_be_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "stop.txt"
    path.write_text("harbour\nhill\n", encoding="utf-8")
    one, other = "harbour lamp lit", "hill lamp lit"
    assert compared(RandomProjection(), one, other).similarity < 1.0
    assert compared(RandomProjection(RandomProjectionParameters(stop_words=str(path))), one, other).similarity == 1.0


@pytest.mark.parametrize("text", ["", "！？……", "的，了。"])
def test_a_text_without_a_word_is_like_no_other(text: str) -> None:
    method = RandomProjection(RandomProjectionParameters(similarity=0.5))
    for one, other in ((text, FERRY), (FERRY, text), (text, "是的")):
        if one != other:
            assert compared(method, one, other) == Comparison(0.0, 0.0, duplicate=False, certain=False, identical=False)


@pytest.mark.parametrize(("bits", "size"), [(64, 8), (256, 32), (384, 48)])
def test_the_signature_is_the_bits(bits: int, size: int) -> None:
    sketch = made(RandomProjection(RandomProjectionParameters(bits=bits)), FERRY).sketch
    assert len(signature_of(sketch)) == size


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("bits", 0),
        ("bits", 100),
        ("bits", 8192),
        ("similarity", 0.4),
        ("similarity", 1.1),
        ("tables", 0),
        ("tables", 256),
        ("key_bits", 0),
        ("key_bits", 65),
        ("stop_words", "no/such/file.txt"),
    ],
)
def test_a_parameter_out_of_its_limits_is_refused(parameter: str, value: object) -> None:
    with pytest.raises(SettingsError, match=f"random_projection: {parameter} must be"):
        RandomProjectionParameters(**{parameter: value})  # type: ignore[arg-type]
