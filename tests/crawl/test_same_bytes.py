"""Crawls over pages with the very same bytes: not read again, with the verdicts of a crawl that reads them."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
import scrapy
from packaging.version import Version

from scrapy_neardup.crawl.judge import Judge
from scrapy_neardup.crawl.turns import AsyncPageReader, Turn
from scrapy_neardup.crawl.visits import JudgedPage, ResponseItems, Visit
from scrapy_neardup.model import Kind, Page
from scrapy_neardup.page.extraction import HtmlReader
from scrapy_neardup.page.source import PageResponse, PageSource, UnreadPage
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


class Court:
    """A judge on an empty state, which reads pages one after the other, each after a while; ``read``: their URLs."""

    def __init__(self) -> None:
        self.read: list[str] = []
        self.notes = notes()
        self.detector = make_detector(memory_state({}))
        source = PageSource(DEFAULT_FIELDS, HtmlReader(1_000_000), bodies=self.detector.bodies)
        reader = cast(AsyncPageReader, Slow(source, self))
        self.judge = Judge(source, reader, self.detector, self.notes, outage(self.notes), wait=5.0)

    async def page(self, url: str, content: str) -> JudgedPage:
        return await self.judge.judge({}, Visit(PageResponse(url, content.encode()), items=ResponseItems(1)))


class Slow:
    """Reads as workers do: each page for itself, and in the meantime others come."""

    spent = 0.0

    def __init__(self, source: PageSource, court: Court) -> None:
        self.source, self.court = source, court

    async def read(self, draft: UnreadPage, turn: Turn) -> Page:
        self.court.read.append(draft.content.url)
        turn.begin()
        await asyncio.sleep(0.05)
        turn.end()
        return self.source.read(draft)


URLS = [f"http://{name}.example/" for name in ("first", "second", "third")]


@NEEDS_LOOP
def test_a_page_on_its_way_is_waited_for_by_those_with_its_bytes_which_are_not_read() -> None:
    court, page = Court(), html("goats-en")

    async def run() -> list[JudgedPage]:
        asked = [asyncio.create_task(court.page(url, page)) for url in URLS]
        first = await asked[0]
        assert first.reservation is not None
        await asyncio.sleep(0.05)
        assert not any(task.done() for task in asked[1:])
        court.detector.commit(first.reservation, sealed=True)
        return await asyncio.gather(*asked)

    first, *others = asyncio.run(run())
    assert court.read == URLS[:1]
    assert [case.verdict.kind for case in (first, *others)] == [Kind.UNIQUE, Kind.DUPLICATE, Kind.DUPLICATE]
    assert [case.verdict.same_bytes for case in (first, *others)] == [False, True, True]


@NEEDS_LOOP
def test_if_that_is_lost_the_next_one_is_read() -> None:
    court, page = Court(), html("goats-en")

    async def run() -> list[JudgedPage]:
        asked = [asyncio.create_task(court.page(url, page)) for url in URLS[:2]]
        first = await asked[0]
        assert first.reservation is not None
        court.detector.release(first.reservation)
        return await asyncio.gather(*asked)

    cases = asyncio.run(run())
    assert court.read == URLS[:2]
    assert [case.verdict.kind for case in cases] == [Kind.UNIQUE, Kind.UNIQUE]
    assert court.judge._bodies == {}


@NEEDS_LOOP
def test_what_the_one_before_does_not_help_is_read_when_it_is_its_turn() -> None:
    """Of a page that says too little nobody knows what another one with these bytes is."""
    court = Court()

    async def run() -> list[JudgedPage]:
        return await asyncio.gather(*(court.page(url, "<p>Too short.") for url in URLS))

    cases = asyncio.run(run())
    assert court.read == URLS
    assert [case.verdict.reason for case in cases] == ["too_short"] * 3
