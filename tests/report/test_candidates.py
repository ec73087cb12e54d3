"""Which pairs are worth a look: the least similar of all, and one of each two sites."""

from __future__ import annotations

from itertools import zip_longest

from hypothesis import given
from hypothesis import strategies as st

from scrapy_neardup.report.pairs import PairCandidates

Pair = tuple[float, int, tuple[int, int]]


def best(pairs: list[Pair], count: int) -> list[int]:
    candidates = PairCandidates()
    for similarity, id, sites in pairs:
        candidates.add("near", similarity, id, (str(sites[0]), str(sites[1])))
    return candidates.best(count).get("near", [])


def plainly(pairs: list[Pair], count: int) -> list[int]:
    """The same, with everything remembered that is not to be forgotten: so many of the least similar."""
    nearest = sorted((similarity, id) for similarity, id, _ in pairs)[:64]
    of_sites: dict[tuple[int, int], list[tuple[float, int]]] = {}
    for similarity, id, sites in pairs:
        of_sites.setdefault(sites, []).append((similarity, id))
    spread = sorted(min(there) for there in of_sites.values())
    found: list[int] = []
    for turn in zip_longest(nearest, spread[1:]):
        found += [one[1] for one in turn if one and one[1] not in found]
    return found[:count]


_pairs = st.lists(
    st.tuples(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), st.integers(0, 3), st.integers(0, 3)), max_size=150
)


@given(_pairs, st.integers(0, 80))
def test_they_are_those_of_a_plain_count(found: list[tuple[float, int, int]], count: int) -> None:
    pairs = [(similarity, id, (copy, original)) for id, (similarity, copy, original) in enumerate(found, 1)]
    assert best(pairs, count) == plainly(pairs, count)


def test_the_least_similar_lead_and_other_sites_take_turns() -> None:
    same = [(0.5 + number / 1000, number, (1, 2)) for number in range(1, 100)]
    others = [(0.9, 200, (3, 4)), (0.8, 300, (4, 3)), (0.95, 400, (3, 4))]
    assert best(same + others, 6) == [1, 300, 2, 200, 3, 4]


def test_of_equally_similar_pairs_the_older_ones_stay() -> None:
    assert best([(0.5, id, (1, 1)) for id in range(300, 0, -1)], 3) == [1, 2, 3]


def test_few_are_remembered_of_many() -> None:
    candidates = PairCandidates()
    for id in range(3000):
        candidates.add("near", (id * 7919 % 3000) / 3000, id, (str(id % 50), str(id % 49)))
    candidates.add("identical", 1.0, 1000, ("", ""))
    assert candidates.best(1)["identical"] == [1000]
    found = candidates.best(10_000)["near"]
    assert len(found) == len(set(found)) <= 64 + 256
    assert min(found, key=lambda one: one * 7919 % 3000) == found[0] == 0
