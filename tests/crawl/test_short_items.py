"""Items with too little text to be judged: known by all that they hold, where they have a URL."""

from __future__ import annotations

from typing import Any

from tests.crawl.conftest import Crawl

SHORT: list[dict[str, Any]] = [
    {"url": "http://a.example/1", "text": "A photo."},
    {"url": "http://a.example/2", "text": "A photo."},
    {"url": "http://a.example/3", "text": "", "html": "<p>An advert.</p>"},
]


def test_short_items_are_known_by_their_own_content_where_they_have_a_url(crawl: Crawl) -> None:
    first, second = (crawl(spider="OwnContentSpider", items=SHORT) for _ in range(2))
    assert (first.items, first.count("unjudged/too_short")) == (SHORT, 3)
    assert (second.items, second.count("unchanged")) == ([], 3)
    changed = [{**SHORT[0], "text": "Two photos."}, {**SHORT[1], "author": "B"}, SHORT[2]]
    assert crawl(spider="OwnContentSpider", items=changed).items == changed[:2]


def test_short_items_without_a_url_pass_every_time(crawl: Crawl) -> None:
    items = [{"text": "A photo."}, {"text": "A photo."}, {"text": "Another."}]
    first, second = (crawl(spider="OwnContentSpider", items=items) for _ in range(2))
    assert first.items == second.items == items


def test_a_short_item_that_was_lost_comes_again(crawl: Crawl) -> None:
    items = [{"url": "http://a.example/fail", "text": "A photo."}]
    assert (
        crawl(spider="OwnContentSpider", items=items, ITEM_PIPELINES={"tests.crawl.project.DropSome": 800}).items == []
    )
    first, second = (crawl(spider="OwnContentSpider", items=items) for _ in range(2))
    assert (first.items, second.items) == (items, [])
