"""Listings: several items of one response that are several articles, or one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from scrapy_neardup.maintenance.scan import statistics
from scrapy_neardup.report.gather import gather
from scrapy_neardup.state.opening import close_store, open_snapshot
from tests.crawl.conftest import ADDONS, ONE_BY_ONE, Crawl, Result, Site
from tests.crawl.pages import article, html

SECTIONS = ["/news", "/sport", "/town", "/sea", "/arts"]
FOOTER = html("bridge-zh")


def listing(*headlines: str) -> str:
    rows = "".join(f"<h2>{one}</h2>" for one in headlines)
    return FOOTER.replace("<article>", f"{rows}<article>")


def headlines(path: str, many: int = 20) -> list[str]:
    return [f"{path.strip('/')} headline {number}" for number in range(many)]


@pytest.fixture
def sections(site: Site) -> Site:
    site.content |= {path: listing(*headlines(path)) for path in SECTIONS}
    return site


def told(result: Result) -> list[str]:
    return [item["headline"] for item in result.items]


def test_rows_of_section_pages_pass_once(sections: Site, run: Callable[..., list[Result]], tmp_path: Path) -> None:
    """Headlines alone, and headlines with their section."""
    jobs = [
        {
            "spider": "SectionSpider",
            "arguments": {"base": sections.base, "paths": SECTIONS, "fields": fields},
            "settings": {"ADDONS": ADDONS, "NEARDUP_STORE": f"sqlite://{tmp_path}/{number}", **ONE_BY_ONE},
        }
        for number, fields in enumerate(({}, {"section": "{0.url}"}))
    ]
    for first, second in zip(run(*jobs), run(*jobs), strict=True):
        assert told(first) == [headline for path in SECTIONS for headline in headlines(path)]
        assert (first.count("pages"), first.count("unjudged/listing"), first.count("duplicate")) == (100, 100, 0)
        assert first.log.count("its response gave several items without their own texts") == len(jobs)
        assert (second.items, second.count("unchanged")) == ([], 100)
    sections.content["/sport"] = listing(*headlines("/sport", 22))
    for third in run(*jobs):
        assert told(third) == headlines("/sport", 22)[20:]


def test_many_listings_at_once_lose_nothing_with_either_reactor(site: Site, crawl: Crawl) -> None:
    paths = [f"{path}/{page}" for path in SECTIONS for page in range(6)]
    site.content |= {path: listing(*headlines(path, 7)) for path in paths}
    many = {"CONCURRENT_REQUESTS": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 16}
    for reactor in ("asyncio", "select"):
        result = crawl(paths, "SectionSpider", reactor=reactor, NEARDUP_STORE="memory:", **many)
        assert len(set(told(result))) == len(result.items) == 210


def test_rows_are_counted_as_rows_everywhere(site: Site, crawl: Crawl, tmp_path: Path) -> None:
    """A JSON API whose records bring their text in a field that nobody has named."""
    lines = [line for slug in ("kelp-en", "chess-en", "cheese-en") for line in article(slug)[1]]
    site.content["/api"] = json.dumps([{"id": str(place), "body": line} for place, line in enumerate(lines)])
    store = f"sqlite:///{tmp_path}/state.sqlite"
    first = crawl(["/api"], "RecordsSpider", NEARDUP_STORE=store)
    assert (len(first.items), first.count("unique"), first.count("unjudged/listing")) == (len(lines), 0, len(lines))
    assert f" {len(lines)} rows, 0 unjudged" in first.log
    [hint] = [line for line in first.log.splitlines() if "gave several items" in line]
    assert "NEARDUP_FIELDS = {'text': 'body'}" in hint
    pages = open_snapshot(store)
    found, report = statistics(pages), gather(pages)
    close_store(pages)
    assert (found.pages, found.rows, found.unjudged, found.originals) == (len(lines), len(lines), 0, 0)
    assert (report.totals.rows, report.totals.unjudged, report.unjudged) == (len(lines), 0, ())
    assert (report.crawls[0].rows, report.crawls[0].unjudged, report.crawls[0].unique) == (len(lines), 0, 0)
    assert crawl(["/api"], "RecordsSpider", NEARDUP_STORE=store).count("unchanged") == len(lines)
    named = crawl(["/api"], "RecordsSpider", NEARDUP_STORE="memory:", NEARDUP_FIELDS={"text": "body"})
    assert (named.count("unique"), " rows, " in named.log) == (len(lines), False)
