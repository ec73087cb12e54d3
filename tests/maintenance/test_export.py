"""A copy of a state is the same state; and what a merge refuses."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from scrapy_neardup.errors import StoreDamaged
from scrapy_neardup.judge.lists import Drop, ManualKind, ManualVerdict, manual_verdicts, write_manual_verdicts
from scrapy_neardup.judge.recipes import decide
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.sqlite import SQLite
from scrapy_neardup.maintenance import copying
from scrapy_neardup.maintenance.copying import copy_state, export
from scrapy_neardup.maintenance.merge import merge, take_verdicts
from scrapy_neardup.maintenance.sources import PageEntry
from scrapy_neardup.maintenance.tables import CRAWLS, SITES, Crawl, SiteDrops
from scrapy_neardup.state.layout import evidence_key, record_key
from scrapy_neardup.state.opening import memory_state, open_at
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Evidence, Record
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
