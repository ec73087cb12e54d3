"""A whole crawl with NEARDUP_MAX_PAGES and NEARDUP_TTL: what it forgets, and what it says of that."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.pages import PageStore
from tests.crawl.conftest import ONE_BY_ONE, Crawl, Site
from tests.crawl.pages import html
from tests.crawl.test_two_runs import PLYVEL

PATHS = ["/bridge-zh", "/tea-zh"]


@pytest.fixture
def pages(site: Site) -> Site:
    site.content |= {path: html(path[1:]) for path in PATHS}
    return site


def test_a_crawl_leaves_as_many_pages_as_it_may_and_says_how_many_expired(
    pages: Site, crawl: Crawl, tmp_path: Path
) -> None:
    scheme = "leveldb" if PLYVEL else "sqlite"
    settings = {"NEARDUP_STORE": f"{scheme}://{tmp_path}/state", "NEARDUP_MAX_PAGES": 1, **ONE_BY_ONE}
    first = crawl(PATHS, **settings)
    assert first.paths == PATHS, "what is not sealed yet counts, however many that is"
    assert (first.count("expired"), first.count("state/pages")) == (1, 1)
    assert "1 old pages expired." in first.log
    assert "The state keeps at most 1 pages and forgets the oldest (NEARDUP_MAX_PAGES)." in first.log
    second = crawl(PATHS[1:], **settings)
    assert (second.items, second.count("expired")) == ([], 0)
    third = crawl(PATHS[:1], **settings)
    assert third.paths == PATHS[:1], "the older one was forgotten, and comes again"
    assert (third.count("expired"), third.count("state/pages")) == (1, 1)


def test_a_crawl_forgets_what_was_not_seen_for_the_ttl(pages: Site, crawl: Crawl, tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/state"
    settings = {"NEARDUP_STORE": url, **ONE_BY_ONE}
    crawl(PATHS, **settings)
    age(url, days=3)
    gone = crawl(PATHS, NEARDUP_TTL="2d", **settings)
    assert gone.paths == PATHS[:1]
    assert (gone.count("expired"), gone.count("unchanged")) == (1, 1)
    age(url, days=3)
    kept = crawl(PATHS, NEARDUP_TTL="4d", **settings)
    assert (kept.items, kept.count("expired")) == ([], 0)
    assert "The state forgets pages 96 hours after they were last seen (NEARDUP_TTL)." in kept.log


def age(url: str, days: int) -> None:
    """Have the first page of ``PATHS`` be one that was last seen so many days ago."""
    store: PageStore = open_store(url, None)
    [record] = [record for record in store.records() if record.url.endswith(PATHS[0])]
    store.forget([record.id])
    id = time.time_ns() - days * 86_400 * 10**9
    store.add(replace(record, id=id, original=id), seen=id / 1e9)
    close_store(store)
