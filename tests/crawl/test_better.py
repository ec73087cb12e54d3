"""NEARDUP_KEEP_POLICY in real crawls: what passes, what is told of it, and what the next crawl makes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.build import story
from tests.crawl.conftest import ADDONS, ONE_BY_ONE, Crawl, Result, Site
from tests.crawl.pages import article, html

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


def test_without_dropping_all_is_tagged_and_a_better_copy_says_so(crawl: Crawl) -> None:
    result = own(crawl, WIRE, BLOG, PAPER, DROP_DUPLICATES=False)
    tags = [one["neardup"] for one in result.items]
    assert [one["verdict"] for one in tags] == ["unique", "duplicate", "better"]
    assert [one["supersedes"] for one in tags] == [None, None, WIRE["url"]]
    assert len({one["similar_id"] for one in tags}) == 1


def test_an_item_that_is_dropped_behind_us_supersedes_nobody(crawl: Crawl) -> None:
    result = own(crawl, WIRE, {**PAPER, "fate": "drop"}, BLOG, ITEM_PIPELINES={"tests.crawl.project.DropSome": 900})
    assert result.urls == [WIRE["url"]]
    assert result.count("rolled_back") == 1
    assert f"{BLOG['url']} is a copy of {WIRE['url']} (similarity " in result.log


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


def test_the_longest_of_pages_read_from_html(site: Site, run: Callable[..., list[Result]]) -> None:
    """A menu makes no page longer; between hosts, for on one host other rules say what a copy is."""
    menu = "<nav><ul>" + "".join(f"<li><a href='/{n}'>第{n}个栏目的消息</a></li>" for n in range(60)) + "</ul></nav>"
    paragraphs = article("port-zh")[1]
    short = html("port-zh").replace(f"<p>{paragraphs[-1]}</p>", "")
    site.content |= {"/short": short, "/framed": short.replace("<body>", f"<body>{menu}"), "/long": html("port-zh")}
    assert site.content["/framed"] != short
    assert len("".join(paragraphs)) > 1.1 * len("".join(paragraphs[:-1]))
    urls = [
        f"{site.base}/short",
        *(f"{site.base}/{name}".replace("127.0.0.1", "localhost") for name in ("framed", "long")),
    ]
    settings = {"ADDONS": ADDONS, **ONE_BY_ONE, "NEARDUP_KEEP_POLICY": "longest"}
    [result] = run({"spider": "PathSpider", "arguments": {"paths": urls}, "settings": settings})
    assert result.urls == [urls[0], urls[2]]
    assert result.items[1]["neardup"]["supersedes"] == urls[0]


def test_a_better_copy_by_a_stranger_keeps_no_update_of_the_article_from_being_delivered(crawl: Crawl) -> None:
    """He can have later copies told as copies of his, and pays with a delivered page for that; nothing else."""
    longest = {"NEARDUP_KEEP_POLICY": "longest"}
    padded = {**item("evil", *story(61, 4)), "title": WIRE["title"]}
    assert own(crawl, WIRE, padded, **longest).urls == [WIRE["url"], padded["url"]]
    update = item("wire", "更正：第一班船是空的。")
    assert own(crawl, update, **longest).urls == [update["url"]]
