"""A whole crawl with NEARDUP_MAX_PAGES and NEARDUP_TTL: what it forgets, and what it says of that."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from tests.crawl.engineless import article, crawl_items
from tests.crawl.test_two_runs import PLYVEL

PAGES = [article(1), article(2)]


def test_a_crawl_leaves_what_it_may_and_says_how_many_expired(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    scheme = "leveldb" if PLYVEL else "sqlite"
    settings: dict[str, Any] = {"NEARDUP_STORE": f"{scheme}://{tmp_path}/state", "NEARDUP_MAX_PAGES": 1}
    feed = {"FEEDS": {f"file://{tmp_path}/out.jsonl": {"format": "jsonlines"}}}
    first = crawl_items(*PAGES, **settings, **feed)
    assert first.items == PAGES, "what is not sealed yet counts, however many that is"
    assert (first.count("expired"), first.count("state/pages")) == (1, 1)
    assert "1 old pages expired." in caplog.text
    second = crawl_items(*PAGES[1:], **settings)
    assert (second.items, second.count("expired")) == ([], 0)
    third = crawl_items(*PAGES[:1], **settings)
    assert third.items == PAGES[:1], "the older one was forgotten, and comes again"
    assert (third.count("expired"), third.count("state/pages")) == (1, 1)
