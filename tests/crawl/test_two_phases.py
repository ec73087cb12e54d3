"""A page counts once its item came through, and for good once the feed that holds the item is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.crawl.conftest import Crawl, Site
from tests.crawl.pages import ARTICLES, article, html

LATER = {"tests.crawl.project.DropSome": 800}


def test_a_page_whose_item_is_lost_later_makes_way_for_its_copy(site: Site, crawl: Crawl) -> None:
    for fate, slug in (("drop", "bridge-zh"), ("fail", "tea-zh")):
        site.content |= {f"/{fate}": html(slug), f"/copy/{slug}": html(slug, "Copied.")}
    result = crawl(list(site.content), ITEM_PIPELINES=LATER)
    assert result.paths == ["/copy/bridge-zh", "/copy/tea-zh"]
    assert (result.count("unique"), result.count("rolled_back"), result.count("state/pages")) == (4, 2, 2)


@pytest.mark.parametrize("reactor", ["asyncio", "select"])
def test_of_each_family_one_page_is_kept_if_any_comes_through(site: Site, crawl: Crawl, reactor: str) -> None:
    slugs = ["bridge-zh", "tea-zh", "kelp-en", "metro-zh", "goats-en", "snow-zh", "tram-en", "honey-zh"]
    for slug in slugs:
        site.content |= {f"/{slug}/{n}": html(slug, f"Copy {n}.") for n in range(12)}
    paths = [f"/{slug}/{n}" for n in range(12) for slug in slugs]
    result = crawl(
        paths,
        ITEM_PIPELINES={"tests.crawl.project.Fate": 800},
        CONCURRENT_REQUESTS=16,
        CONCURRENT_REQUESTS_PER_DOMAIN=16,
        NEARDUP_STORE="memory:",
        reactor=reactor,
    )
    kept = [path.split("/")[1] for path in result.paths]
    assert sorted(kept) == sorted(set(kept)), "kept twice"
    assert set(kept) == set(slugs), "lost"
    assert result.count("pages") == len(paths)
    assert result.count("rolled_back") + len(kept) == result.count("unique")
    if reactor == "asyncio":
        assert result.count("waited") > 0


def test_a_later_pipeline_that_collects_items_does_not_deadlock(site: Site, crawl: Crawl) -> None:
    slugs = ["bridge-zh", "tea-zh", "kelp-en"]
    site.content |= {f"/{slug}/{n}": html(slug, f"Copy {n}.") for slug in slugs for n in range(2)}
    result = crawl(
        [f"/{slug}/{n}" for slug in slugs for n in range(2)],
        ITEM_PIPELINES={"tests.crawl.project.Batch": 800},
        CONCURRENT_REQUESTS=8,
        NEARDUP_WAIT=0.3,
    )
    assert len(result.items) == 6
    assert (result.count("unique"), result.count("unjudged/in_flight")) == (3, 3)


SLUGS = sorted(path.stem for path in ARTICLES.glob("*.txt") if sum(map(len, article(path.stem)[1])) > 400)[:40]


def test_pages_are_sealed_at_once_by_setting_or_without_a_feed(site: Site, crawl: Crawl, tmp_path: Path) -> None:
    site.content |= {f"/{slug}": html(slug) for slug in SLUGS[:8]}
    paths = [f"/{slug}" for slug in SLUGS[:8]]
    kill = {"ITEM_PIPELINES": {"tests.crawl.project.Kill": 900}, "env": {"KILL_AFTER": "4"}}
    feed = {"FEEDS": {f"file://{tmp_path}/out.jsonl": {"format": "jsonlines"}}, "NEARDUP_COMMIT": "item"}
    for name, settings in {"item": feed, "no feed": {}}.items():
        store = {"NEARDUP_STORE": f"sqlite://{tmp_path}/{name.replace(' ', '-')}.db"}
        assert crawl(paths, **kill, **settings, **store).code == 9
        again = crawl(paths, **store)
        assert (again.count("taken_back"), again.count("unchanged")) == (0, 3), name


def test_a_kill_between_the_items_of_a_page_loses_none(site: Site, crawl: Crawl, tmp_path: Path) -> None:
    site.content |= {f"/{slug}": html(slug) for slug in SLUGS[:3]}
    paths = [f"/{slug}" for slug in SLUGS[:3]]
    settings: dict[str, Any] = {"spider": "ManyItemsSpider", "CONCURRENT_ITEMS": 1}
    feed = {"format": "jsonlines", "batch_item_count": 2}
    settings["FEEDS"] = {f"file://{tmp_path}/%(batch_time)s.jsonl": feed}
    kill = {"ITEM_PIPELINES": {"tests.crawl.project.Kill": 900}, "env": {"KILL_AFTER": "6"}}
    assert crawl(paths, **settings, **kill).code == 9
    again = crawl(paths, **settings)
    assert again.count("taken_back") == 1
    assert again.paths == [path for path in paths[1:] for _ in range(3)]


def test_a_failing_state_loses_no_item_and_closes_the_crawl_or_not(site: Site, crawl: Crawl) -> None:
    site.content |= {f"/{slug}": html(slug) for slug in SLUGS[:8]}
    paths = [f"/{slug}" for slug in SLUGS[:8]]
    broken = {"ITEM_PIPELINES": {"tests.crawl.project.BreakStore": 100}, "NEARDUP_STORE": "memory:"}
    closed = crawl(paths, **broken)
    assert closed.stats["finish_reason"] == "neardup_store_failed"
    assert len(closed.items) + closed.count("duplicate") == closed.stats["response_received_count"]
    assert "The disk is full." in closed.log
    passed = crawl(paths, **broken, NEARDUP_ON_STORE_ERROR="pass")
    assert passed.stats["finish_reason"] == "finished"
    assert len(passed.items) == 8
    assert passed.count("unjudged/store_failed") == 5
