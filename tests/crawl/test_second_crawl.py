"""A second crawl delivers nothing twice, and everything that the first one did not deliver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crawl.conftest import ADDONS, ONE_BY_ONE, Crawl, Result, Site
from tests.crawl.pages import html
from tests.crawl.test_policy import PATHS, alike, sums, tags
from tests.crawl.test_two_runs import PLYVEL

__all__ = ["alike"]

NEEDS_PLYVEL = pytest.mark.skipif(not PLYVEL, reason="no plyvel here")


@pytest.mark.parametrize(("action", "scheme"), [pytest.param("tag", "leveldb", marks=NEEDS_PLYVEL), ("pass", "sqlite")])
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


def test_a_copy_that_passed_and_whose_item_was_lost_is_not_counted(site: Site, crawl: Crawl) -> None:
    for fate, slug in (("drop", "bridge-zh"), ("fail", "tea-zh")):
        site.content |= {f"/{slug}": html(slug), f"/{fate}": html(slug, "Copied.")}
    paths = list(site.content)
    first = crawl(paths, NEARDUP_POLICY={"near": "tag"}, ITEM_PIPELINES={"tests.crawl.project.DropSome": 800})
    assert first.paths == ["/bridge-zh", "/tea-zh"]
    assert (first.count("duplicate"), first.count("rolled_back"), first.count("state/pages")) == (2, 2, 2)
    second, third = (crawl(paths, NEARDUP_POLICY={"near": "tag"}) for _ in range(2))
    assert (second.paths, third.paths) == (["/drop", "/fail"], [])


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
