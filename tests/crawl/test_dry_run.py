"""NEARDUP_DRY_RUN: the verdicts of a crawl on the state as it is. It changes neither the state nor an item."""

from __future__ import annotations

import logging
import random
from pathlib import Path
from typing import Any

import pytest
from scrapy.exceptions import DropItem
from scrapy.settings import BaseSettings

from scrapy_neardup.judge.recipes import state_recipe
from scrapy_neardup.methods import make_method
from scrapy_neardup.state.journal import LIST
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.urls import STORES
from tests.crawl.engineless import article, crawl
from tests.crawl.parts import Log

Item = dict[str, Any]


@pytest.fixture(params=[scheme for scheme, kind in STORES.items() if kind.is_persistent])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "leveldb":
        pytest.importorskip("plyvel")
    (tmp_path / "here").mkdir()
    return STORES[request.param].url(str(tmp_path.resolve() / "here" / "state"))


def run(items: list[Item], **settings: Any) -> tuple[dict[str, Any], list[Item]]:
    """The stats without times, and the items that came through."""
    came: list[Item] = []

    def later(item: Item) -> None:
        if "lost" in item["url"]:
            raise ValueError("could not be stored")
        if "unwanted" in item["url"]:
            raise DropItem("not wanted")
        came.append(item)

    stats = crawl(items, later, **settings)
    return {name: many for name, many in stats.items() if name.startswith("neardup/") and "/time/" not in name}, came


def verdicts(stats: dict[str, Any]) -> dict[str, Any]:
    return {name: many for name, many in stats.items() if not name.startswith(("neardup/state/", "neardup/dry_run/"))}


def files(folder: Path) -> dict[str, tuple[bytes, int]]:
    """All that lies there, with what is in it and when it was written."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns) for path in found}


def some(draw: random.Random, many: int) -> list[Item]:
    """Articles and copies of them, updates, pages that later pipelines lose, pages with too little text."""
    items = []
    for _ in range(many):
        item = article(draw.randrange(8), draw.randrange(4))
        kind = draw.random()
        if kind < 0.1:
            who = draw.choice(("本报", "编辑部"))
            item["text"] += f"更正：{who}补充了两段新的内容，并向读者致歉，详情请见后续报道。"
        elif kind < 0.2:
            item["url"] += draw.choice(("/lost", "/unwanted"))
        elif kind < 0.25:
            item["text"] = "太短。"
        items.append(item)
    return items


@pytest.mark.parametrize("drops", [True, False])
def test_nothing_changes_and_items_get_no_tag_unless_all_do(store: str, drops: bool, tmp_path: Path) -> None:
    known = [article(family) for family in range(4)]
    run(known, NEARDUP_STORE=store)
    before = files(tmp_path / "here")
    items = [*known[:2], article(2, 1), article(5), article(5, 1), article(6), article(7, 0, text="太短。")]
    settings = {"NEARDUP_STORE": store, "DROP_DUPLICATES": drops, "NEARDUP_POLICY": {"near": "tag"} if drops else {}}
    for _ in range(2):
        found, came = run(items, NEARDUP_DRY_RUN=True, **settings)
        assert [{name: item[name] for name in items[0]} for item in came] == items
        assert files(tmp_path / "here") == before
        assert (found["neardup/dry_run/dropped"], found["neardup/state/pages"]) == (2 if drops else 0, 4)
        tags = [item.get("neardup") and item["neardup"]["verdict"] for item in came]
        expected = ["unchanged", "unchanged", "duplicate", "unique", "duplicate", "unique", "unjudged"]
        assert tags == ([None] * 7 if drops else expected)
    real, passed = run(items, **settings)
    assert verdicts(real) == verdicts(found)
    assert len(items) - len(passed) == found["neardup/dry_run/dropped"]
    assert "neardup/dry_run/dropped" not in real


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 10))])
@pytest.mark.parametrize(
    ("store", "settings"),
    [
        ("sqlite", {}),
        ("leveldb", {"NEARDUP_COMMIT": "item"}),
        ("sqlite", {"NEARDUP_SECRET": "a secret that nobody guesses"}),
        ("leveldb", {"NEARDUP_POLICY": {"retitled": "tag", "near": "pass"}, "NEARDUP_KEEP": "texts"}),
        ("sqlite", {"NEARDUP_METHOD": "simhash"}),
        ("leveldb", {"has_feed": True}),
        ("sqlite", {"is_new": True}),
    ],
    ids=str,
    indirect=["store"],
)
def test_a_crawl_gives_what_the_dry_run_said(seed: int, settings: dict[str, Any], store: str, tmp_path: Path) -> None:
    draw, feed = random.Random(seed), tmp_path / "feed.jsonl"
    more = {"NEARDUP_STORE": store, **{name: value for name, value in settings.items() if name.isupper()}}
    if settings.get("has_feed"):  # a dry run writes feeds of the command line
        more["FEEDS"] = BaseSettings({f"file://{feed}": {"format": "jsonlines"}}, priority="cmdline")
    if not settings.get("is_new"):
        run(some(draw, 16), **more)
    items, before = some(draw, 24), files(tmp_path / "here")
    held = feed.read_bytes() if feed.exists() else None
    found, came = run([dict(one) for one in items], NEARDUP_DRY_RUN=True, **more)
    assert files(tmp_path / "here") == before
    if held is not None:
        feed.write_bytes(held)
    real, passed = run([dict(one) for one in items], **more)
    assert verdicts(real) == verdicts(found)
    assert found["neardup/duplicate"] > 1
    assert 0 < len(came) - len(passed) <= found["neardup/dry_run/dropped"]
    if held is not None:
        assert len(feed.read_bytes().splitlines()) == len(passed) + len(held.splitlines())


def test_a_state_of_another_crawl_is_taken_as_it_is(store: str, tmp_path: Path, caplog: Log) -> None:
    run([article(1)], NEARDUP_STORE=store)
    with_another = open_store(store, state_recipe(make_method("cascade", {}), None))
    try:
        generation = with_another.journal.begin("another")
        id = with_another.new_id()
        with_another.add(Record(id, "http://a.example/", id, 1.0, (1, 2, 3), b""), generation=generation)
        before = files(tmp_path / "here")
        with caplog.at_level(logging.INFO):
            found, _ = run([article(1, 1), article(2)], NEARDUP_STORE=store, NEARDUP_DRY_RUN=True)
        changed = {name for name, one in files(tmp_path / "here").items() if one[0] != before[name][0]}
        assert {Path(name).name.rpartition("-")[2] for name in changed} <= {"shm"}  # where SQLite's readers sign in
        assert (found["neardup/duplicate"], found["neardup/unique"], found["neardup/state/pages"]) == (1, 1, 2)
        assert found.get("neardup/taken_back", 0) == 0
        assert "a snapshot with 2 pages, which another crawl is using" in caplog.text
        assert list(with_another.journal.unsealed(generation)) == [id]
    finally:
        close_store(with_another)


def test_what_a_killed_crawl_left_is_out_as_in_a_crawl_and_the_list_of_a_job_is_left_alone(
    store: str, tmp_path: Path, caplog: Log
) -> None:
    run([article(1), article(2)], NEARDUP_STORE=store)
    kept = open_store(store, None)
    generation = kept.journal.begin("killed", str(tmp_path))
    first, second = kept.records()
    kept.add(Record(kept.new_id(), "http://a.example/", first.id, 1.0), generation=generation)
    newer = Record(kept.new_id(), second.url, second.id, 1.0, (), b"other")
    kept.add(newer, generation=generation, replaces=second.id)
    close_store(kept)
    (tmp_path / LIST).write_text("http://listed.example/\n")
    before, items = files(tmp_path), [article(1), article(2), article(2, 1)]
    with caplog.at_level(logging.INFO):
        found, _ = run(items, NEARDUP_STORE=store, NEARDUP_DRY_RUN=True, JOBDIR=str(tmp_path))
    assert files(tmp_path) == before
    assert (found["neardup/unchanged"], found["neardup/duplicate"], found["neardup/taken_back"]) == (2, 1, 2)
    assert "2 pages of a killed crawl are left out" in caplog.text
    real, _ = run(items, NEARDUP_STORE=store)
    assert verdicts(real) == verdicts(found)
