"""Commands on a state in use by a crawl, or written by other versions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from scrapy_neardup.cli import contents
from scrapy_neardup.errors import NearDupError, StoreError, StoreLocked, StoreMismatch
from scrapy_neardup.judge.recipes import decisions_of
from scrapy_neardup.kv import lock as kv_lock
from scrapy_neardup.maintenance import copying
from scrapy_neardup.maintenance.scan import statistics
from scrapy_neardup.state.opening import close_store, open_at, open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Keep, Record
from scrapy_neardup.state.urls import STORES
from tests.build import (
    BAKERY,
    BREAD,
    EDITED,
    KINDS,
    PAGES,
    PEAR,
    join_text,
    judge_pages,
    make_state,
    open_state,
    read_records,
    set_extractor,
    state_url,
)
from tests.cli import Invoke, run, run_process

NEW, NEW_TEXT = (
    "https://new.example/1",
    join_text("新开的渡口在周一迎来了第一批乘客", "船长说今后每天有六个班次往返两岸", "票价和从前一样"),
)


@pytest.fixture(params=KINDS)
def state(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return make_state(request.param, tmp_path, keep=Keep.TEXTS)


@pytest.fixture
def at_work(state: str) -> Iterator[PageStore]:
    """The state, held by a crawl that has added one page, and whose feed is not stored yet."""
    store = open_store(state, None)
    judge_pages(store, [(NEW, "渡口", NEW_TEXT)], sealed=False)
    yield store
    close_store(store)


def test_a_state_in_use_is_read_as_of_a_time(state: str, at_work: PageStore, invoke: Invoke) -> None:
    done = invoke("stats", "--store", state, "--json")
    assert (done.data["pages"], done.data["unsealed"], done.data["in_use"]) == (9, 1, True)
    said = "morning is using it. Unsealed pages: 1. They become permanent when their feeds are stored.\n"
    assert done.err == f"As of {done.data['as_of']}, {said}"
    assert re.search(r"^unsealed +1$", invoke("stats", "--store", state).out, re.MULTILINE)
    found = invoke("explain", NEW, PEAR, "--store", state, "--json").data
    assert [page["sealed"] for page in found["pages"]] == [False, True]


def test_unsealed_pages_of_a_killed_crawl_are_named_and_stay(state: str, invoke: Invoke) -> None:
    with open_state(state) as store:
        judge_pages(store, [(NEW, "渡口", NEW_TEXT)], sealed=False)
    for _ in range(2):
        done = invoke("stats", "--store", state, "--json")
        assert (done.data["pages"], done.data["unsealed"], done.data["in_use"]) == (9, 1, False)
        assert "nobody is using it. Unsealed pages: 1. Crawl morning was killed" in done.err


def test_an_export_holds_sealed_pages_only(state: str, at_work: PageStore, tmp_path: Path, invoke: Invoke) -> None:
    copies = tmp_path / "morning", tmp_path / "evening"
    said = invoke("export", "--store", state, "-o", copies[0]).out
    assert said == f"{copies[0]}: 8 pages; 1 unsealed, left out\n"
    at_work.journal.seal(*_crawl(at_work))
    assert "9 pages" in (said := invoke("export", "--store", state, "-o", copies[1]).out)
    assert "left out" not in said
    found = [set(read_records(state_url("sqlite", copy))) for copy in copies]
    assert found == [{page[0] for page in PAGES}, {NEW, *(page[0] for page in PAGES)}]


def _crawl(store: PageStore) -> tuple[int, list[int]]:
    """Its generation, and its unsealed pages."""
    (key, _) = next(store.rows(b"g"))
    generation = int.from_bytes(key[1:], "big")
    return generation, list(store.journal.unsealed(generation))


def test_commands_that_only_read_need_no_lock(
    state: str, at_work: PageStore, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("page.html").write_text(f"<html><article><p>{NEW_TEXT * 3}</p></article></html>", encoding="utf-8")
    for line in ("dropped", "judgements", "report", f"compare {PEAR} {EDITED}", "extract page.html", "export -o x"):
        done = invoke(*line.split(), "--store", state)
        assert (done.code, "morning is using it" in done.err) == (0, True), line


@pytest.mark.slow
@pytest.mark.parametrize("state", ["leveldb"], indirect=True)
def test_another_process_may_read_a_state_in_use_and_not_write(state: str, at_work: PageStore, tmp_path: Path) -> None:
    done = run_process("stats", "--json", "--store", state, cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["pages"]) == (0, 9)
    assert "morning is using it" in done.stderr
    refused = run_process("forget", PEAR, "--store", state, cwd=tmp_path)
    assert refused.returncode == 2
    assert "Another process is using the state" in refused.stderr
    assert judge_pages(at_work, PAGES[:1]) == ["unchanged"]


def test_looking_keeps_no_crawl_from_beginning(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def while_looking(store: PageStore, **options: Any) -> Any:
        close_store(open_store(state, None))
        return statistics(store, **options)

    monkeypatch.setattr(contents, "statistics", while_looking)
    assert run("stats", "--store", state) == 0
    held = open_store(state, None)
    try:
        with pytest.raises(StoreLocked):
            open_at(STORES[held.scheme], held.location, None)
        assert run("forget", PEAR, "--store", state, "--dry-run") == 0  # of this process, which holds it
    finally:
        close_store(held)


def test_without_room_for_a_copy_to_read_from_that_is_said(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kv_lock, "mkdtemp", Mock(side_effect=FileNotFoundError(2, "No usable directory")))
    with pytest.raises(StoreError, match=r"cannot be copied for reading: .* Make room"):
        run("stats", "--store", state)


OLD = "visible prose and trafilatura 1.9 fast"


@pytest.fixture
def older(tmp_path: Path) -> str:
    url = make_state("sqlite", tmp_path)
    set_extractor(url, OLD)
    return url


def reader_of(url: str) -> str:
    store = open_store(url, None)
    try:
        return str(store.recipe["extractor"])
    finally:
        close_store(store)


def test_compare_warns_and_leaves_the_state_as_it_is(older: str, invoke: Invoke) -> None:
    assert f"the extractor was {OLD} and is visible prose" in invoke("compare", PEAR, EDITED, "--store", older).err
    assert reader_of(older) == OLD


def test_dedup_continues_an_older_state_and_names_new_decisions(older: str, tmp_path: Path, invoke: Invoke) -> None:
    feed, out = tmp_path / "feed.jsonl", tmp_path / "out.jsonl"
    feed.write_text(json.dumps({"url": BREAD, "title": "Sisters buy the bakery", "text": join_text(*BAKERY)}) + "\n")
    given = (str(feed), "-o", out, "--store", older, "--id", "")
    assert "Both read the test samples alike" in invoke("dedup", *given).err
    assert reader_of(older) != OLD
    said = invoke("dedup", *given, NEARDUP_PARAMETERS={"base": 0.7}).err
    assert "state.sqlite now decides by base = 0.7; before by 0.52." in said
    store = open_store(older, None)
    assert decisions_of(store)["NEARDUP_MIN_LETTERS"] == 40
    close_store(store)


def test_a_page_that_is_known_by_its_url_cannot_be_compared(older: str) -> None:
    settings = {"NEARDUP_METHOD": "minhash"}
    assert run("migrate", "--store", older, **settings) == 0
    with pytest.raises(NearDupError, match="neither a fingerprint"):
        run("compare", PEAR, BREAD, "--store", older.replace("state.", "state-2."), **settings)


def test_a_migration_needs_and_keeps_a_shared_secret(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/shared.sqlite"
    feed, out = tmp_path / "feed.jsonl", tmp_path / "out.jsonl"
    feed.write_text(json.dumps({"url": BREAD, "title": "Sisters buy the bakery", "text": join_text(*BAKERY)}) + "\n")
    given = (str(feed), "-o", out, "--store", url, "--id", "")
    secret = {"NEARDUP_SECRET": "a secret that several states share"}
    assert run("dedup", *given, **secret, NEARDUP_KEEP="texts") == 0
    with pytest.raises(StoreMismatch, match="NEARDUP_SECRET"):
        run("migrate", "--store", url, NEARDUP_METHOD="nshash")
    assert run("migrate", "--store", url, NEARDUP_METHOD="nshash", **secret) == 0
    given = (*given[:4], f"sqlite://{tmp_path}/shared-2.sqlite", *given[5:])
    assert run("dedup", *given, NEARDUP_METHOD="nshash", **secret) == 0
    assert out.read_text() == ""


def test_a_copy_by_migrate_is_without_the_room_of_forgotten_pages(tmp_path: Path, invoke: Invoke) -> None:
    url, to = make_state("sqlite", tmp_path), f"sqlite://{tmp_path}/small.sqlite"
    with open_state(url) as store:
        ids = [store.new_id() for _ in range(300)]
        for id in ids:
            store.add(Record(id, f"https://many.example/{id}", id, keys=(id, id + 1), sketch=str(id).encode() * 40))
        store.forget(ids)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(copying, "copy_state", lambda *_: None)
        with pytest.raises(StoreError, match="Only 0 of 8 pages were converted"):
            run("migrate", "--store", url, "--to", to)
    assert not (tmp_path / "small.sqlite").exists()
    assert run("migrate", "--store", url, "--to", to) == 0
    assert read_records(to) == read_records(url)
    before, after = (invoke("stats", "--store", one, "--json").data for one in (url, to))
    assert after["bytes"] < before["bytes"] / 2
    assert all(after[name] == before[name] for name in ("kinds", "dropped_sites", "pages"))
