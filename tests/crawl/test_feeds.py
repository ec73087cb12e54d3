"""Crawls with Scrapy's own feeds, one after the other: what counts, what comes again, and what the log says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.state.journal import LIST
from tests.build import article_url
from tests.crawl.engineless import article, crawl, crawl_items
from tests.crawl.parts import Log, Patch

NINE = [article(family) for family in range(9)]
THREE = NINE[:3]
URLS = [article_url(family) for family in range(3)]


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: Patch) -> dict[str, str]:
    monkeypatch.chdir(tmp_path)  # below which a broken feed writes
    return {"NEARDUP_STORE": f"sqlite://{tmp_path}/state"}


def feed(path: Path, **options: Any) -> dict[str, Any]:
    return {"FEEDS": {f"file://{path}": {"format": "jsonlines", **options}}}


def delivered(path: Path) -> list[str]:
    return [json.loads(line)["url"] for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def test_where_no_feed_can_be_opened_nothing_counts(tmp_path: Path, store: dict[str, str], caplog: Log) -> None:
    (tmp_path / "file").touch()
    first = crawl_items(*THREE, **feed(tmp_path / "file" / "out.jsonl"), **store)
    assert (first.count("unique"), first.count("rolled_back")) == (3, 3)
    assert caplog.text.count("could not write an item ") == 3
    assert "Error caught on signal handler" not in caplog.text
    assert crawl_items(*THREE, **store).items == THREE


@pytest.mark.parametrize("at_once", [True, False], ids=["when it is written to", "when it is closed"])
def test_what_a_post_processing_plugin_lost_is_not_counted(
    tmp_path: Path, store: dict[str, str], at_once: bool
) -> None:
    plugin = {"postprocessing": ["tests.crawl.project.BreaksOff"], "at_once": at_once}
    first = crawl_items(*THREE, **feed(tmp_path / "out.jsonl", **plugin), **store)
    assert first.count("rolled_back" if at_once else "unsealed") == 3
    (tmp_path / "half").write_bytes(b"\x1f\x8b")
    gzip = {"postprocessing": ["scrapy.extensions.postprocessing.GzipPlugin"]}
    second = crawl_items(*THREE, **feed(tmp_path / "half", **gzip), **store)
    assert second.items == THREE
    assert second.count("taken_back") == (0 if at_once else 3)
    assert (tmp_path / "half.broken-1").exists() is not at_once, "other feeds may break off too"


def test_the_pages_of_a_feed_that_fails_come_again_and_the_log_names_the_feed(
    tmp_path: Path, store: dict[str, str], caplog: Log
) -> None:
    def feeds(scheme: str) -> dict[str, Any]:
        two = (f"file://{tmp_path}/good.jsonl", f"{scheme}://{tmp_path}/other.jsonl")
        broken = {"broken": "tests.crawl.project.UnstorableFeed"}
        return {"FEEDS": {uri: {"format": "jsonlines"} for uri in two}, "FEED_STORAGES": broken, **store}

    (tmp_path / "job").mkdir()
    assert crawl(THREE, **feeds("broken"), JOBDIR=str(tmp_path / "job"))["neardup/unsealed"] == 3
    bad = f"broken://{tmp_path}/other.jsonl"
    assert f"3 pages stay unsealed, because a feed that holds them was not stored: {bad}. The next crawl" in caplog.text
    assert f"and lists them in {tmp_path / 'job' / LIST}, because with this JOBDIR" in caplog.text
    assert "Other feeds that hold them will then have them twice" in caplog.text
    assert crawl(THREE, **feeds("file"))["neardup/taken_back"] == 3
    assert delivered(tmp_path / "other.jsonl") == URLS, "nothing is missing"
    assert delivered(tmp_path / "good.jsonl") == URLS * 2, "as the log says"
    assert crawl(THREE, **feeds("file"))["neardup/unchanged"] == 3


def test_an_item_that_one_feed_cannot_write_is_in_the_others_and_comes_again(
    tmp_path: Path, store: dict[str, str], caplog: Log
) -> None:
    good = {f"file://{tmp_path}/good.csv": {"format": "csv", "fields": ["url"]}}
    settings = {"FEEDS": {**feed(tmp_path / "picky.jsonl")["FEEDS"], **good}, **store}
    assert crawl([*THREE[:2], {**THREE[2], "odd": object()}], **settings)["neardup/rolled_back"] == 1
    assert f"The feed {tmp_path}/picky.jsonl could not write an item (TypeError: " in caplog.text
    assert "other feeds then have it twice" in caplog.text
    crawl(THREE, **settings)
    assert sorted(delivered(tmp_path / "picky.jsonl")) == URLS
    assert (tmp_path / "good.csv").read_text("utf-8").count(URLS[2]) == 2


def test_known_pages_are_in_no_feed_that_is_overwritten_and_the_log_says_so(
    tmp_path: Path, store: dict[str, str], caplog: Log
) -> None:
    warning, out = "This crawl overwrites the feed ", tmp_path / "out.jsonl"
    settings: dict[str, Any] = {**store, **feed(out, overwrite=True)}
    crawl(NINE[:8], **settings)
    assert warning not in caplog.text
    second = crawl(NINE, **settings)
    assert delivered(out) == [NINE[8]["url"]]
    assert caplog.text.count(f"{warning}{out}. The state knows 8 pages") == 1
    assert second["neardup/overwritten"] == 1
    for silent in ({"NEARDUP_OVERWRITTEN": "known"}, {"NEARDUP_DRY_RUN": True}, {"NEARDUP_STORE": "memory:"}):
        caplog.clear()
        crawl(NINE, **{**settings, **silent})
        assert warning not in caplog.text, silent
