"""Crawls over pages with the very same bytes: not read again, with the verdicts of a crawl that reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
import scrapy
from packaging.version import Version

from scrapy_neardup.crawl.judge import Judge
from scrapy_neardup.crawl.site_watch import SiteWatch
from scrapy_neardup.crawl.turns import AsyncPageReader
from scrapy_neardup.crawl.visits import JudgedPage, ResponseItems, Visit
from scrapy_neardup.model import Kind, Verdict
from scrapy_neardup.page.extraction import HtmlReader
from scrapy_neardup.page.source import PageResponse, PageSource
from scrapy_neardup.settings import DEFAULT_FIELDS
from scrapy_neardup.state.opening import memory_state
from tests.build import make_detector
from tests.crawl.conftest import Crawl, Result, Site
from tests.crawl.pages import html
from tests.crawl.parts import notes, outage

#: Pages come one after the other, so always in one order.
IN_ORDER = {"CONCURRENT_REQUESTS": 1, "NEARDUP_SECRET": "one for all these crawls"}
SLUGS = ["bridge-zh", "goats-en", "honey-zh"]
PATHS = [f"/{copy}/{slug}" for slug in SLUGS for copy in "abc"] + ["/short", "/again"]


@pytest.fixture
def mirrors(site: Site) -> Site:
    """Articles, each with the same bytes at another path and with other bytes at a third one."""
    for slug in SLUGS:
        site.content |= {f"/{copy}/{slug}": html(slug) for copy in "ab"}
        site.content[f"/c/{slug}"] = html(slug).replace("<html>", "<html><!-- 2 -->")
    site.content |= dict.fromkeys(("/short", "/again"), "<p>见附件。")
    return site


def told(result: Result) -> dict[str, list[Any]]:
    assert "Traceback" not in result.log, result.log
    kept = ("verdict", "kind", "original", "similarity", "containment")
    return {item["url"]: [item["neardup"][part] for part in kept] for item in result.items}


@pytest.mark.parametrize("workers", [0, 2])
def test_they_are_recognised_in_one_crawl_and_in_the_next(mirrors: Site, crawl: Crawl, workers: int) -> None:
    settings: dict[str, Any] = {**IN_ORDER, "NEARDUP_WORKERS": workers}
    first, second = (crawl(PATHS, **settings) for _ in range(2))
    assert (first.count("same_bytes"), first.count("duplicate")) == (3, 6)
    assert (first.count("extraction/article"), first.count("extraction/prose")) == (6, 2)
    assert (second.count("same_bytes"), second.count("unchanged"), second.items) == (11, 5, [])
    assert not any(name.startswith("neardup/extraction") for name in second.stats)


def test_a_copy_that_is_delivered_is_read_and_says_what_it_shares(mirrors: Site, crawl: Crawl) -> None:
    settings: dict[str, Any] = {**IN_ORDER, "NEARDUP_POLICY": {"identical": "tag"}}
    first, second = (crawl(PATHS, **settings) for _ in range(2))
    copies = [item["neardup"] for item in first.items if "neardup" in item]
    assert len(copies) == 6
    assert all(copy["shared"] and copy["reason"] is None for copy in copies)
    assert first.count("same_bytes") == 0
    assert (second.count("same_bytes"), second.count("unchanged"), second.items) == (11, 11, [])


NEEDS_LOOP = pytest.mark.skipif(Version(scrapy.__version__) < Version("2.15"), reason="older versions need a reactor")


@NEEDS_LOOP
@pytest.mark.parametrize("lost", [False, True])
def test_a_page_with_the_bytes_of_one_in_flight_is_read_only_if_that_is_lost(lost: bool) -> None:
    told, detector = notes(), make_detector(memory_state({}))
    source = PageSource(DEFAULT_FIELDS, HtmlReader(1_000_000), bodies=detector.bodies)
    reader = AsyncPageReader(source, told, risky_pool=None)
    judge = Judge(source, reader, detector, told, outage(told), SiteWatch(told, {}), wait=5.0)

    def page(url: str) -> Coroutine[Any, Any, JudgedPage]:
        return judge.judge({}, Visit(PageResponse(url, html("goats-en").encode()), items=ResponseItems(announced=1)))

    async def run() -> Verdict:
        first = await page("http://first.example/")
        assert first.reservation is not None
        waiting = asyncio.create_task(page("http://second.example/"))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        detector.release(first.reservation) if lost else detector.commit(first.reservation, sealed=True)
        return (await waiting).verdict

    verdict = asyncio.run(run())
    assert (verdict.kind, verdict.same_bytes) == ((Kind.UNIQUE, False) if lost else (Kind.DUPLICATE, True))
    assert told.stats.get_value("neardup/extraction/article") == 1 + lost
