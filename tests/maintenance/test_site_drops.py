"""What a state remembers of the drops of each site: bounded, summed over crawls, and checked like all rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_neardup.errors import StoreDamaged
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.sqlite import SQLite
from scrapy_neardup.maintenance import tables as module
from scrapy_neardup.maintenance.repair import repair
from scrapy_neardup.maintenance.tables import SiteDrops, add_site_drops, most_dropped, site_drops
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.state.layout import site_key
from scrapy_neardup.state.opening import memory_state, open_at
from scrapy_neardup.state.pages import PageStore
from tests.state.test_contract import Place, lasting

__all__ = ["lasting"]

A, B = SiteDrops("a.example", 60, 0), SiteDrops("mp.weixin.qq.com BIZ \ud800", 40, 20, 5)


def known(store: PageStore) -> dict[str, SiteDrops]:
    return {one.site: one for one in site_drops(store)}


def test_every_store_sums_the_counts_of_crawls(lasting: Place) -> None:
    store = lasting.open()
    add_site_drops(store, [A, B], 100)
    add_site_drops(store, [SiteDrops(A.site, 20, 15, 2)], 200)
    add_site_drops(store, [], 300)
    assert known(store) == {
        A.site: SiteDrops(A.site, 80, 15, 2, 200),
        B.site: SiteDrops(B.site, 40, 20, 5, 100),
    }
    assert [one.site for one in most_dropped(store, 5)] == [B.site, A.site]
    assert most_dropped(store, 0) == []


@pytest.fixture
def store() -> PageStore:
    return memory_state({})


def test_many_pages_are_told_by_the_last_ones(store: PageStore) -> None:
    add_site_drops(store, [SiteDrops(A.site, 100_000, 0)], 100)
    add_site_drops(store, [SiteDrops(A.site, 1000, 1000, 500)], 200)
    assert known(store)[A.site] == SiteDrops(A.site, 1000, 500, 250, 200)


def test_of_too_many_sites_those_that_were_not_crawled_for_longest_go(
    store: PageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SITES", 3)
    for number in range(5):
        add_site_drops(store, [SiteDrops(f"{number}.example", 1)], 100 + number)
    assert known(store).keys() == {"2.example", "3.example", "4.example"}
    add_site_drops(store, [SiteDrops(f"{number}.example", number) for number in range(10)], 200)
    assert known(store).keys() == {"7.example", "8.example", "9.example"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (site_key("a"), b"{"),
        (site_key("a"), b'["a", 1, "x", 0, 0]'),
        (site_key("a"), b'{"a": 1}'),
        (site_key("a") + b"\0", b'["a", 1, 0, 0, 0]'),
        (site_key("b"), b'["a", 1, 0, 0, 0]'),
    ],
    ids=["no JSON", "no number", "no list", "longer key", "another site"],
)
def test_a_broken_row_is_reported_and_left_out_of_a_repaired_copy(tmp_path: Path, key: bytes, value: bytes) -> None:
    store = open_at(SQLite, str(tmp_path / "state"), {})
    add_site_drops(store, [B], 100)
    store.write(Changes({key: value}))
    with pytest.raises(StoreDamaged):
        list(site_drops(store))
    assert dict(check(store).counts) == {"broken site": 1}
    store.close()
    repair((SQLite, str(tmp_path / "state")), (SQLite, str(tmp_path / "mended")))
    mended = open_at(SQLite, str(tmp_path / "mended"), {})
    assert known(mended).keys() == {B.site}
    mended.close()
