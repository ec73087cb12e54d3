"""A whole crawl with NEARDUP_MAX_PAGES and NEARDUP_TTL: what it forgets, and what it says of that."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.pages import PageStore
from tests.crawl.engineless import article, crawl_items
from tests.crawl.test_two_runs import PLYVEL

PAGES = [article(1), article(2)]


def test_a_crawl_leaves_as_many_pages_as_it_may_and_says_how_many_expired(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    scheme = "leveldb" if PLYVEL else "sqlite"
    settings: dict[str, Any] = {"NEARDUP_STORE": f"{scheme}://{tmp_path}/state", "NEARDUP_MAX_PAGES": 1}
    feed = {"FEEDS": {f"file://{tmp_path}/out.jsonl": {"format": "jsonlines"}}}
    first = crawl_items(*PAGES, **settings, **feed)
    assert first.items == PAGES, "what is not sealed yet counts, however many that is"
    assert (first.count("expired"), first.count("state/pages")) == (1, 1)
    assert "1 old pages expired." in caplog.text
    assert "The state keeps at most 1 pages and forgets the oldest (NEARDUP_MAX_PAGES)." in caplog.text
    second = crawl_items(*PAGES[1:], **settings)
    assert (second.items, second.count("expired")) == ([], 0)
    third = crawl_items(*PAGES[:1], **settings)
    assert third.items == PAGES[:1], "the older one was forgotten, and comes again"
    assert (third.count("expired"), third.count("state/pages")) == (1, 1)


def test_a_crawl_forgets_what_was_not_seen_for_the_ttl(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    url = f"sqlite://{tmp_path}/state"
    crawl_items(*PAGES, NEARDUP_STORE=url)
    age(url, days=3)
    gone = crawl_items(*PAGES, NEARDUP_TTL="2d", NEARDUP_STORE=url)
    assert gone.items == PAGES[:1]
    assert (gone.count("expired"), gone.count("unchanged")) == (1, 1)
    age(url, days=3)
    kept = crawl_items(*PAGES, NEARDUP_TTL="4d", NEARDUP_STORE=url)
    assert (kept.items, kept.count("expired")) == ([], 0)
    assert "The state forgets pages 96 hours after they were last seen (NEARDUP_TTL)." in caplog.text


def age(url: str, days: int) -> None:
    """Have the first of ``PAGES`` be one that was last seen so many days ago."""
    store: PageStore = open_store(url, None)
    [record] = [record for record in store.records() if record.url == PAGES[0]["url"]]
    store.forget([record.id])
    id = time.time_ns() - days * 86_400 * 10**9
    store.add(replace(record, id=id, original=id), seen=id / 1e9)
    close_store(store)
