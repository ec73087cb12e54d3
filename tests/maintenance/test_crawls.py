"""What a state remembers of crawls: the last ones, and none of it is taken on trust."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_neardup.errors import StoreDamaged
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.sqlite import SQLite
from scrapy_neardup.maintenance.repair import repair
from scrapy_neardup.maintenance.tables import Crawl, crawls, remember_crawl
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.state.layout import crawl_key
from scrapy_neardup.state.opening import memory_state, open_at
from scrapy_neardup.state.pages import PageStore


@pytest.fixture
def store() -> PageStore:
    return memory_state({})


def test_a_crawl_is_there_from_its_beginning_and_has_counts_at_its_end(store: PageStore) -> None:
    running, ended = Crawl(5, "news"), Crawl(7, "大河 \ud800", 9, {"unique": 3, "time/store": 0.25})
    remember_crawl(store, running)
    remember_crawl(store, Crawl(7, "大河 \ud800"))
    remember_crawl(store, ended)
    assert list(crawls(store)) == [running, ended]
    assert Crawl(1_500_000_000, "x").begun == 1.5


def test_of_too_many_crawls_the_oldest_are_not_remembered(store: PageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_neardup.maintenance.tables._CRAWLS", 3)
    for generation in range(1, 7):
        remember_crawl(store, Crawl(generation, "news"))
        remember_crawl(store, Crawl(generation, "news", 5))
    assert [(crawl.generation, crawl.ended) for crawl in crawls(store)] == [(4, 5), (5, 5), (6, 5)]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (crawl_key(1), b"{"),
        (crawl_key(1), b'{"who": "a", "ended": "x", "counts": {}}'),
        (crawl_key(1), b'{"who": "a", "ended": 1, "counts": 3}'),
        (crawl_key(1) + b"\0", b'{"who": "a", "ended": 1, "counts": {}}'),
    ],
    ids=["no JSON", "no time", "no counts", "another key"],
)
def test_a_row_that_is_none_of_a_crawl_is_told_of_and_left_behind_by_repair(
    tmp_path: Path, key: bytes, value: bytes
) -> None:
    store = open_at(SQLite, str(tmp_path / "state"), {})
    remember_crawl(store, Crawl(8, "whole"))
    store.write(Changes({key: value}))
    with pytest.raises(StoreDamaged, match=r"row of a crawl|no key of a crawl"):
        list(crawls(store))
    assert dict(check(store).counts) == {"broken crawl": 1}
    store.close()
    repair((SQLite, str(tmp_path / "state")), (SQLite, str(tmp_path / "mended")))
    mended = open_at(SQLite, str(tmp_path / "mended"), {})
    assert [crawl.who for crawl in crawls(mended)] == ["whole"]
    mended.close()
