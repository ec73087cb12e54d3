"""Postings in lists: which pages are filed under a key, however many, and nothing is left of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrapy_neardup.errors import StoreError
from scrapy_neardup.hashing.keys import pack_key
from scrapy_neardup.kv.base import Changes, Row
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.state import layout, records
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.records import is_posting, is_unreachable
from scrapy_neardup.state.urls import STORES
from tests.build import pairs
from tests.state.test_contract import Place, on_disk, place

__all__ = ["on_disk", "place"]

RECIPE = {"method": "minhash", "seed": 7}
KEY, HIGHEST = 7, 2**40 - 1
#: More than fits in a key.
LONG = 1 << 50
FIRST = 1_700_000_000_000_000_000


def page(n: int, *keys: int) -> Record:
    id = FIRST + n
    return Record(id, f"https://news.example.cn/{n}.html", id, 1.0, keys, b"sketch")


@pytest.fixture
def store(on_disk: Place, monkeypatch: pytest.MonkeyPatch) -> PageStore:
    """A state with room for three ids in a row."""
    monkeypatch.setattr(records, "MOST", 3)
    return on_disk.open()


def rows(store: PageStore) -> list[bytes]:
    return [key for key, _ in store.rows(b"k")]


def filed(store: PageStore, key: int = KEY, limit: int = 1000) -> list[int]:
    found = store.postings(key, limit)
    assert store.all_postings((key, 99, key), limit) == [found, [], found]
    return [id - FIRST for id in found]


def test_a_newer_page_is_filed_without_a_long_list(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MOST", 3)
    store = place.open()
    if store.is_shared:
        pytest.skip("A server has no lists.")
    looks, scan = list[bytes](), store.kv.scan

    def look(prefix: bytes, **how: Any) -> Iterator[Row]:
        looks.append(prefix)
        return scan(prefix, **how)

    monkeypatch.setattr(store.kv, "scan", look)
    for n in range(1, 11):
        store.add(page(n, KEY))
    assert looks == []
    newer = page(30)
    store.write(Changes({layout.record_key(newer.id): newer.pack()}))
    store.add(page(20, KEY))
    store.add(page(20, KEY))  # as it might be there already
    assert set(looks) == {b"k" + pack_key(KEY)}
    assert filed(store) == [20, *range(10, 0, -1)]


def test_an_old_page_is_removed_without_reading_newer_ones(store: PageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(1, 31):
        store.add(page(n, KEY))
    read, scan = list[Row](), store.kv.scan

    def counted(prefix: bytes, **how: Any) -> Iterator[Row]:
        for row in scan(prefix, **how):
            read.append(row)
            yield row

    monkeypatch.setattr(store.kv, "scan", counted)
    for n in range(1, 21):
        store.forget([page(n).id])
    assert len(read) == 20
    assert filed(store) == [*range(30, 20, -1)]


def test_what_was_read_before_another_page_was_filed_is_read_anew(store: PageStore) -> None:
    for n in range(1, 6):
        assert filed(store) == [*range(n - 1, 0, -1)]
        store.all_postings((KEY, n + 50), 9)  # two pages are judged, and neither is filed yet
        store.add(page(10 * n, KEY, n + 50))
        store.add(page(n, KEY))
        store.forget([page(10 * n).id])
    assert filed(store, 51) == []
    assert check(store).sound


def test_after_a_kill_the_postings_are_held_against_the_records(store: PageStore, on_disk: Place) -> None:
    for n in range(1, 8):
        store.add(page(n, KEY, n + 50))
    killed = on_disk.as_left_by_a_kill()
    again = killed.open()
    assert filed(again) == [7, 6, 5, 4, 3, 2, 1]
    again.close()
    killed.remove()
    changes = Changes()
    store._postings.remove((KEY,), page(7).id, changes)
    store.kv.write(changes, sync=True)
    with pytest.raises(StoreError, match="its postings do not match its records"):
        on_disk.as_left_by_a_kill().open()


def test_what_is_no_row_of_postings_is_told_apart() -> None:
    single, head = layout.posting_key(KEY, 9), b"k" + pack_key(KEY)
    ids = b"\0\0\0\0\0\0\0\x09" + b"\0\0\0\0\0\0\0+"
    assert list(pairs((single, b""))) == [(KEY, 9)]
    assert list(pairs((head, ids))) == list(pairs((head, ids + b"+"))) == [(KEY, 9), (KEY, 0x2B)]
    assert all(map(is_posting, [(single, b""), (head, ids), (head, ids + b"+"), (head, b"+")]))
    for wrong in [(single, b"1"), (head, b""), (head, ids[:-1]), (head, ids + b"-"), (head + b"1", ids), (b"k", b"")]:
        assert not is_posting(wrong)
    assert not is_unreachable(single, (head, ids + b"+"))
    for before in [(b"", b""), (head, ids), (b"k" + pack_key(8), ids + b"+")]:
        assert is_unreachable(single, before)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.lists(st.tuples(st.booleans(), st.sampled_from([KEY, KEY ^ 1]), st.integers(1, 14)), min_size=1, max_size=6),
        max_size=25,
    ),
    most=st.integers(1, 4),
    limit=st.integers(1, 16),
)
def test_whatever_is_filed_and_removed_in_whatever_order_is_there_once_or_not_at_all(
    steps: list[list[tuple[bool, int, int]]], most: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps of one list go into one batch, and each sees those before it; an id may be filed that is there."""
    monkeypatch.setattr(records, "MOST", most)
    there: dict[int, set[int]] = {KEY: set(), KEY ^ 1: set()}
    with closing(open_at(STORES["memory"], "memory:", RECIPE)) as store:
        store.add(page(1))  # so the state has seen pages as new as any of these
        for batch in steps:
            changes = Changes()
            for is_filed, key, id in batch:
                (store._postings.file if is_filed else store._postings.remove)((key,), id, changes)
                (there[key].add if is_filed else there[key].discard)(id)
            store.kv.write(changes, sync=False)
            for key, ids in there.items():
                assert store.postings(key, limit) == sorted(ids, reverse=True)[:limit]
        filed = [pair for row in store.rows(b"k") for pair in pairs(row)]
        assert sorted(filed) == sorted((key, id) for key, ids in there.items() for id in ids)
        head = (b"", b"")
        for row in store.rows(b"k"):
            assert is_posting(row)
            assert not is_unreachable(row[0], head)
            head = row if records.is_head(row[0]) else head


def test_a_state_keeps_forty_bits_of_a_key_and_all_of_the_id_of_a_group(on_disk: Place) -> None:
    store, group = on_disk.open(), page(1).id
    led = replace(page(2, KEY + LONG, 9 + LONG, group), original=group)
    store.add(page(1, KEY))
    store.add(led)
    kept = store.record(led.id)
    assert kept == replace(led, keys=(KEY, 9, group))
    assert kept.has_led
    assert store.postings(group, 9) == [led.id]
    assert store.all_postings((KEY, KEY + LONG, 9 + 2 * LONG), 9) == [[led.id, group]] * 2 + [[led.id]]
    assert {len(key) for key in rows(store)} == {6}
    assert check(store).sound
    store = on_disk.reopen(store)
    assert store.record(led.id) == kept
    store.forget([led.id, group])
    assert rows(store) == []
