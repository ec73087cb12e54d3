"""Columns of all pages: groups, which pages are overdue or too many, and the numbers of a state."""

from __future__ import annotations

import random

import numpy as np
import pytest

from scrapy_neardup.kv.base import Changes
from scrapy_neardup.maintenance.scan import last_seen, members, select_unseen, statistics
from scrapy_neardup.state.layout import pack_seen, url_key
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from tests.state.clock import HOUR, Clock

LAST = 2**64 - 1


def test_places_of_ids() -> None:
    noise = random.Random(5)
    for many in (0, 1, 300):
        ids = sorted({noise.randrange(10, LAST) for _ in range(many)})
        asked = [0, 1, 7, LAST, *ids[::3]]
        at, there = members(Record(id, "", id) for id in ids).place(np.array(asked, np.uint64))
        assert there.tolist() == [one in ids for one in asked]
        assert [ids[place] for place in at[there].tolist()] == ids[::3]


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
    ("hours", "expected"), [(100, []), (48, [6]), (42, [4, 6]), (35, [4, 2, 6]), (20, [4, 2, 5, 6])]
)
def test_those_that_were_seen_longest_ago_go_and_no_copy_outlives_its_original(
    store: PageStore, hours: float, expected: list[int]
) -> None:
    found = select_unseen(store, store.clock.now() - hours * HOUR)
    assert sorted(found.ids) == sorted(expected)
    assert store.forget(found.ids) == len(expected)
    assert all(record.original == 9 or store.record(record.original) for record in store.records())


def test_of_an_empty_state_nothing_goes() -> None:
    assert select_unseen(memory_state({}), 1.0).ids == ()


def test_a_copy_that_stands_for_its_group_is_no_variant() -> None:
    store = memory_state({})
    for record in (Record(1, "a", 1, 1.0, (5,)), Record(2, "b", 1, 0.8, (7,)), Record(3, "c", 1, 0.9, (7, 1))):
        store.add(record)
    found = statistics(store)
    assert (found.copies, found.variants, found.better) == (2, 1, 1)
