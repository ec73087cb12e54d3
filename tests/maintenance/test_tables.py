"""The small tables of a state: bounded, and checked like all rows."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import StoreDamaged
from scrapy_neardup.inspect.pages import drops_of
from scrapy_neardup.judge.lists import Drop, ManualKind, ManualVerdict, manual_verdicts, write_manual_verdicts
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.maintenance.copying import repair
from scrapy_neardup.maintenance.tables import CRAWLS, SITES, Crawl, SiteDrops, Table, add_site_drops, most_dropped
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.state.layout import crawl_key, drop_key, judgement_key, site_key
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.urls import parse_url
from tests.build import FILE_ENGINES

#: A table, two values in the order of their keys, and rows that are none of its values.
TABLES: dict[str, tuple[Table[Any], tuple[Any, Any], list[tuple[bytes, bytes]]]] = {
    "crawl": (
        CRAWLS,
        (Crawl(5, "news"), Crawl(7, "大河 \ud800", 9, {"unique": 3, "time/store": 0.25})),
        [
            (crawl_key(1), b"{"),
            (crawl_key(1), b'{"who": "a", "ended": "x", "counts": {}}'),
            (crawl_key(1), b'{"who": "a", "ended": 1, "counts": 3}'),
            (crawl_key(1) + b"\0", b'{"who": "a", "ended": 1, "counts": {}}'),
        ],
    ),
    "site": (
        SITES,
        (SiteDrops("mp.weixin.qq.com BIZ \ud800", 40, 20, 5, 9), SiteDrops("a.example", 60)),
        [
            (site_key("b"), b"{"),
            (site_key("b"), b'["b", 1, "x", 0, 0]'),
            (site_key("b"), b'["b", 1, 0, 0]'),
            (site_key("b"), b'{"b": 1}'),
            (site_key("b") + b"\0", b'["b", 1, 0, 0, 0]'),
            (site_key("b"), b'["c", 1, 0, 0, 0]'),
        ],
    ),
}
DROP = Drop(6, 10, 2**64 - 1, 3, 1.0, "")
JUDGED = ManualVerdict("http://例子.example/\ud800", ManualKind.KEEP, "", 7)
#: Rows that are none of their kind; the key None is that of the page http://a.example/.
BROKEN: list[tuple[str, bytes | None, bytes]] = [
    *((name, *row) for name, (_, _, rows) in TABLES.items() for row in rows),
    ("drop", drop_key(5, 9), DROP.row()[1][:7]),
    ("drop", drop_key(5, 9), DROP.row()[1] + b"er"),
    ("drop", drop_key(5, 9), DROP.row()[1] + b"\xff"),
    ("drop", drop_key(5, 9) + b"\0", DROP.row()[1]),
    ("judgement", None, b"["),
    ("judgement", None, b'["http://a.example/", "burn", "", 1]'),
    ("judgement", None, b'["http://a.example/", "keep", ""]'),
    ("judgement", None, b'["http://else.example/", "keep", "", 1]'),
    ("judgement", b"n", b'["http://a.example/", "keep", "", 1]'),
]


@pytest.fixture
def store() -> PageStore:
    return open_store("memory:", {})


def write_whole(store: PageStore, name: str) -> tuple[Any, ...]:
    """Write rows of this kind that are as they should be; returns their values."""
    if name == "drop":
        store.write(Changes(dict([DROP.row()])))
        return (DROP,)
    if name == "judgement":
        write_manual_verdicts(store, JUDGED)
        return (JUDGED,)
    table, values, _ = TABLES[name]
    table.write(store, *values)
    table.write(store, values[0])
    return values


def read_all(store: PageStore, name: str) -> list[Any]:
    if name == "drop":
        return list(drops_of(store))
    return list(manual_verdicts(store) if name == "judgement" else TABLES[name][0].read(store))


@pytest.mark.parametrize(("name", "key", "value"), BROKEN)
def test_a_broken_row_is_not_in_a_repaired_copy(tmp_path: Path, name: str, key: bytes | None, value: bytes) -> None:
    urls = [f"sqlite://{tmp_path}/{place}" for place in ("state", "mended")]
    store = open_store(urls[0], {})
    whole = write_whole(store, name)
    store.write(Changes({key or judgement_key("http://a.example/", store.hashes): value}))
    with pytest.raises(StoreDamaged):
        read_all(store, name)
    assert dict(check(store).counts) == {f"broken {name}": 1}
    close_store(store)
    source, target = (parse_url(url)[1] for url in urls)
    repair((FILE_ENGINES["sqlite"], source), (FILE_ENGINES["sqlite"], target))
    mended = open_store(urls[1], {})
    found = read_all(mended, name)
    assert (len(found), all(value in found for value in whole)) == (len(whole), True)
    close_store(mended)


def test_above_the_limit_the_oldest_rows_go(store: PageStore) -> None:
    crawls = dataclasses.replace(CRAWLS, limit=3)
    for generation in range(1, 7):
        crawls.write(store, Crawl(generation, "news"))
        crawls.write(store, Crawl(generation, "news", 5))
    assert [(crawl.generation, crawl.ended) for crawl in crawls.read(store)] == [(4, 5), (5, 5), (6, 5)]
    sites = dataclasses.replace(SITES, limit=3)
    sites.write(store, *(SiteDrops(f"{pages}.example", pages, crawled=pages // 5) for pages in range(10)))
    assert {one.site for one in sites.read(store)} == {"7.example", "8.example", "9.example"}
    sites.write(store, SiteDrops("7.example", 1, crawled=9), SiteDrops("new.example", 1, crawled=9))
    assert {one.site for one in sites.read(store)} == {"7.example", "9.example", "new.example"}


def test_counts_of_a_site_are_summed_over_crawls_and_describe_the_last_pages(store: PageStore) -> None:
    a, b = SiteDrops("a.example", 60, 0), SiteDrops("b.example", 40, 20, 5)
    add_site_drops(store, [a, b], 100)
    add_site_drops(store, [SiteDrops(a.site, 20, 15, 2)], 200)
    add_site_drops(store, [], 300)
    summed = SiteDrops(a.site, 80, 15, 2, 200)
    assert sorted(SITES.read(store), key=lambda one: one.site) == [summed, dataclasses.replace(b, crawled=100)]
    assert [one.site for one in most_dropped(store, 5)] == [b.site, a.site]
    assert most_dropped(store, 0) == []
    add_site_drops(store, [SiteDrops("c.example", 100_000, 0)], 100)
    add_site_drops(store, [SiteDrops("c.example", 1000, 1000, 500)], 200)
    assert SiteDrops("c.example", 1000, 500, 250, 200) in list(SITES.read(store))
