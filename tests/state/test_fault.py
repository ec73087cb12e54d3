"""Work in several writes of which one fails: each write happens or not, and the rest can be done again."""

from __future__ import annotations

import numpy as np
import pytest

from scrapy_neardup.errors import StoreError
from scrapy_neardup.state import journal, layout, pages
from scrapy_neardup.state.record import Record
from tests.faults import Disk
from tests.state.test_contract import note, records, stood


def page(id: int, name: str) -> Record:
    return Record(id, f"https://news.example.cn/{name}", id, 1.0, (1, id), b"sketch")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    monkeypatch.setattr(journal.Journal, "batch", 60)
    return Disk()


def test_of_a_long_sealing_that_fails_whole_batches_are_sealed_and_the_rest_can_be_sealed_again(disk: Disk) -> None:
    store, batch = disk.open(), journal.Journal.batch
    generation = store.journal.begin("crawl")
    old, new = ([store.new_id() for _ in range(3 * batch)] for _ in range(2))
    for before, after in zip(old, new, strict=True):
        store.add(page(before, str(before)))
        store.add(page(after, str(before)), generation=generation, replaces=before)
    assert store.pages == records(store) == 6 * batch
    disk.fail_at(2)
    with pytest.raises(StoreError):
        store.journal.seal(generation, new)
    assert store.pages == records(store) == 5 * batch
    assert store.journal.end(generation) == 2 * batch
    for before, after in zip(old, new, strict=True):
        unsealed = store.kv.get(layout.journal_key(generation, after)) is not None
        assert (store.record(before) is not None) == unsealed
    store.journal.seal(generation, new)
    assert store.pages == records(store) == 3 * batch
    assert store.journal.end(generation) == 0


def test_counts_whose_periodic_write_fails_come_with_the_next(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_COUNTS_EVERY", 10)
    store = disk.open()
    note(store, 9)
    disk.fail_at(1)
    with pytest.raises(StoreError):
        note(store, 1)
    for _ in range(10):  # sentences of another block
        store.note(np.array([130], np.uint32), "river.example")
    assert disk.writes == 2
    # It is not closed, as after a kill.
    assert stood(disk.open()) == [10, 10, 10]


def test_a_close_that_fails_leaves_the_counts_that_were_written_before(disk: Disk) -> None:
    store = disk.open()
    note(store, 4)
    store.add(page(1, "a"))
    store.close()
    store = disk.open()
    note(store, 4)
    store.add(page(2, "b"))
    disk.fail_at(1)
    with pytest.raises(StoreError):
        store.close()
    store.close()  # it is closed all the same
    store = disk.open()
    assert stood(store) == [4, 4, 4]
    assert store.pages == records(store) == 2


def _left_unsealed(disk: Disk) -> None:
    """Leave a cleanly closed state with two pages for good and more unsealed ones than a batch holds."""
    store = disk.open()
    store.add(page(1, "a"))
    store.add(page(2, "b"))
    generation = store.journal.begin("a crawl whose feed was not stored")
    version = 1
    for id in range(10, 10 + journal.Journal.batch + 50):
        if id % 50:
            store.add(page(id, str(id)), generation=generation)
        else:
            store.add(page(id, "a"), generation=generation, replaces=version)
            version = id
    store.close()


@pytest.mark.parametrize("write", [1, 2, 3])
def test_an_opening_that_fails_midway_is_made_good_by_the_next(disk: Disk, write: int) -> None:
    _left_unsealed(disk)
    disk.fail_at(write)
    with pytest.raises(StoreError):
        disk.open()
    disk.fail_at(0)
    store = disk.open()
    assert store.pages == records(store) == 2
    assert not list(store.kv.scan(b"j"))
    assert not list(store.kv.scan(b"g"))
    assert store.find("https://news.example.cn/a") == page(1, "a")
    assert store.postings(1, 9999) == [2, 1]
    assert store.rolled_back.crawls == ("a crawl whose feed was not stored",)
