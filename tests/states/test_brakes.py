"""For what the safety brake is on is remembered: so much of it, and none of it is taken on trust."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from scrapy_neardup.errors import StoreDamaged
from scrapy_neardup.states.brakes import Braked, brakes, release, remember_brake, watch_again
from scrapy_neardup.states.check import check
from scrapy_neardup.states.check.repairing import repair
from scrapy_neardup.stores import MemoryStore, Store
from scrapy_neardup.stores.changes import Changes
from scrapy_neardup.stores.layout import brake_key
from scrapy_neardup.stores.sqlite import SQLiteStore

SITE, ORIGINAL = Braked(5, "a.example"), Braked(7, "a.example", 3, "http://b.example/\ud800")


@pytest.fixture
def store() -> Store:
    return MemoryStore("memory:", {})


def test_what_it_came_on_for_stays_until_it_is_released(store: Store) -> None:
    for braked in (SITE, ORIGINAL):
        remember_brake(store, braked)
    assert list(brakes(store)) == [SITE, ORIGINAL]
    released = replace(SITE, released=True)
    assert release(store, {"a.example", "c.example"}) == [released]
    assert release(store, {"a.example"}) == [], "it is not on any more"
    assert list(brakes(store)) == [released, ORIGINAL]
    assert watch_again(store, {"a.example", ORIGINAL.url}) == [released, ORIGINAL]
    assert watch_again(store, {"a.example"}) == list(brakes(store)) == []
    assert Braked(1_500_000_000, "x").since == 1.5


def test_what_comes_on_again_is_there_once(store: Store) -> None:
    remember_brake(store, SITE)
    remember_brake(store, ORIGINAL)
    again = Braked(9, "a.example")
    remember_brake(store, again)
    assert list(brakes(store)) == [ORIGINAL, again]


def test_of_too_many_the_oldest_are_not_remembered(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_neardup.states.brakes._MOST", 3)
    for id in range(1, 7):
        remember_brake(store, Braked(id, f"{id}.example"))
    assert [braked.id for braked in brakes(store)] == [4, 5, 6]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (brake_key(1), b"{"),
        (brake_key(1), b'{"site": "a", "original": "x", "url": "", "released": false}'),
        (brake_key(1), b"[]"),
        (brake_key(1) + b"\0", b'{"site": "a", "original": 0, "url": "", "released": false}'),
    ],
    ids=["no JSON", "no id", "no object", "another key"],
)
def test_a_row_that_is_none_is_told_of_and_left_out_of_a_mended_copy(tmp_path: Path, key: bytes, value: bytes) -> None:
    store = SQLiteStore(str(tmp_path / "state"), {})
    remember_brake(store, SITE)
    store.write(Changes({key: value}))
    with pytest.raises(StoreDamaged, match=r"brake is on for|no key of the safety brake"):
        list(brakes(store))
    assert dict(check(store).counts) == {"broken brake": 1}
    store.close()
    repair((SQLiteStore, str(tmp_path / "state")), (SQLiteStore, str(tmp_path / "mended")))
    mended = SQLiteStore(str(tmp_path / "mended"), {})
    assert list(brakes(mended)) == [SITE]
    mended.close()
