"""Groups by columns of numbers are those that a dictionary would give."""

from __future__ import annotations

import random
from collections import defaultdict

import numpy as np
import pytest

from scrapy_neardup.kv.base import Changes
from scrapy_neardup.maintenance.forget import last_seen
from scrapy_neardup.maintenance.scan import members
from scrapy_neardup.state.layout import pack_seen, url_key
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.record import Record

LAST = 2**64 - 1


def some(seed: int) -> list[Record]:
    """Originals, copies of them, copies of what is gone, and pages that were not judged."""
    noise = random.Random(seed)
    ids = sorted({noise.randrange(10, LAST) for _ in range(noise.choice([0, 1, 2, 5, 300]))})
    found: list[Record] = []
    for id in ids:
        originals = [one.id for one in found if one.is_original]
        sort = noise.random()
        if sort < 0.4 and originals:
            found.append(Record(id, "copy", noise.choice(originals), 0.5))
        elif sort < 0.5:
            found.append(Record(id, "copy of what is gone", noise.choice([3, 5, 9]), 0.5))
        else:
            found.append(Record(id, "original", id, 0.0 if sort > 0.9 else 1.0))
    return found


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("least", [1, 2, 3])
def test_groups_are_complete_and_the_largest_comes_first(seed: int, least: int) -> None:
    records = some(seed)
    expected: dict[int, list[int]] = defaultdict(list)
    for one in records:
        if one.similarity > 0:
            expected[one.original].append(one.id)
    found = members(records)
    groups = list(found.groups(least))
    assert dict(groups) == {name: ids for name, ids in expected.items() if len(ids) >= least}
    assert [(-len(ids), name) for name, ids in groups] == sorted((-len(ids), name) for name, ids in groups)
    assert found.copies.sum() == sum(one.original != one.id for one in records)


def test_places_of_ids() -> None:
    for seed in range(6):
        found = members(some(seed))
        ids = found.ids.tolist()
        asked = [0, 1, 7, LAST, *ids[::3]]
        at, there = found.place(np.array(asked, np.uint64))
        assert there.tolist() == [one in ids for one in asked], seed
        assert [ids[place] for place, is_there in zip(at.tolist(), there.tolist(), strict=True) if is_there] == ids[
            ::3
        ], seed


def test_a_page_was_last_seen_when_its_url_says_or_else_when_it_came() -> None:
    store = memory_state({})
    for n in (1, 2, 3):
        store.add(Record(n * 10**18, f"https://a.example/{n}", n * 10**18))
    store.kv.write(
        Changes(
            {
                url_key("https://a.example/1", store.hashes): pack_seen(10**18, 77),
                url_key("https://gone.example/", store.hashes): pack_seen(5, 99),
            },
            {url_key("https://a.example/2", store.hashes)},
        ),
        sync=True,
    )
    seen = last_seen(store, members(store.records())).tolist()
    assert seen[:2] == [77, 2 * 10**9]
    assert seen[2] > 10**9
