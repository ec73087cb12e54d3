"""Every write may be the one that fails: what was asked for then happens whole or not at all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from scrapy_neardup.errors import StoreError
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.state import boilerplate, journal, layout
from scrapy_neardup.state.opening import open_rows
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.postings import pairs
from scrapy_neardup.state.record import Record
from tests.faults import FaultyStore, LastingRows

RECIPE = {"method": "minhash", "seed": 7}


class Disk:
    """Rows that outlive their store, and a write that fails."""

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes] = {}
        self.fail_at(0)

    def fail_at(self, write: int) -> None:
        """Let the ``write``-th write from now on fail, or none if that is 0."""
        self.writes, self.fails_at = 0, write

    def before(self, name: str, argument: object) -> None:
        if name == "write" or (name == "close" and argument is not None):
            self.writes += 1
            if self.writes == self.fails_at:
                raise StoreError("No space left on device.")

    def open(self) -> PageStore:
        return open_rows(FaultyStore(LastingRows(self.rows), self.before), RECIPE)


DISKS: dict[str, Disk] = {}


@pytest.fixture(autouse=True)
def _clean_disks() -> None:
    DISKS.clear()


def fail_at(write: int, disk: str = "disk") -> None:
    """Let the ``write``-th write from now on fail, or none if that is 0."""
    DISKS.setdefault(disk, Disk()).fail_at(write)


def open_disk(disk: str = "disk") -> PageStore:
    return DISKS.setdefault(disk, Disk()).open()


def content(store: PageStore) -> dict[bytes, bytes]:
    """All that is written down, but for the times at which URLs were seen."""
    return {key: value[:8] if key[:1] == b"u" else value for key, value in store.kv.scan(b"")}


def records(store: PageStore) -> int:
    return sum(1 for _ in store.kv.scan(b"r"))


def page(id: int, name: str) -> Record:
    return Record(id, f"https://news.example.cn/{name}", id, 1.0, (1, id), b"sketch")


CRAWL = 2**40

#: A crawl, an operation at a time; each writes once.
STEPS: dict[str, Callable[[PageStore], object]] = {
    "begin": lambda store: store.kv.write(Changes({layout.generation_key(CRAWL): b'{"who": "a crawl"}'}), sync=False),
    "add one for good": lambda store: store.add(page(1, "a")),
    "add one unsealed": lambda store: store.add(page(2, "b"), generation=CRAWL),
    "add an unsealed update": lambda store: store.add(page(3, "a"), generation=CRAWL, replaces=1),
    "add an update of the update": lambda store: store.add(page(4, "a"), generation=CRAWL, replaces=3),
    "add an update for good": lambda store: store.add(page(5, "b"), replaces=2),
    "touch": lambda store: store.touch(page(5, "b")),
    "add more": lambda store: store.add(page(6, "c"), generation=CRAWL),
    "seal some": lambda store: store.seal(CRAWL, [2, 3]),
    "roll back an update": lambda store: store.roll_back(CRAWL, 4),
    "roll back what was sealed": lambda store: store.roll_back(CRAWL, 5),
    "seal the rest": lambda store: store.seal(CRAWL, [6]),
    "end": lambda store: store.end(CRAWL),
}


def test_every_step_of_the_crawl_writes_once_and_changes_something() -> None:
    """Else the tests below would test nothing."""
    store = open_disk()
    for name, step in STEPS.items():
        before = content(store)
        fail_at(0)
        step(store)
        assert DISKS["disk"].writes == 1, name
        assert (content(store) != before) == (name != "touch"), name
        assert store.pages == records(store), name


@pytest.mark.parametrize("failing", STEPS)
def test_an_operation_whose_write_fails_has_not_happened_and_can_be_done_again(failing: str) -> None:
    store, twin = open_disk(), open_disk("the disk of one that never fails")
    for name, step in STEPS.items():
        step(twin)
        if name == failing:
            before, pages = content(store), store.pages
            fail_at(1)
            with pytest.raises(StoreError, match="No space left"):
                step(store)
            assert content(store) == before
            assert store.pages == pages == records(store)
            fail_at(0)
        step(store)
        assert content(store) == content(twin)
        assert store.pages == twin.pages == records(store)


@pytest.mark.parametrize("lost", range(1, len(STEPS) + 1))
def test_after_any_write_that_failed_the_crawl_goes_on_and_the_count_stays_right(lost: int) -> None:
    store = open_disk()
    fail_at(lost)
    failures = 0
    for step in STEPS.values():
        before, pages = content(store), store.pages
        try:
            step(store)
        except StoreError:
            failures += 1
            assert content(store) == before
            assert store.pages == pages
        assert store.pages == records(store)
    assert failures == 1
    store.close()
    store = open_disk()
    assert store.pages == records(store)
    assert not list(store.kv.scan(b"j"))
    filed = {id for row in store.kv.scan(b"k") for _, id in pairs(row)}
    assert filed <= {layout.last_id(key) for key, _ in store.kv.scan(b"r")}


def test_of_a_long_sealing_that_fails_whole_batches_are_sealed_and_the_rest_can_be_sealed_again() -> None:
    store = open_disk()
    generation = store.begin("crawl")
    old = [store.new_id() for _ in range(3 * journal.Journal.batch)]
    new = [store.new_id() for _ in range(3 * journal.Journal.batch)]
    for before, after in zip(old, new, strict=True):
        store.add(page(before, str(before)))
        store.add(page(after, str(before)), generation=generation, replaces=before)
    assert store.pages == records(store) == 6 * journal.Journal.batch
    fail_at(2)
    with pytest.raises(StoreError):
        store.seal(generation, new)
    assert store.pages == records(store) == 5 * journal.Journal.batch
    assert store.end(generation) == 2 * journal.Journal.batch
    for before, after in zip(old, new, strict=True):
        unsealed = store.kv.get(layout.journal_key(generation, after)) is not None
        assert (store.record(before) is not None) == unsealed
    store.seal(generation, new)
    assert store.pages == records(store) == 3 * journal.Journal.batch
    assert store.end(generation) == 0


MENU = np.array([7, 70, 16_000], np.uint32)
SITE = "river.example"


def note(store: PageStore, pages: int) -> None:
    for _ in range(pages):
        store.note(MENU, SITE)


def stood(store: PageStore) -> list[int]:
    return [int(count) for count in store.on_site(SITE).stood_on(MENU)]


def test_counts_whose_periodic_write_fails_are_written_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boilerplate, "_COUNTS_EVERY", 10)
    store = open_disk()
    note(store, 9)
    fail_at(1)
    with pytest.raises(StoreError):
        note(store, 1)
    for _ in range(10):  # sentences of another block
        store.note(np.array([130], np.uint32), SITE)
    assert DISKS["disk"].writes == 2
    # It is not closed, as after a kill.
    assert stood(open_disk()) == [10, 10, 10]


def test_a_close_that_fails_leaves_the_counts_that_were_written_before() -> None:
    store = open_disk()
    note(store, 4)
    store.add(page(1, "a"))
    store.close()
    store = open_disk()
    note(store, 4)
    store.add(page(2, "b"))
    fail_at(1)
    with pytest.raises(StoreError):
        store.close()
    store.close()  # it is closed all the same
    store = open_disk()
    assert stood(store) == [4, 4, 4]
    assert store.pages == records(store) == 2


def _left_unsealed() -> None:
    """Leave a cleanly closed state with two pages for good and more unsealed ones than a batch holds."""
    store = open_disk()
    store.add(page(1, "a"))
    store.add(page(2, "b"))
    generation = store.begin("a crawl whose feed was not stored")
    version = 1
    for id in range(10, 10 + journal.Journal.batch + 50):
        if id % 50:
            store.add(page(id, str(id)), generation=generation)
        else:
            store.add(page(id, "a"), generation=generation, replaces=version)
            version = id
    store.close()


@pytest.mark.parametrize("write", [1, 2, 3])
def test_an_opening_that_fails_midway_is_made_good_by_the_next(write: int) -> None:
    _left_unsealed()
    fail_at(write)
    with pytest.raises(StoreError):
        open_disk()
    fail_at(0)
    store = open_disk()
    assert store.pages == records(store) == 2
    assert not list(store.kv.scan(b"j"))
    assert not list(store.kv.scan(b"g"))
    assert store.find("https://news.example.cn/a") == page(1, "a")
    assert store.postings(1, 9999) == [2, 1]
    assert store.rolled_back.crawls == ("a crawl whose feed was not stored",)
