"""Items of one response, and short items: articles with comments, threads, photos."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.crawl.conftest import ADDONS, ONE_BY_ONE, Crawl, Result, Site
from tests.crawl.engineless import crawl_items
from tests.crawl.pages import article, html

PATHS = ["/bridge", "/tea"]


def page(slug: str, comments: list[str]) -> str:
    return html(slug).replace("</body>", f"<ul>{''.join(f'<li>{one}</li>' for one in comments)}</ul></body>")


@pytest.fixture
def thread(site: Site) -> Site:
    remarks = [line for slug in ("kelp-en", "chess-en") for line in article(slug)[1]]
    site.content |= {"/bridge": page("bridge-zh", remarks[:3]), "/tea": page("tea-zh", remarks[3:6])}
    return site


def test_an_article_and_its_comments_come_once(thread: Site, run: Callable[..., list[Result]], tmp_path: Path) -> None:
    jobs = [
        {
            "spider": "CommentsSpider",
            "arguments": {"base": thread.base, "paths": PATHS, "last": last},
            "settings": {"ADDONS": ADDONS, "NEARDUP_STORE": f"sqlite://{tmp_path}/{last}", **ONE_BY_ONE},
        }
        for last in (True, False)
    ]
    for first, second in zip(run(*jobs), run(*jobs), strict=True):
        assert (len(first.items), first.count("unique"), first.count("updated")) == (8, 8, 0)
        assert (second.items, second.count("unchanged")) == ([], 8)
        assert "NEARDUP_FIELDS" not in first.log


def test_an_article_without_a_url_keeps_that_of_its_page_when_comments_come(thread: Site, crawl: Crawl) -> None:
    """Or an update of it would be taken for a copy of the article under another URL."""
    thread.content["/one"] = page("birds-zh", [])
    crawl(["/one"], "ArticleSpider")
    thread.content["/one"] = page("birds-zh", ["A remark that nobody has made before, long enough to be judged."])
    again = crawl(["/one"], "ArticleSpider")
    assert (again.count("unchanged"), again.count("unique")) == (1, 1)


SHORT: list[dict[str, Any]] = [
    {"url": "http://a.example/1", "text": "A photo."},
    {"url": "http://a.example/2", "text": "A photo."},
    {"url": "http://a.example/3", "text": "", "html": "<p>An advert.</p>"},
]


def test_short_items_are_known_by_their_own_content_where_they_have_a_url(tmp_path: Path) -> None:
    store = {"NEARDUP_STORE": f"sqlite://{tmp_path}/state"}
    first, second = (crawl_items(*SHORT, **store) for _ in range(2))
    assert (first.items, first.count("unjudged/too_short")) == (SHORT, 3)
    assert (second.items, second.count("unchanged")) == ([], 3)
    changed = [{**SHORT[0], "text": "Two photos."}, {**SHORT[1], "author": "B"}, SHORT[2]]
    assert crawl_items(*changed, **store).items == changed[:2]


def test_short_items_without_a_url_pass_every_time(tmp_path: Path) -> None:
    items = [{"text": "A photo."}, {"text": "A photo."}, {"text": "Another."}]
    first, second = (crawl_items(*items, NEARDUP_STORE=f"sqlite://{tmp_path}/state") for _ in range(2))
    assert first.items == second.items == items
