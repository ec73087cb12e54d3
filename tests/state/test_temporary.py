"""A state that ends with whoever opened it: in memory, on disk what is too much, and gone afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_neardup.kv.options import DEFAULT
from scrapy_neardup.state import urls
from scrapy_neardup.state.opening import close_store, open_temporary
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import Secret
from scrapy_neardup.state.record import Record

RECIPE = {"method": "simhash"}


def opened(folder: Path) -> PageStore:
    folder.mkdir()
    return open_temporary(folder, RECIPE, Secret(bytes(range(32))), DEFAULT)


def file(store: PageStore, count: int) -> list[Record]:
    """File so many pages, each under a key of its own and one that all have."""
    records = []
    for number in range(count):
        id = store.new_id()
        records.append(Record(id, f"http://river.example/{number}", id, 1.0, (number + 1, 2**39), b"sketch"))
        store.add(records[-1], generation=1)
    return records


def test_a_few_pages_touch_no_disk(tmp_path: Path) -> None:
    pytest.importorskip("plyvel")
    store = opened(tmp_path / "here")
    records = file(store, 50)
    assert list((tmp_path / "here").iterdir()) == []
    assert [store.find(one.url) for one in records] == records
    close_store(store)
    close_store(store)
    assert list((tmp_path / "here").iterdir()) == []


def test_without_plyvel_it_is_one_of_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(urls, "find_spec", lambda name: None)
    store = opened(tmp_path / "here")
    records = file(store, 5)
    assert [store.find(one.url) for one in records] == records
    assert store.scheme == "sqlite"
    close_store(store)
