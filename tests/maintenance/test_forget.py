"""Which pages of a state are overdue or too many."""

from __future__ import annotations

import pytest

from scrapy_neardup.maintenance.forget import select_unseen
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from tests.state.clock import HOUR, Clock

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
