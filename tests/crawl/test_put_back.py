"""A page is dropped wrongly, found in the list of what was dropped, and put back: the whole story, by crawls."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scrapy.utils.test import get_crawler

from scrapy_neardup.crawl.extra_feeds import DroppedFeed
from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.settings import Config
from tests.cli import run as run_command
from tests.crawl.conftest import ADDONS, ONE_BY_ONE, Crawl, Result, Site
from tests.crawl.engineless import article, crawl_items
from tests.crawl.pages import html
from tests.crawl.test_two_runs import PLYVEL

SCHEMES = ["sqlite", *(["leveldb"] if PLYVEL else [])]
LOST = ["/near", "/same"]
PATHS = ["/port", "/tea", *LOST]


@pytest.fixture
def alike(site: Site) -> Site:
    """Two originals, and a copy of each."""
    site.content |= {
        "/port": html("port-zh"),
        "/tea": html("tea-zh"),
        "/near": html("port-zh", "本文由衡津港务通讯供稿，转载时略有增补，图片从略。"),
        "/same": html("tea-zh"),
    }
    return site


def listed(state: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """What the last crawl dropped."""
    capsys.readouterr()
    assert run_command("dropped", "--last", "--json", "--store", state) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def put_back(state: str, folder: Path) -> None:
    """All that the last crawl dropped, by a file."""
    assert run_command("dropped", "--last", "-o", folder / "dropped.csv", "--store", state) == 0
    assert run_command("keep", "--from", folder / "dropped.csv", "--store", state) == 0


def test_what_was_dropped_wrongly_is_listed_and_put_back_also_in_a_state_that_was_brought_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state, elsewhere = f"{SCHEMES[-1]}://{tmp_path}/state", f"{SCHEMES[0]}://{tmp_path}/elsewhere"
    port, tea, near = article(1), article(2), article(1, 1)
    lost = [near, {**tea, "url": "http://again.example/tea"}]
    pages = [port, tea, *lost]
    first, again = (crawl_items(*pages, NEARDUP_STORE=state) for _ in range(2))
    assert (first.count("duplicate"), again.count("duplicate"), again.items) == (2, 2, [])

    told = listed(state, capsys)
    assert [one["url"] for one in told] == [one["url"] for one in lost], "though the first crawl did so too"
    assert [one["kind"] for one in told] == ["near", "identical"]
    assert [one["original"] for one in told] == [port["url"], tea["url"]]
    assert {one["crawl"] for one in told} == {"articles"}
    assert all(one["title"] and one["when"] and one["similarity"] > 0.8 for one in told)

    put_back(state, tmp_path)
    assert run_command("export", "-o", tmp_path / "state.gz", "--store", state) == 0
    assert run_command("import", tmp_path / "state.gz", "--store", elsewhere) == 0
    for place in (state, elsewhere):
        third, fourth = (crawl_items(*pages, NEARDUP_STORE=place) for _ in range(2))
        assert third.items == lost, "exactly these"
        assert (third.count("by_hand"), third.count("unique")) == (2, 2)
        assert (fourth.items, fourth.count("unchanged")) == ([], 4)
        assert listed(place, capsys) == []

    edited = {**near, "text": near["text"] + "图片从略，文字照旧。"}
    new = {**edited, "url": "http://new.example/"}
    last = crawl_items(port, tea, edited, lost[1], new, NEARDUP_STORE=state)
    assert (last.items, last.count("updated")) == ([edited], 1)
    [found] = listed(state, capsys)
    assert (found["url"], found["original"]) == (new["url"], edited["url"]), "an original of its own"


def feed(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_feed_holds_dropped_items_with_their_verdicts(alike: Site, crawl: Crawl, tmp_path: Path) -> None:
    """Whatever the project says of its own feeds, and though these items take no tag; placeholders are filled in."""
    settings: dict[str, Any] = {
        "FEEDS": {str(tmp_path / "out.jsonl"): {"format": "jsonlines", "overwrite": True}},
        "FEED_EXPORT_FIELDS": ["title"],
        "kinds": ["untaggable"],
    }
    first, second = (crawl(PATHS, NEARDUP_DROPPED_FEED=f"{tmp_path}/%(name)s.jsonl", **settings) for _ in range(2))
    assert first.count("dropped_feed") == second.count("dropped_feed") == 2
    items = feed(tmp_path / "paths.jsonl")
    assert [item["url"] for item in items] == [alike.base + path for path in LOST * 2], (
        "it is appended to, as feeds are"
    )
    assert [item["neardup"]["kind"] for item in items] == ["near", "identical"] * 2
    assert [item["neardup"]["original"] for item in items[:2]] == [alike.base + path for path in PATHS[:2]]
    assert first.stats["feedexport/success_count/FileFeedStorage"] == 1, "that of the crawl's own feed"
    assert (first.count("unsealed"), second.count("unchanged"), second.items) == (0, 2, [])


BROKEN: dict[str, Any] = {
    "not stored": {"broken://{}/dropped.jsonl": {"format": "jsonlines"}},
    "no such placeholder": {"{}/%(nothing)s.jsonl": {"format": "jsonlines"}},
    "cannot be opened": {"/dev/null/dropped.jsonl": {"format": "jsonlines"}},
    "cannot be exported": {"{}/dropped.jsonl": {"format": "jsonlines", "encoding": "no-such-encoding"}},
}


def test_a_feed_that_fails_costs_no_article(alike: Site, run: Callable[..., list[Result]], tmp_path: Path) -> None:
    jobs = []
    for place, feeds in enumerate(BROKEN.values()):
        settings = {
            **ONE_BY_ONE,
            "ADDONS": ADDONS,
            "NEARDUP_STORE": "memory:",
            "FEED_STORAGES": {"broken": "tests.crawl.project.UnstorableFeed"},
            "FEEDS": {str(tmp_path / f"{place}.jsonl"): {"format": "jsonlines"}},
            "NEARDUP_DROPPED_FEED": {uri.format(tmp_path): options for uri, options in feeds.items()},
        }
        arguments = {"base": alike.base, "paths": PATHS}
        jobs.append({"spider": "PathSpider", "arguments": arguments, "settings": settings})
    results = run(*jobs)
    for place, result in enumerate(results):
        assert result.stats["finish_reason"] == "finished"
        assert [item["url"] for item in feed(tmp_path / f"{place}.jsonl")] == result.urls
        assert result.paths == PATHS[:2]
        assert result.count("dropped_feed/failed") >= 1
        assert (result.count("unsealed"), result.count("dropped_feed")) == (0, 2 if place == 0 else 0)
    assert results[0].log.count("The feed of NEARDUP_DROPPED_FEED cannot be written (") == len(BROKEN)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("file:///feeds/out.jsonl", "already a feed of this crawl"),
        ("dropped.parrot", "Scrapy cannot write NEARDUP_DROPPED_FEED"),
        ("nowhere://dropped.jsonl", "Scrapy cannot write NEARDUP_DROPPED_FEED"),
    ],
)
def test_a_feed_that_cannot_be_is_told_before_the_crawl(value: str, why: str) -> None:
    crawler = get_crawler(settings_dict={"FEEDS": {"/feeds/out.jsonl": {"format": "jsonlines"}}})
    feeds = Config.from_settings({"NEARDUP_DROPPED_FEED": value}).dropped_feed
    assert crawler.stats is not None
    with pytest.raises(SettingsError, match=why):
        DroppedFeed(crawler, feeds, "neardup", Notes(crawler.stats))
