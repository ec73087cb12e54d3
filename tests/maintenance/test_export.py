"""A copy of a state is the same state, small tables too; and what a merge refuses."""

from __future__ import annotations

import dataclasses
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import StoreDamaged
from scrapy_neardup.inspect.pages import drops_of
from scrapy_neardup.judge.lists import Drop, ManualKind, ManualVerdict, manual_verdicts, write_manual_verdicts
from scrapy_neardup.judge.recipes import decide
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.sqlite import SQLite
from scrapy_neardup.maintenance import copying, verify
from scrapy_neardup.maintenance.copying import copy_state, export, repair
from scrapy_neardup.maintenance.merge import merge, take_verdicts
from scrapy_neardup.maintenance.sources import PageEntry
from scrapy_neardup.maintenance.tables import CRAWLS, SITES, Crawl, SiteDrops, Table, add_site_drops, most_dropped
from scrapy_neardup.state.layout import crawl_key, drop_key, evidence_key, judgement_key, record_key, site_key
from scrapy_neardup.state.opening import close_store, memory_state, open_at, open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Evidence, Record
from scrapy_neardup.state.urls import parse_url
from tests.build import FILE_ENGINES, KINDS
from tests.maintenance.states import RECIPE, Killed, check, killed_before, rows, state

ORIGINAL = Record(0x1A, "https://a.example/渡口", 0x1A, 1.0, (0, 2**40 - 1), b"\x00\xff sketch")
PAGES = [
    PageEntry(ORIGINAL, 1714521600),
    PageEntry(
        Record(0x1B, "https://b.example/", 0x1A, 52428 / 65535, (7,), b"other"),
        1714521601,
        Evidence("near", 0, 0.8, 0.9),
    ),
    PageEntry(Record(0x1C, "https://c.example/", 0x1A, 1.0), 0, Evidence()),
    PageEntry(Record(0x1D, "https://d.example/", 0x1D, 0.0, (), b"\x01" * 8), 2**32 - 1),
    PageEntry(Record(0x1E, "https://e.example/", 0x1E), 5, Evidence("excerpt", 0x1A, 0.2, 0.95, 8, "渡轮", ("开",))),
]
KEEP = ManualVerdict("http://例子.example/\ud800", ManualKind.KEEP, "", 5)
COPIED = ManualVerdict("http://b.example/", ManualKind.COPY, "https://a.example/渡口", 4)


def whole_state() -> PageStore:
    """A state with rows of every kind."""
    store = state(PAGES, notes=3)
    write_manual_verdicts(store, KEEP, COPIED)
    CRAWLS.write(store, Crawl(7, "news", 9, {"unique": 3}))
    SITES.write(store, SiteDrops("a.example", 60, 3))
    decide(store, {"base": 0.6})
    store.write(Changes(dict([Drop(6, 10, 0x1C, 0x1A, 1.0, "near").row()])))
    return store


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_has_every_row_and_the_secret(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "leveldb":
        pytest.importorskip("plyvel")
    store, place, synced = whole_state(), str(tmp_path / "copy"), []
    monkeypatch.setattr(copying, "sync_directory", lambda path: synced.append((path, Path(place).exists())))
    assert export(store, (FILE_ENGINES[kind], place)) == len(PAGES)
    assert synced == [(tmp_path, True)], "its name outlives a loss of power"
    assert FILE_ENGINES[kind].witness_of(place).exists(), "it comes along"
    with closing(open_at(FILE_ENGINES[kind], place, RECIPE)) as copy:
        assert rows(copy) == rows(store)
        assert (copy.secret, copy.recipe) == (store.secret, store.recipe)
        check(copy)
        united = memory_state(RECIPE)
        assert merge(copy, united).added == len(PAGES)
        merged = {key: value for key, value in rows(store).items() if key[:1] not in b"cdh"}
        assert rows(united) == merged
        assert set(manual_verdicts(united)) == {COPIED, KEEP}


def test_of_two_pages_of_a_url_the_newer_one_is_copied_whichever_comes_first() -> None:
    versions = [PageEntry(Record(id, "https://a.example/", id, 1.0, (id,), b"sketch"), id) for id in (1, 2)]
    for order in (versions, versions[::-1]):
        new = memory_state(RECIPE)
        assert copy_state(state([]), order, new)["replaced"] == 1
        assert [record.id for record in new.records()] == [2]
        check(new)


@pytest.mark.parametrize("key", [record_key(0x1A), evidence_key(0x1B), b"c" + bytes(8), b"n" + bytes(8)])
def test_nothing_is_made_of_a_damaged_state(tmp_path: Path, key: bytes) -> None:
    store = state(PAGES)
    store.kv.write(Changes({key: b"noise"}), sync=True)
    with pytest.raises(StoreDamaged, match=r"is damaged: .*check --repair"):
        export(store, (SQLite, str(tmp_path / "copy")))
    assert not list(tmp_path.iterdir())


def test_a_merge_into_a_new_state_that_is_killed_leaves_no_page(tmp_path: Path) -> None:
    """Before each of its writes: the generation, the pages, the counts, their seal, the end of the generation."""
    source = state(PAGES, notes=1)
    for writes in range(len(PAGES) + 4):
        store = open_at(SQLite, str(tmp_path / f"state {writes}"), source.recipe)
        with killed_before(store, writes), pytest.raises(Killed):
            merge(source, store)
        store.kv.close()
        store = open_at(SQLite, store.location, source.recipe)
        sealed = writes > len(PAGES) + 2
        assert store.pages == (len(PAGES) if sealed else 0)
        assert store.rolled_back.pages == (0 if sealed else min(len(PAGES), max(0, writes - 1)))
        check(store)
        store.close()
    with killed_before(whole := memory_state(RECIPE), len(PAGES) + 4):
        merge(source, whole)  # there is no further write


def test_of_two_manual_verdicts_the_newer_one_stays_whichever_state_it_is_in() -> None:
    older, newer = (ManualVerdict("a", ManualKind.KEEP, "", 4), ManualVerdict("a", ManualKind.COPY, "x", 5))
    for here, there, taken in ((older, newer, 1), (newer, older, 0)):
        store = memory_state({})
        write_manual_verdicts(store, here)
        assert take_verdicts([there, KEEP], store) == (taken + 1, 1)
        assert {one.url: one for one in manual_verdicts(store)} == {newer.url: newer, KEEP.url: KEEP}
        assert take_verdicts([older, newer, KEEP], store)[0] == 0, "the same once more changes nothing"


# The small tables of a state: bounded, and checked like all rows


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
    assert dict(verify.check(store).counts) == {f"broken {name}": 1}
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
