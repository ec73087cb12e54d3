"""Random permutations, groups of their minima, and signs of random sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_neardup.hashing import projections
from scrapy_neardup.hashing.projections import groups, minima, sign_bits


def hashes(count: int, seed: int = 1) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)


def by_hand(weights: dict[int, int]) -> int:
    """A counter for each bit, and its sign."""
    totals = [sum(weight if one >> bit & 1 else -weight for one, weight in weights.items()) for bit in range(64)]
    return sum((total > 0) << bit for bit, total in enumerate(totals))


@given(st.dictionaries(st.integers(0, 2**64 - 1), st.integers(1, 2**40 - 1), min_size=1, max_size=20))
def test_signs_equal_sixty_four_counters(weights: dict[int, int]) -> None:
    assert sign_bits(np.array(list(weights), np.uint64), np.array(list(weights.values()), np.int64)) == by_hand(weights)


def test_minima_are_the_smallest_values_of_linear_permutations() -> None:
    for size in [1, 7, 500]:
        values = hashes(size)
        odd, shift = projections._constants(16)
        assert (odd % 2 == 1).all(), size
        upper = [int(value) >> 32 for value in values]
        expected = [min((a * x + b) % 2**32 for x in upper) for a, b in zip(odd.tolist(), shift.tolist(), strict=True)]
        assert minima(values, 16).tolist() == expected, size


@pytest.mark.parametrize("block", [1, 999, 7 * 300, 10**6])
def test_minima_do_not_depend_on_how_many_are_computed_at_a_time(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = minima(hashes(300), 128)
    monkeypatch.setattr(projections, "_BLOCK", block)
    assert (minima(hashes(300), 128) == expected).all()


def test_minima_are_of_a_set_and_the_first_ones_the_same_for_any_number() -> None:
    values = hashes(50)
    again = np.concatenate((values[::-1], values[10:20]))
    assert (minima(again, 200)[:40] == minima(values, 40)).all()
    assert minima(hashes(0), 3).tolist() == [2**32 - 1] * 3


def test_groups_differ_by_place_and_by_every_value() -> None:
    assert len(set(groups(np.full(40, 7, np.uint32), 8).tolist())) == 8
    values = np.arange(40, dtype=np.uint32)
    for place in range(40):
        changed = values.copy()
        changed[place] += 1
        assert np.flatnonzero(groups(changed, 8) != groups(values, 8)).tolist() == [place // 5]
    assert (groups(values, 3) == groups(values[:39], 3)).all()  # the 40th belongs to no group of 13
