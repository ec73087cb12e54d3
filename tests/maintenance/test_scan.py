"""Columns of all pages: groups, which pages are overdue or too many, and the numbers of a state."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import numpy as np
import pytest

from scrapy_neardup.kv.base import Changes
from scrapy_neardup.maintenance.export import PageEntry
from scrapy_neardup.maintenance.scan import Census, last_seen, members, select_unseen, statistics
from scrapy_neardup.report.gather import gather
from scrapy_neardup.state.layout import pack_seen, url_key
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from tests.report.recount import copies, filled, large_state
from tests.state.clock import HOUR, Clock

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


#: Number of a page -> that of its original, and hours since it was last seen.
PAGES = {1: (1, 50), 2: (2, 40), 3: (1, 5), 4: (2, 45), 5: (5, 30), 6: (9, 60), 7: (7, 0)}


@pytest.fixture
def store() -> PageStore:
    """3 is a copy of 1 and was seen lately, 4 one of 2; the original of 6 is gone."""
    clock = Clock()
    store = memory_state({})
    clock.govern(store)
    for number, (original, hours) in PAGES.items():
        store.add(Record(number, f"https://a.example/{number}", original), seen=clock.now - hours * HOUR)
    return store


@pytest.mark.parametrize(
    ("hours", "many", "expected"),
    [
        (None, None, []),
        (100, None, []),
        (48, None, [6]),
        (42, None, [4, 6]),
        (35, None, [4, 2, 6]),
        (20, None, [4, 2, 5, 6]),
        (None, 7, []),
        (None, 6, [6]),
        (None, 5, [4, 6]),
        (None, 4, [4, 2, 6]),
        (None, 3, [4, 2, 5, 6]),
        (None, 2, [3, 4, 2, 5, 6]),
        (None, 1, [3, 4, 1, 2, 5, 6]),
        (42, 4, [4, 2, 6]),
        (20, 5, [4, 2, 5, 6]),
    ],
)
def test_those_that_were_seen_longest_ago_go_and_no_copy_outlives_its_original(
    store: PageStore, hours: float | None, many: int | None, expected: list[int]
) -> None:
    found = select_unseen(store, hours and store.clock.now() - hours * HOUR, many)
    assert sorted(found.ids) == sorted(expected)
    assert store.forget(found.ids) == len(expected)
    assert all(record.original == 9 or store.record(record.original) for record in store.records())


def test_of_an_empty_state_nothing_goes() -> None:
    assert select_unseen(memory_state({}), 1.0, 1).ids == ()


def compare(pages: list[PageEntry]) -> None:
    store = filled(pages)
    found, totals = statistics(store), gather(store).totals
    assert (found.pages, found.originals, found.copies, found.unjudged, int(found.first_seen), found.last_seen) == (
        *(totals.pages, totals.originals, totals.copies, totals.unjudged, totals.first, totals.last),
    )
    ids = {one.record.id for one in pages}
    assert found.copies_without_original == sum(one.record.original not in ids for one in copies(pages))
    assert found.kinds == Counter((one.evidence and one.evidence.likeness) or "unknown" for one in copies(pages))
    judged = [one.record for one in pages if one.record.is_original or one.record.original != one.record.id]
    sizes = Counter(record.original for record in judged).values()
    assert (found.groups, found.largest_group) == (sum(size > 1 for size in sizes), max(sizes, default=0))


@pytest.mark.parametrize("many", [0, 1, 7, 40, 1500])
def test_the_numbers_of_a_state(many: int) -> None:
    compare(large_state(many, 1 + many // 30))


def test_a_copy_that_stands_for_its_group_is_no_variant() -> None:
    census = Census()
    for record in (Record(1, "a", 1, 1.0, (5,)), Record(2, "b", 1, 0.8, (7,)), Record(3, "c", 1, 0.9, (7, 1))):
        census.add(record, None)
    assert (census.copies, census.variants, census.better) == (2, 1, 1)
