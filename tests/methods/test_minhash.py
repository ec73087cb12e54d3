"""Min-hashes: the permutations, the error of the estimate, and how often two pages fall in one band."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing import projections
from scrapy_neardup.hashing.projections import groups, minima
from scrapy_neardup.methods.literature.minhash import MinHash, MinHashParameters
from scrapy_neardup.methods.literature.published import signature_of
from scrapy_neardup.model import Comparison
from tests.methods.comparing import compared, made

FERRY = "新渡口星期六清晨正式开航，第一班船载着三十六位乘客，从对岸的柳林村慢慢驶来。"


def windows(chance: random.Random, shared: int, own: int) -> tuple[str, str]:
    """Two texts with ``shared`` 5-grams in common and ``own`` ones each; almost surely no two are the same."""
    letters = "".join(chr(chance.randrange(0x4E00, 0x9000)) for _ in range(shared + 2 * own + 4))
    return letters[: shared + own + 4], letters[own:]


def hashes(count: int, seed: int = 1) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)


@pytest.mark.parametrize("size", [1, 7, 500])
def test_minima_are_the_smallest_values_of_linear_permutations(size: int) -> None:
    values = hashes(size)
    odd, shift = projections._constants(16)
    assert (odd % 2 == 1).all()
    upper = [int(value) >> 32 for value in values]
    expected = [min((a * x + b) % 2**32 for x in upper) for a, b in zip(odd.tolist(), shift.tolist(), strict=True)]
    assert minima(values, 16).tolist() == expected


@pytest.mark.parametrize("block", [1, 100, 999, 7 * 300, 128 * 300, 10**6])
def test_minima_do_not_depend_on_how_many_are_computed_at_a_time(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = minima(hashes(300), 128)
    monkeypatch.setattr(projections, "_BLOCK", block)
    assert (minima(hashes(300), 128) == expected).all()


def test_minima_are_of_a_set() -> None:
    values = hashes(50)
    again = np.concatenate((values[::-1], values[10:20]))
    assert (minima(again, 32) == minima(values, 32)).all()


def test_the_first_permutations_are_the_same_whatever_their_number() -> None:
    assert (minima(hashes(50), 200)[:40] == minima(hashes(50), 40)).all()


def test_the_empty_set_has_the_largest_minima() -> None:
    assert minima(hashes(0), 3).tolist() == [2**32 - 1] * 3


def test_groups_are_told_apart_by_place_and_by_every_value() -> None:
    same = groups(np.full(40, 7, np.uint32), 8)
    assert len(set(same.tolist())) == 8
    values = np.arange(40, dtype=np.uint32)
    for place in range(40):
        changed = values.copy()
        changed[place] += 1
        assert np.flatnonzero(groups(changed, 8) != groups(values, 8)).tolist() == [place // 5]
    assert len(groups(values, 3)) == 3
    assert (groups(values, 3) == groups(values[:39], 3)).all()  # the 40th belongs to no group of 13


@pytest.mark.slow
@pytest.mark.parametrize(("shared", "own"), [(120, 140), (200, 100), (320, 40), (380, 10)])
def test_the_error_of_the_estimate_is_that_of_a_binomial_share(shared: int, own: int) -> None:
    method, chance, pairs = MinHash(), random.Random(3), 250
    found = [compared(method, *windows(chance, shared, own)).similarity for _ in range(pairs)]
    jaccard = shared / (shared + 2 * own)
    deviation = math.sqrt(jaccard * (1 - jaccard) / 128)
    assert np.mean(found) == pytest.approx(jaccard, abs=4 * deviation / math.sqrt(pairs))
    assert np.std(found) == pytest.approx(deviation, rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize(("bands", "shared", "own"), [(25, 200, 100), (25, 120, 140), (16, 320, 40), (8, 380, 10)])
def test_pages_share_a_key_as_often_as_the_bands_say(bands: int, shared: int, own: int) -> None:
    method, chance, pairs = MinHash(MinHashParameters(bands=bands)), random.Random(4), 300
    both = 0
    for _ in range(pairs):
        one, other = (made(method, text) for text in windows(chance, shared, own))
        assert len(one.keys) == bands
        both += not set(one.keys).isdisjoint(other.keys)
    jaccard, rows = shared / (shared + 2 * own), 128 // bands
    expected = 1 - (1 - jaccard**rows) ** bands
    assert both / pairs == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / pairs))


def test_pages_with_nothing_in_common_are_not_similar_at_all() -> None:
    chance = random.Random(5)
    found = [compared(MinHash(), *windows(chance, 0, 300)).similarity for _ in range(50)]
    assert all(0.0 <= similarity <= 1 / 128 for similarity in found)
    assert found.count(0.0) > 45


@pytest.mark.parametrize("count", [128, 64, 25])
def test_the_signature_has_two_bytes_for_each_permutation(count: int) -> None:
    sketch = made(MinHash(MinHashParameters(permutations=count)), FERRY).sketch
    assert len(signature_of(sketch)) == 2 * count


@pytest.mark.parametrize(("limit", "duplicate"), [(0.6, True), (0.9, False)])
def test_a_page_above_the_limit_is_a_duplicate(limit: float, duplicate: bool) -> None:
    one, other = windows(random.Random(6), 320, 40)
    assert compared(MinHash(MinHashParameters(similarity=limit)), one, other).duplicate is duplicate


def test_words_may_be_the_features() -> None:
    method = MinHash(MinHashParameters(features="words", n=1))
    one, other = "The harbour lamp was lit again last night.", "Last night: lit, the lamp harbour was again!"
    assert compared(method, one, other).similarity == 1.0
    assert compared(MinHash(), one, other).similarity < 0.5


@pytest.mark.parametrize("text", ["", "！？……", " \n"])
def test_a_text_without_a_shingle_is_like_no_other(text: str) -> None:
    method = MinHash(MinHashParameters(similarity=0.01))
    assert compared(method, text, FERRY) == Comparison(0.0, 0.0, duplicate=False, certain=False, identical=False)
    assert compared(method, FERRY, text) == Comparison(0.0, 0.0, duplicate=False, certain=False, identical=False)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("features", "sentences"),
        ("n", 0),
        ("similarity", 0.0),
        ("similarity", 1.5),
        ("permutations", 0),
        ("permutations", 4097),
        ("bands", 0),
        ("bands", 256),
    ],
)
def test_a_parameter_out_of_its_limits_is_refused(parameter: str, value: object) -> None:
    with pytest.raises(SettingsError, match=f"minhash: {parameter} must be"):
        MinHashParameters(**{parameter: value})  # type: ignore[arg-type]


def test_more_bands_than_permutations_are_refused() -> None:
    assert MinHashParameters(permutations=25).bands == 25
    with pytest.raises(SettingsError, match=r"minhash: bands must be at most permutations \(24\), not 25"):
        MinHashParameters(permutations=24)
