"""A page counts for good when every feed that took its item has written and stored it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.build import article_url
from tests.crawl.engineless import article, crawl_items
from tests.crawl.engineless import crawl as crawl_here

THREE = [article(family) for family in range(3)]


def feed(path: Path, **options: Any) -> dict[str, Any]:
    return {f"file://{path}": {"format": "jsonlines", **options}}


def test_where_no_feed_can_be_opened_nothing_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    store = {"NEARDUP_STORE": f"sqlite://{tmp_path}/state"}
    first = crawl_items(*THREE, FEEDS=feed(tmp_path / "file" / "out.jsonl"), **store)
    assert (first.count("unique"), first.count("rolled_back")) == (3, 3)
    assert caplog.text.count("could not write an item ") == 3
    assert "Error caught on signal handler" not in caplog.text
    second = crawl_items(*THREE, **store)
    assert (second.items, second.count("unchanged")) == (THREE, 0)


@pytest.mark.parametrize("at_once", [True, False], ids=["when it is written to", "when it is closed"])
def test_what_a_post_processing_plugin_has_lost_does_not_count(tmp_path: Path, at_once: bool) -> None:
    plugin = {"postprocessing": ["tests.crawl.project.BreaksOff"], "at_once": at_once}
    store = {"NEARDUP_STORE": f"sqlite://{tmp_path}/state"}
    first = crawl_items(*THREE, FEEDS=feed(tmp_path / "out.jsonl", **plugin), **store)
    assert first.count("rolled_back" if at_once else "unsealed") == 3
    second = crawl_items(*THREE, **store)
    assert second.items == THREE
    assert second.count("taken_back") == (0 if at_once else 3)


def feeds(folder: Path, *, broken: bool) -> dict[str, Any]:
    scheme = "broken" if broken else "file"
    return {
        "FEEDS": {
            f"file://{folder}/good.jsonl": {"format": "jsonlines"},
            f"{scheme}://{folder}/other.jsonl": {"format": "jsonlines"},
        },
        "FEED_STORAGES": {"broken": "tests.crawl.project.UnstorableFeed"},
        "NEARDUP_STORE": f"sqlite://{folder}/state",
    }


def delivered(folder: Path, name: str) -> list[str]:
    path = folder / name
    return [json.loads(line)["url"] for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def test_the_pages_of_a_feed_that_fails_come_again_and_the_log_names_the_feed_that_has_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # below which the broken feed writes
    first = crawl_here(THREE, **feeds(tmp_path, broken=True))
    assert first["neardup/unsealed"] == 3
    bad = f"broken://{tmp_path}/other.jsonl"
    assert f"3 pages stay unsealed, because a feed that holds them was not stored: {bad}. The next crawl" in caplog.text
    assert "Other feeds that hold them will then have them twice" in caplog.text
    second = crawl_here(THREE, **feeds(tmp_path, broken=False))
    assert second["neardup/taken_back"] == 3
    urls = [article_url(family) for family in range(3)]
    assert delivered(tmp_path, "other.jsonl") == urls, "nothing is missing"
    assert delivered(tmp_path, "good.jsonl") == urls * 2, "as was said"
    assert crawl_here(THREE, **feeds(tmp_path, broken=False))["neardup/unchanged"] == 3


def test_an_item_that_one_feed_cannot_write_is_in_the_others_and_the_log_says_that_it_comes_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {
        "FEEDS": {
            f"file://{tmp_path}/picky.jsonl": {"format": "jsonlines"},
            f"file://{tmp_path}/good.csv": {"format": "csv", "fields": ["url"]},
        },
        "NEARDUP_STORE": f"sqlite://{tmp_path}/state",
    }
    stats = crawl_here([*THREE[:2], {**THREE[2], "odd": object()}], **settings)
    assert stats["neardup/rolled_back"] == 1
    assert f"The feed {tmp_path}/picky.jsonl could not write an item (TypeError: " in caplog.text
    assert "other feeds then have it twice" in caplog.text
    crawl_here(THREE, **settings)
    assert sorted(delivered(tmp_path, "picky.jsonl")) == [article_url(family) for family in range(3)]
    assert (tmp_path / "good.csv").read_text("utf-8").count(article_url(2)) == 2
