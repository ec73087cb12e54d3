"""What becomes of the items of each kind of likeness, by default and as NEARDUP_POLICY says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.crawl.conftest import ADDONS, ONE_BY_ONE, Crawl, Result, Site
from tests.crawl.pages import article, html

KINDS = ["identical", "near", "retitled", "excerpt", "same_title"]
ORIGINALS = {"near": "/port", "identical": "/port", "retitled": "/port", "excerpt": "/port", "same_title": "/tea"}
PATHS = ["/port", "/tea", *(f"/{kind}" for kind in KINDS)]


def under(title_of: str, slug: str, extra: str = "") -> str:
    return html(slug, extra).replace(article(slug)[0], article(title_of)[0])


@pytest.fixture
def alike(site: Site) -> Site:
    """Two originals, then a page of each kind that is like one of them."""
    heading = f"<article><h1>{article('port-zh')[0]}</h1>"
    extra = "本文由衡津港务通讯供稿，转载时略有增补，图片从略。"
    site.content |= {
        "/port": html("port-zh"),
        "/tea": html("tea-zh"),
        "/identical": html("port-zh"),
        "/near": html("port-zh", extra),
        "/retitled": under("museum-zh", "port-zh").replace("<article>", heading),
        "/excerpt": html("port-excerpt-zh"),
        "/same_title": under("tea-zh", "bridge-zh"),
    }
    return site


def tags(result: Result) -> dict[str, Any]:
    return {path: item.get("neardup") for path, item in zip(result.paths, result.items, strict=True)}


def sums(result: Result) -> tuple[int, int, int, dict[str, int]]:
    prefix = "neardup/kind/"
    kinds = {stat.removeprefix(prefix): count for stat, count in result.stats.items() if stat.startswith(prefix)}
    return result.count("pages"), result.count("unique"), result.count("duplicate"), kinds


def test_by_default_copies_are_dropped_excerpts_and_same_titles_tagged(alike: Site, crawl: Crawl) -> None:
    result = crawl(PATHS)
    found = tags(result)
    assert list(found) == ["/port", "/tea", "/excerpt", "/same_title"]
    assert (found["/port"], found["/tea"]) == (None, None)
    for kind in ("excerpt", "same_title"):
        tag = found[f"/{kind}"]
        assert (tag["verdict"], tag["kind"], tag["reason"]) == ("unique", kind, None)
        assert (tag["original"], tag["like"]) == (None, alike.base + ORIGINALS[kind])
        assert tag["first_seen"].startswith("20")
    assert found["/excerpt"]["containment"] > 0.8 > 0.5 > found["/excerpt"]["similarity"]
    assert found["/excerpt"]["similar_id"] != found["/same_title"]["similar_id"]
    assert all(sentence in "".join(article("port-zh")[1]) for sentence in found["/excerpt"]["shared"])
    assert len(found["/excerpt"]["shared"]) >= 1
    assert sums(result) == (7, 4, 3, dict.fromkeys(KINDS, 1))
    assert "7 pages: 4 unique, 3 duplicate, 0 unchanged, 0 updated, 0 unjudged. State: 7 pages, " in result.log
    assert result.stats["item_scraped_count"] == 4
    assert (result.count("state/pages"), result.count("state/bytes") > 0) == (7, True)
    assert all(result.stats[f"neardup/time/{part}"] > 0 for part in ("extraction", "method", "store"))
    assert f"unique (excerpt): {alike.base}/excerpt is like {alike.base}/port (containment " in result.log
    assert f"duplicate (retitled): {alike.base}/retitled is a copy of {alike.base}/port (similarity " in result.log
    assert "Dropped:" not in result.log, "Scrapy would print the page"


# A policy; which kinds pass with a tag, which without; how many pages are duplicates.
POLICIES: list[tuple[Any, list[str], list[str], int]] = [
    ({"retitled": "tag"}, ["retitled", "excerpt", "same_title"], [], 3),
    ('{"near": "pass", "identical": "pass"}', ["excerpt", "same_title"], ["identical", "near"], 3),
    ({"excerpt": "drop"}, ["same_title"], [], 4),
    ({"excerpt": "drop", "same_title": "drop"}, [], [], 5),
    ({"excerpt": "pass", "same_title": "pass"}, [], ["excerpt", "same_title"], 3),
]


def test_the_policy_says_what_becomes_of_each_kind(alike: Site, run: Callable[..., list[Result]]) -> None:
    settings = {"ADDONS": ADDONS, **ONE_BY_ONE, "NEARDUP_STORE": "memory:"}
    job = {"spider": "PathSpider", "arguments": {"base": alike.base, "paths": PATHS}}
    results = run(*({**job, "settings": {**settings, "NEARDUP_POLICY": policy}} for policy, *_ in POLICIES))
    for result, (_, tagged, untagged, copies) in zip(results, POLICIES, strict=True):
        found = {path.strip("/"): tag for path, tag in tags(result).items()}
        assert [kind for kind in KINDS if found.get(kind)] == tagged
        assert [kind for kind, tag in found.items() if not tag] == ["port", "tea", *untagged]
        for kind in tagged:
            tag = found[kind]
            expected = ("duplicate" if kind == "retitled" else "unique", kind, alike.base + ORIGINALS[kind])
            assert (tag["verdict"], tag["kind"], tag["original"] or tag["like"]) == expected
            assert (tag["original"] is None) == (tag["verdict"] == "unique")
        assert sums(result) == (7, 7 - copies, copies, dict.fromkeys(KINDS, 1))


def test_without_dropping_every_item_is_tagged_whatever_the_policy_says(alike: Site, crawl: Crawl) -> None:
    """Whatever the class of the item."""
    alike.content["/empty"] = "<html><body></body></html>"
    classes = ["dict", "dataclass", "attrs", "pydantic", "Item"]
    settings = {"DROP_DUPLICATES": False, "NEARDUP_POLICY": {"near": "pass", "excerpt": "drop"}}
    found = tags(crawl([*PATHS, "/empty"], kinds=classes, **settings))
    assert list(found) == [*PATHS, "/empty"]
    assert (found["/empty"]["verdict"], found.pop("/empty")["reason"]) == ("unjudged", "no_text")
    assert len({found[f"/{kind}"]["similar_id"] for kind in ("identical", "near", "retitled")}) == 1
    assert len(found["/identical"]["shared"]) == 3
    assert {path: tag["kind"] for path, tag in found.items()} == {
        "/port": None,
        "/tea": None,
        **{f"/{kind}": kind for kind in KINDS},
    }
    assert {path for path, tag in found.items() if tag["verdict"] == "unique"} == {"/port", "/tea", "/same_title"}
