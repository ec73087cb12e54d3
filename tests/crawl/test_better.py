"""NEARDUP_KEEP_POLICY in real crawls: what passes, what is told of it, and what the next crawl makes of it."""

from __future__ import annotations

from typing import Any

from tests.build import story
from tests.crawl.conftest import Crawl, Result

TEXT = story(60, 20)


def item(host: str, *more: str) -> dict[str, Any]:
    return {
        "url": f"http://{host}.example/1",
        "title": "渡口清晨开航",
        "text": "\n".join([*TEXT, f"{host}供稿。", *more]),
    }


WIRE, PAPER, BLOG = item("wire"), item("paper"), item("blog")
POLICY = '["paper.example"]'


def own(crawl: Crawl, *items: dict[str, Any], **settings: Any) -> Result:
    return crawl(spider="OwnContentSpider", items=items, **{"NEARDUP_KEEP_POLICY": POLICY, **settings})


def test_a_better_copy_passes_tagged_and_is_known_from_then_on(crawl: Crawl) -> None:
    result = own(crawl, WIRE, PAPER, BLOG)
    assert result.urls == [WIRE["url"], PAPER["url"]]
    tag = result.items[1]["neardup"]
    assert (tag["verdict"], tag["kind"], tag["supersedes"]) == ("better", "near", WIRE["url"])
    assert "neardup" not in result.items[0]
    assert [result.count(kind) for kind in ("pages", "unique", "better", "duplicate")] == [3, 1, 1, 1]
    assert "3 pages: 1 unique, 1 duplicate, 0 unchanged, 0 updated, 1 better, 0 unjudged." in result.log
    assert f"better (near): {PAPER['url']} supersedes {WIRE['url']} (similarity " in result.log
    assert f"{BLOG['url']} is a copy of {PAPER['url']} (similarity " in result.log
    again = own(crawl, WIRE, PAPER, BLOG, item("late"), DROP_DUPLICATES=False)
    tags = [one["neardup"] for one in again.items]
    assert [one["verdict"] for one in tags] == ["unchanged", "unchanged", "duplicate", "duplicate"]
    assert {(one["original"], one["similar_id"]) for one in tags} == {(PAPER["url"], tag["similar_id"])}


def test_a_better_copy_whose_feed_is_not_stored_comes_again(crawl: Crawl) -> None:
    assert own(crawl, WIRE).urls == [WIRE["url"]]
    broken = {
        "FEED_STORAGES": {"unstorable": "tests.crawl.project.UnstorableFeed"},
        "FEEDS": {"unstorable:///feed.jsonl": {"format": "jsonlines"}},
    }
    assert own(crawl, PAPER, BLOG, **broken).urls == [PAPER["url"]]
    again = own(crawl, WIRE, PAPER, BLOG)
    assert again.urls == [PAPER["url"]]
    assert [again.count(kind) for kind in ("unchanged", "better", "duplicate", "taken_back")] == [1, 1, 1, 1]
