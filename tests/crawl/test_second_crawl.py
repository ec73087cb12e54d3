"""A second crawl delivers nothing twice, and everything that the first one did not deliver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crawl.conftest import ADDONS, ONE_BY_ONE, Crawl, Result, Site
from tests.crawl.pages import html
from tests.crawl.test_policy import KINDS, ORIGINALS, PATHS, alike, sums, tags
from tests.crawl.test_two_runs import PLYVEL

__all__ = ["alike"]

COPIES = ["identical", "near", "retitled"]
SCHEMES = [pytest.param("leveldb", marks=pytest.mark.skipif(not PLYVEL, reason="no plyvel here")), "sqlite"]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("action", ["tag", "pass"])
def test_copies_that_the_policy_let_pass_are_unchanged(
    alike: Site, crawl: Crawl, tmp_path: Path, action: str, scheme: str
) -> None:
    settings = {"NEARDUP_POLICY": {"retitled": action, "near": action}, "NEARDUP_STORE": f"{scheme}://{tmp_path}/state"}
    first, second = (crawl(PATHS, **settings) for _ in range(2))
    assert list(tags(first)) == ["/port", "/tea", "/near", "/retitled", "/excerpt", "/same_title"]
    assert second.items == []
    assert sums(second) == (7, 0, 1, {"identical": 1}), "which was dropped, and so never delivered"
    assert second.count("unchanged") == 6
    assert first.count("state/pages") == second.count("state/pages") == 7


def test_what_was_dropped_as_a_copy_is_dropped_by_the_same_pages_crawled_again(alike: Site, crawl: Crawl) -> None:
    """Though by now other pages of the site hold its lines, and so they say less of it."""
    first, second, third = (crawl(PATHS) for _ in range(3))
    assert list(tags(first)) == ["/port", "/tea", "/excerpt", "/same_title"]
    for again in (second, third):
        assert again.items == []
        assert sums(again) == (7, 0, 3, dict.fromkeys(COPIES, 1))
        assert again.count("unchanged") == 4
        assert again.count("state/pages") == 7


def test_a_dropped_copy_that_has_become_an_article_of_its_own_is_delivered(alike: Site, crawl: Crawl) -> None:
    crawl(PATHS)
    alike.content["/near"] = html("hospital-zh")
    assert crawl(PATHS).paths == ["/near"]
    alike.content["/identical"] = html("port-excerpt-zh")
    assert crawl(PATHS).items == [], "it is a copy of another one by now"


def test_a_policy_that_lets_more_pass_delivers_what_was_dropped_once(alike: Site, crawl: Crawl) -> None:
    dropped = crawl(PATHS)
    assert list(tags(dropped)) == ["/port", "/tea", "/excerpt", "/same_title"]
    passing = [crawl(PATHS, NEARDUP_POLICY=dict.fromkeys(COPIES, "tag")) for _ in range(2)]
    assert [one.paths for one in passing] == [[f"/{kind}" for kind in ["identical", "near", "retitled"]], []]


def test_where_nothing_is_dropped_the_second_crawl_tags_all_as_unchanged_with_their_originals(
    alike: Site, crawl: Crawl
) -> None:
    first, second, third = (crawl(PATHS, DROP_DUPLICATES=drop) for drop in (False, False, True))
    before, after = tags(first), tags(second)
    assert {tag["verdict"] for tag in after.values()} == {"unchanged"}
    for kind in COPIES:
        assert after[f"/{kind}"]["original"] == alike.base + ORIGINALS[kind] == before[f"/{kind}"]["original"]
    assert [tag["similar_id"] for tag in after.values()] == [tag["similar_id"] for tag in before.values()]
    assert {tag["kind"] for tag in after.values()} == {None}
    assert (third.items, third.count("unchanged")) == ([], len(PATHS))
    assert len(KINDS) + 2 == len(PATHS)


def copies(site: Site, name: str) -> list[str]:
    site.content |= {"/a": html("bridge-zh"), f"/{name}": html("bridge-zh", "Copied."), "/tea": html("tea-zh")}
    return ["/a", f"/{name}", "/tea"]


@pytest.mark.parametrize("fate", ["drop", "fail"])
def test_a_copy_that_passed_and_whose_item_was_lost_is_not_counted(site: Site, crawl: Crawl, fate: str) -> None:
    paths = copies(site, fate)
    first = crawl(paths, NEARDUP_POLICY={"near": "tag"}, ITEM_PIPELINES={"tests.crawl.project.DropSome": 800})
    assert first.paths == ["/a", "/tea"]
    assert (first.count("duplicate"), first.count("rolled_back"), first.count("state/pages")) == (1, 1, 2)
    second, third = (crawl(paths, NEARDUP_POLICY={"near": "tag"}) for _ in range(2))
    assert (second.paths, third.paths) == ([f"/{fate}"], [])


def test_copies_that_pass_are_each_counted_once_however_many_are_on_their_way(
    site: Site, run: Callable[..., list[Result]], tmp_path: Path
) -> None:
    paths = [f"/{number}" for number in range(24)]
    site.content |= {path: html("bridge-zh", f"Copy {path}.") for path in paths}
    settings = {"ADDONS": ADDONS, "DROP_DUPLICATES": False, "NEARDUP_STORE": f"sqlite://{tmp_path}/state"}
    job = {"spider": "PathSpider", "arguments": {"base": site.base, "paths": paths}}
    [first] = run({**job, "settings": settings})
    [second] = run({**job, "settings": {**settings, **ONE_BY_ONE, "DROP_DUPLICATES": True}})
    assert (first.count("unique"), first.count("duplicate"), first.count("state/pages")) == (1, 23, 24)
    assert (second.items, second.count("unchanged")) == ([], 24)
