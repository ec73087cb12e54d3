"""Super-shingles: how many agree by chance and by rule, and what similarity their number speaks for."""

from __future__ import annotations

import math
import random
import struct

import pytest

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.methods.literature.supershingle import SuperShingle, SuperShingleParameters
from scrapy_neardup.model import Comparison, Fingerprint
from tests.methods.comparing import NONE, compared, made

FERRY = "新渡口星期六清晨正式开航，第一班船载着三十六位乘客，从对岸的柳林村慢慢驶来。"


def windows(chance: random.Random, shared: int, own: int) -> tuple[str, str]:
    """Two texts with ``shared`` 5-grams in common and ``own`` ones each; almost surely no two are the same."""
    letters = "".join(chr(chance.randrange(0x4E00, 0x9000)) for _ in range(shared + 2 * own + 4))
    return letters[: shared + own + 4], letters[own:]


def packed(*hashes: int) -> bytes:
    return struct.pack(f">{len(hashes)}Q", *hashes)


@pytest.mark.parametrize(
    ("other", "similarity", "duplicate"),
    [
        ((1, 2, 3, 4, 5, 6), 1.0, True),
        ((1, 2, 3, 4, 5, 60), (5 / 6) ** (1 / 14), True),
        ((1, 20, 30, 40, 50, 6), (2 / 6) ** (1 / 14), True),
        ((1, 20, 30, 40, 50, 60), (1 / 6) ** (1 / 14), False),
        ((10, 20, 30, 40, 50, 60), 0.0, False),
    ],
)
def test_two_of_six_make_a_duplicate(other: tuple[int, ...], similarity: float, duplicate: bool) -> None:
    one = (1, 2, 3, 4, 5, 6)
    found = SuperShingle().agreement(Fingerprint(one, b""), packed(*one), packed(*other), NONE)
    assert found.similarity == pytest.approx(similarity)
    assert found.duplicate is duplicate


@pytest.mark.parametrize(("equal", "duplicate"), [(1, True), (3, True), (4, False), (6, False)])
def test_how_many_must_agree_is_a_parameter(equal: int, duplicate: bool) -> None:
    method = SuperShingle(SuperShingleParameters(equal=equal))
    one, other = (1, 2, 3, 4, 5, 6), (1, 2, 3, 40, 50, 60)
    assert method.agreement(Fingerprint(one, b""), packed(*one), packed(*other), NONE).duplicate is duplicate


def test_the_super_shingles_are_the_keys_and_the_signature() -> None:
    fingerprint = made(SuperShingle(), FERRY)
    assert len(set(fingerprint.keys)) == 6
    assert fingerprint.sketch.endswith(packed(*fingerprint.keys))
    assert len(made(SuperShingle(SuperShingleParameters(supershingles=9, rows=3)), FERRY).keys) == 9


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "shared", "own"), [(14, 380, 10), (14, 360, 20), (4, 320, 40), (1, 120, 140)])
def test_super_shingles_agree_as_often_as_all_their_min_hashes(rows: int, shared: int, own: int) -> None:
    method = SuperShingle(SuperShingleParameters(rows=rows))
    chance, pairs, equal, duplicates = random.Random(3), 250, 0, 0
    for _ in range(pairs):
        one, other = (made(method, text) for text in windows(chance, shared, own))
        equal += len(set(one.keys) & set(other.keys))
        duplicates += method.compare(one, other.sketch, NONE).duplicate
    share = (shared / (shared + 2 * own)) ** rows
    assert equal / pairs / 6 == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / pairs / 6))
    two = 1 - (1 - share) ** 6 - 6 * share * (1 - share) ** 5
    assert duplicates / pairs == pytest.approx(two, abs=4 * math.sqrt(two * (1 - two) / pairs))


@pytest.mark.parametrize("text", ["", "！？……", " \n"])
def test_a_text_without_a_shingle_is_like_no_other(text: str) -> None:
    method = SuperShingle(SuperShingleParameters(equal=1))
    assert compared(method, text, FERRY) == Comparison(0.0, 0.0, duplicate=False, certain=False, identical=False)
    assert compared(method, FERRY, text) == Comparison(0.0, 0.0, duplicate=False, certain=False, identical=False)


def test_words_may_be_the_features() -> None:
    method = SuperShingle(SuperShingleParameters(features="words", n=1))
    one, other = "The harbour lamp was lit again last night.", "Last night: lit, the lamp harbour was again!"
    assert compared(method, one, other).similarity == 1.0
    assert compared(SuperShingle(), one, other).similarity == 0.0


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("features", "sentences"), ("n", 0), ("supershingles", 0), ("supershingles", 65), ("rows", 0), ("equal", 0)],
)
def test_a_parameter_out_of_its_limits_is_refused(parameter: str, value: object) -> None:
    with pytest.raises(SettingsError, match=f"supershingle: {parameter} must be"):
        SuperShingleParameters(**{parameter: value})  # type: ignore[arg-type]


def test_more_equal_ones_than_there_are_is_refused() -> None:
    assert SuperShingleParameters(supershingles=3, equal=3).equal == 3
    with pytest.raises(SettingsError, match=r"supershingle: equal must be at most supershingles \(3\), not 4"):
        SuperShingleParameters(supershingles=3, equal=4)
