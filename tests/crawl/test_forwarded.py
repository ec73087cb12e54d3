"""An article that a later request completes is judged by the page that the request hands over."""

from __future__ import annotations

import json
import pickle

import pytest
from scrapy import Request, Spider
from scrapy.http import HtmlResponse, Response
from scrapy.utils.request import request_from_dict

from scrapy_neardup.crawl.middleware import FORWARDED, NearDupSpiderMiddleware, lighten
from tests.crawl.conftest import Crawl, Site
from tests.crawl.pages import html

PAGES = {"/page1": html("bridge-zh"), "/page2": html("bridge-zh", "Sent in by a reader."), "/page3": html("kelp-en")}
VIEWS = {path.replace("page", "views"): (json.dumps({"views": 7}).encode(), "application/json") for path in PAGES}


def fill(site: Site, *without: str) -> list[str]:
    site.content.update({**PAGES, **VIEWS})
    for path in without:
        del site.content[path]
    return list(PAGES)


@pytest.mark.parametrize("own_url", [True, False], ids=["item with the page's URL", "item without"])
def test_the_item_is_judged_by_the_page_that_was_handed_over(site: Site, crawl: Crawl, own_url: bool) -> None:
    result = crawl(fill(site), spider="LaterSpider", own_url=own_url)
    assert [item["views"] for item in result.items] == [7, 7]
    assert (result.count("unique"), result.count("duplicate"), result.count("pages")) == (2, 1, 3)
    assert f"is a copy of {site.base}/page" in result.log
    assert "Traceback" not in result.log


def test_where_the_later_request_fails_the_item_of_its_errback_is_judged_all_the_same(site: Site, crawl: Crawl) -> None:
    result = crawl(fill(site, "/views1", "/views2"), spider="LaterSpider")
    assert [item["views"] for item in result.items] == [7, None] or [item["views"] for item in result.items] == [
        None,
        7,
    ]
    assert (result.count("unique"), result.count("duplicate")) == (2, 1)


def test_a_crawl_that_is_stopped_and_resumed_has_its_pages_still(site: Site, crawl: Crawl) -> None:
    """The requests that wait are pickled, and their pages with them."""
    paths = fill(site)
    first = crawl(paths, spider="LaterSpider", stops=True, JOBDIR="job", SCHEDULER_DEBUG=True)
    assert (first.items, first.stats["finish_reason"]) == ([], "stopped")
    assert "Unable to serialize" not in first.log
    assert first.stats["scheduler/enqueued/disk"] > len(paths)
    second = crawl([], spider="LaterSpider", JOBDIR="job")
    assert [item["views"] for item in second.items] == [7, 7]
    assert (second.count("unique"), second.count("duplicate")) == (2, 1)


def handed(response: object) -> Request:
    request = Request("http://a.example/views", meta={FORWARDED: response})
    lighten(request)
    return request


def test_what_waits_holds_the_page_and_none_of_what_was_made_of_it() -> None:
    first = Request(
        "http://a.example/old",
        meta={"redirect_urls": ["http://a.example/older"], FORWARDED: Response("http://b.example")},
    )
    page = HtmlResponse("http://a.example/1", body="<title>渡口".encode("gb18030"), encoding="gb18030", request=first)
    assert page.css("title::text").get() == "渡口"
    request = handed(page)
    waiting = request.meta[FORWARDED]
    assert waiting.body is page.body
    assert page.request is first
    again = request_from_dict(pickle.loads(pickle.dumps(request.to_dict(), protocol=4)), spider=Spider("a"))
    back = again.meta[FORWARDED]
    assert (type(back), back.url, back.body, back.encoding) == (HtmlResponse, page.url, page.body, "gb18030")
    assert back.request.url == "http://a.example/old"
    assert back.meta == {"redirect_urls": ["http://a.example/older"]}
    assert back.css("title::text").get() == "渡口"


def test_a_request_that_hands_nothing_over_stays_as_it_is() -> None:
    assert handed("text").meta == {FORWARDED: "text"}
    assert handed(None).meta == {FORWARDED: None}
    assert NearDupSpiderMiddleware()._forwarded(handed(None)) is None
    bare = Response("http://a.example/")
    assert handed(bare).meta[FORWARDED].request is None
