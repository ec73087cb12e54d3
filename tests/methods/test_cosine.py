"""Cosine: values by hand, and that the prefix filter finds every pair that brute force finds."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.methods.literature.cosine import Cosine, CosineParameters, cosine, prefix, signature
from scrapy_neardup.model import Comparison
from scrapy_neardup.text.lexicon import LexiconBuilder
from tests.methods.comparing import NONE, compared, made

FERRY = "新渡口星期六清晨正式开航，第一班船载着三十六位乘客，从对岸的柳林村慢慢驶来。"


@pytest.fixture
def counted(tmp_path: Path) -> str:
    """A lexicon of eight documents: "tide" stands in all, "harbour" in four, "lamp" in two, others are unknown."""
    builder = LexiconBuilder()
    for number in range(8):
        builder.add(["tide", *(["harbour"] if number < 4 else []), *(["lamp"] if number < 2 else [])])
    builder.write(tmp_path / "lexicon.tsv")
    return str(tmp_path / "lexicon.tsv")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    # With the IDF in units of log 2: harbour 1, lamp 2, every other word 3, tide 0.
    [
        ("harbour lamp", "harbour lamp.", 1.0),
        ("harbour lamp", "lamp harbour", 1.0),
        ("harbour lamp", "harbour tide lamp tide", 1.0),
        ("harbour", "harbour lamp", 1 / math.sqrt(5)),
        ("harbour harbour lamp", "harbour lamp", (2 + 4) / math.sqrt(8 * 5)),
        ("lamp ferry", "lamp gannet", 4 / 13),
        ("lamp ferry harbour", "ferry harbour ferry", (18 + 1) / math.sqrt(14 * 37)),
        ("harbour", "lamp", 0.0),
        ("ferry", "gannet", 0.0),
    ],
)
def test_the_cosine_is_that_of_term_frequency_times_idf(counted: str, one: str, other: str, expected: float) -> None:
    found = compared(Cosine(CosineParameters(lexicon=counted)), one, other)
    assert found.similarity == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("limit", [0.1, 0.8, 1.0])
def test_the_same_words_in_another_order_are_a_duplicate_at_any_limit(limit: float) -> None:
    method = Cosine(CosineParameters(similarity=limit))
    one = made(method, FERRY * 3 + "渡船来了，灯塔亮了。")
    other = made(method, "灯塔亮了，渡船来了。" + FERRY * 3)
    found = method.compare(one, other.sketch, NONE)
    assert (found.similarity, found.duplicate) == (1.0, True)
    assert set(one.keys) & set(other.keys)


def test_a_page_below_the_limit_is_no_duplicate(counted: str) -> None:
    found = [
        compared(Cosine(CosineParameters(lexicon=counted, similarity=limit)), "lamp ferry", "lamp gannet").duplicate
        for limit in (0.3, 0.31)
    ]
    assert found == [True, False]  # 4 / 13 = 0.3077


class Words:
    """Random texts over one vocabulary, in families that share much of what they say."""

    def __init__(self, seed: int, size: int = 2000) -> None:
        self._chance = np.random.default_rng(seed)
        self._hashes = self._chance.integers(0, 2**64, size, dtype=np.uint64)
        self._idf = self._chance.choice([0.5, 1.0, 3.0, 6.0, 11.95], size)
        self._size = size

    def text(self, words: int) -> dict[int, int]:
        """Words by number, with how often each stands there."""
        chosen = self._chance.choice(self._size, words, replace=False)
        return dict(zip(chosen.tolist(), self._chance.geometric(0.5, words).tolist(), strict=True))

    def edited(self, text: dict[int, int], share: float) -> dict[int, int]:
        """The text with a share of its words dropped, and others in their place."""
        kept = {word: times for word, times in text.items() if self._chance.random() > share}
        return {**self.text(len(text) - len(kept)), **kept} if len(kept) < len(text) else kept

    def vector(self, text: dict[int, int]) -> npt.NDArray[np.float64]:
        """The text's TF-IDF vector of length 1, over the whole vocabulary."""
        whole = np.zeros(self._size)
        whole[list(text)] = np.array(list(text.values())) * self._idf[list(text)]
        return np.asarray(whole / np.linalg.norm(whole))

    def signature(self, text: dict[int, int], similarity: float) -> tuple[list[int], bytes]:
        """What the method makes of the text."""
        places = list(text)
        times = np.array(list(text.values()), np.float64)
        return signature(self._hashes[places], self._idf[places], times, similarity)


@pytest.mark.slow
@pytest.mark.parametrize("similarity", [0.3, 0.5, 0.8, 0.95])
def test_the_prefix_filter_finds_every_pair_that_brute_force_finds(similarity: float) -> None:
    words = Words(seed=1)
    texts = []
    for family in range(60):
        first = words.text(5 + 3 * family)
        texts += [first, *(words.edited(first, share) for share in (0.02, 0.1, 0.3, 0.6))]
    signatures = [words.signature(text, similarity) for text in texts]
    vectors = np.array([words.vector(text) for text in texts])
    exact = vectors @ vectors.T
    above = 0
    for one, other in combinations(range(len(texts)), 2):
        (keys, packed), (other_keys, other_packed) = signatures[one], signatures[other]
        if exact[one, other] >= similarity:
            above += 1
            assert not set(keys).isdisjoint(other_keys)
            assert cosine(packed, other_packed) == pytest.approx(exact[one, other], abs=2e-6)
    assert above > 50
    assert max(len(keys) for keys, _ in signatures) < 255
    assert sum(len(keys) for keys, _ in signatures) < sum(map(len, texts))


@pytest.mark.parametrize("similarity", [0.3, 0.5, 0.7, 0.9])
def test_the_prefix_filter_finds_every_pair_of_short_texts_that_stress_other_words(similarity: float) -> None:
    words = Words(seed=4, size=12)
    texts = [words.text(2 + number % 4) for number in range(200)]
    signatures = [words.signature(text, similarity) for text in texts]
    vectors = [words.vector(text) for text in texts]
    found = [
        set(signatures[one][0]).isdisjoint(signatures[other][0])
        for one, other in combinations(range(len(texts)), 2)
        if vectors[one] @ vectors[other] >= similarity
    ]
    assert len(found) > 300
    assert not any(found)


@pytest.mark.parametrize("idf", [(1.0, 1.0), (1.0, 1.5), (1.5, 1.0)])
def test_the_order_of_words_is_the_same_whatever_a_page_stresses(idf: tuple[float, float]) -> None:
    hashes = np.array([3 << 40, 7 << 40], np.uint64)
    one, other = (signature(hashes, np.array(idf), np.array(times), 0.7) for times in ((2.0, 1.0), (1.0, 2.0)))
    assert cosine(one[1], other[1]) > 0.7
    assert set(one[0]) & set(other[0])


def test_cosines_are_those_of_brute_force_for_unlike_texts_too() -> None:
    words = Words(seed=2, size=300)
    texts = [words.text(100) for _ in range(30)]
    for one, other in combinations(texts, 2):
        found = cosine(words.signature(one, 0.8)[1], words.signature(other, 0.8)[1])
        assert found == pytest.approx(words.vector(one) @ words.vector(other), abs=2e-6)
        assert found == cosine(words.signature(other, 0.8)[1], words.signature(one, 0.8)[1])


def test_a_long_page_is_filed_under_its_255_rarest_words() -> None:
    hashes = np.random.default_rng(3).integers(0, 2**64, 1000, dtype=np.uint64)
    idf = np.arange(1000, 0, -1) / 100
    keys, packed = signature(hashes, idf, np.ones(1000), 0.5)
    assert keys == hashes[:255].tolist()
    assert len(packed) == 8 * 1000


@pytest.mark.parametrize(
    ("weights", "similarity", "expected"),
    [
        ([1.0], 1.0, 1),
        ([1.0], 0.1, 1),
        ([0.6, 0.8], 0.9, 1),
        ([0.6, 0.8], 0.8, 2),  # a rest of just the limit is not shorter than it
        ([0.6, 0.8], 0.7, 2),
        ([0.8, 0.6], 0.7, 1),
        ([0.43589, 0.9], 0.9, 2),  # 0.9 in 24 bits is less than 0.9
        ([0.5, 0.5, 0.5, 0.5], 0.9, 1),
        ([0.5, 0.5, 0.5, 0.5], 0.75, 2),
        ([0.5, 0.5, 0.5, 0.5], 0.6, 3),
        ([0.5, 0.5, 0.5, 0.5], 0.4, 4),
    ],
)
def test_a_prefix_ends_where_the_rest_is_shorter_than_the_limit(
    weights: list[float], similarity: float, expected: int
) -> None:
    assert prefix(np.array(weights, np.float32), similarity) == expected


def test_words_with_the_same_upper_half_are_never_taken_for_shared_within_one_page() -> None:
    twins = np.array([5 << 32 | 1, 5 << 32 | 2, 9 << 32], np.uint64)
    _, packed = signature(twins, np.array([1.0, 2.0, 2.0]), np.ones(3), 0.8)
    assert len(packed) == 16
    assert cosine(packed, packed) == pytest.approx(8 / 9, abs=1e-6)  # the lighter twin is left out
    _, other = signature(twins[2:], np.array([2.0]), np.ones(1), 0.8)
    assert cosine(packed, other) == pytest.approx(2 / 3, abs=1e-6)


@pytest.mark.parametrize("text", ["", "！？……", "的，了。", "Tide, tide."])
def test_a_text_without_a_word_that_tells_anything_is_like_no_other(counted: str, text: str) -> None:
    method = Cosine(CosineParameters(similarity=0.1, lexicon=counted))
    for one, other in ((text, FERRY), (FERRY, text), (text, text + "潮")):
        found = compared(method, one, other)
        assert found == Comparison(0.0, 0.0, duplicate=False, certain=False, identical=False)


def test_stop_words_may_be_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "stop.txt"
    path.write_text("harbour\nhill\n", encoding="utf-8")
    assert compared(Cosine(), "harbour lamp lit", "hill lamp lit").similarity == pytest.approx(2 / 3, abs=1e-6)
    method = Cosine(CosineParameters(stop_words=str(path)))
    assert compared(method, "harbour lamp lit", "hill lamp lit").similarity == 1.0


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("similarity", 0.05), ("similarity", 1.1), ("lexicon", "no/such/file.tsv"), ("stop_words", "no/such/file.txt")],
)
def test_a_parameter_out_of_its_limits_is_refused(parameter: str, value: object) -> None:
    with pytest.raises(SettingsError, match=f"cosine: {parameter} must be"):
        CosineParameters(**{parameter: value})  # type: ignore[arg-type]
