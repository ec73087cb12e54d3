"""Exact pairs, held against comparing each text with each."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_neardup.lab.documents import open_rows
from scrapy_neardup.lab.exact import (
    Alike,
    GramFile,
    find_similar_pairs,
)
from tests.lab.corpus import five_grams


def compared_each_with_each(sets: list[set[int]], jaccard: float, containment: float) -> set[Alike]:
    found = set()
    for (a, one), (b, other) in combinations(enumerate(sets), 2):
        if one and other:
            both = len(one & other)
            pair = Alike(a, b, both / len(one | other), both / min(len(one), len(other)))
            if pair.jaccard >= jaccard or pair.containment >= containment:
                found.add(pair)
    return found


some_sets = st.lists(st.sets(st.integers(0, 40), max_size=25), max_size=14)
shares = st.sampled_from([0.05, 0.2, 1 / 3, 0.5, 0.6, 2 / 3, 0.75, 0.8, 0.9, 1.0])


@settings(max_examples=400, deadline=None)
@given(some_sets, shares, shares, st.sampled_from([1, 7, 1000]))
def test_pairs_are_those_of_brute_force(sets: list[set[int]], jaccard: float, containment: float, room: int) -> None:
    with open_rows(GramFile) as file:
        for values in sets:  # far apart, as hashes are: the table of rarity goes by the upper bits
            file.append(np.array(sorted(one * 0x9E3779B97F4A7C15 % 2**64 for one in values), np.uint64).tobytes())
        found = list(find_similar_pairs(file, jaccard, containment, room=room))
    assert len(found) == len(set(found))
    assert set(found) == compared_each_with_each(sets, jaccard, containment)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("ab 船来了。", max_size=30), min_size=2, max_size=8))
def test_texts_are_compared_by_their_letters(texts: list[str]) -> None:
    with open_rows(GramFile) as sets:
        for text in texts:
            sets.add(text)
        found = {(one.a, one.b): one.jaccard for one in find_similar_pairs(sets, 0.3, 1.0)}
    for (a, one), (b, other) in combinations(enumerate(map(five_grams, texts)), 2):
        jaccard = len(one & other) / max(1, len(one | other))
        if one and other and jaccard >= 0.3:
            assert found[a, b] == pytest.approx(jaccard)
