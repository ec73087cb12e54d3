"""Shingles, and sketches that estimate how similar two sets of them are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_neardup.text.shingles import distinct, jaccard, shingles, sketch

GOLDEN_SHINGLES = [0xE62D1DE7F9AF0779, 0x7DE9D1858303C5F0]
GOLDEN_SKETCH = ["df6fb7eae9fdd6b7", "5d7155341dcdc4dc41fc537514711545", "2157692169cc479d9d696921cc9d47cc"]
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)
#: Bins and bits of sketches.
SIZES = [(64, 1), (64, 8), (512, 2), (512, 4), (4096, 1)]


@settings(deadline=None)
@given(ANY_TEXT, ANY_TEXT, st.integers(1, 8))
def test_a_part_has_the_same_shingles_wherever_it_stands(before: str, part: str, n: int) -> None:
    found = shingles(part, n)
    assert found.shape == ((max(1, len(part) - n + 1),) if part else (0,))
    assert found.dtype == np.uint64
    if len(part) >= n:
        assert shingles(before + part, n)[len(before) :].tolist() == found.tolist()


def test_different_strings_have_different_shingles_with_fixed_values() -> None:
    for one, other in (("渡口", "口渡"), ("ab", "ba"), ("船", "河"), ("𠀀", "\u0000"), ("aaa", "aa")):
        assert shingles(one, 3).tolist() != shingles(other, 3).tolist()
    assert shingles("渡口开航了", 4).tolist() == GOLDEN_SHINGLES
    assert len(distinct(shingles("渡口的船今天又开了" * 50, 5))) == 9  # its period


def draw_pair(dice: np.random.Generator, size: int, similarity: float) -> tuple[npt.NDArray[np.uint64], ...]:
    both = round(2 * size * similarity / (1 + similarity))
    hashes = dice.integers(0, 2**64, 2 * size - both, np.uint64)
    return hashes[:size], hashes[size - both :]


def test_an_estimate_is_near_the_similarity_of_the_sets() -> None:
    for similarity in [0.0, 0.2, 0.5, 0.65, 0.8, 0.95, 1.0]:
        for size in [50, 100, 300, 1000, 3000]:
            dice = np.random.default_rng(size)
            for _ in range(10):
                one, other = draw_pair(dice, size, similarity)
                exact = len(np.intersect1d(one, other)) / len(np.union1d(one, other))
                assert exact == pytest.approx(similarity, abs=0.02), size
                assert jaccard(sketch(one, 512, 2), sketch(other, 512, 2), 2) == pytest.approx(exact, abs=0.1), size


def test_a_sketch_has_its_size_and_its_bytes_are_written_down() -> None:
    for bins, bits in SIZES:
        for count in (0, 1, 7, 5000):
            hashes = np.random.default_rng(count).integers(0, 2**64, count, np.uint64)
            packed = sketch(hashes, bins, bits)
            assert len(packed) == bins * bits // 8
            assert jaccard(packed, packed, bits) == 1.0
            assert sketch(np.concatenate((hashes[::-1], hashes[:3])), bins, bits) == packed
    hashes = shingles("渡口的船今天又开了第二班是空的", 5)
    assert [sketch(hashes, 64, bits).hex()[:32] for bits in (1, 2, 8)] == GOLDEN_SKETCH


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
@given(st.binary(min_size=16, max_size=16), st.binary(min_size=16, max_size=16))
def test_an_estimate_counts_the_equal_entries(bits: int, one: bytes, other: bytes) -> None:
    entries = [
        [byte >> shift & 2**bits - 1 for byte in sketch for shift in range(0, 8, bits)] for sketch in (one, other)
    ]
    share = sum(a == b for a, b in zip(*entries, strict=True)) / len(entries[0])
    assert jaccard(one, other, bits) == pytest.approx(max(0.0, (share - 2.0**-bits) / (1 - 2.0**-bits)))
