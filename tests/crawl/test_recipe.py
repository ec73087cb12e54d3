"""What may be changed between two crawls on one state, what may not, and the way out."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.state.layout import meta_key
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.recipe import pack_recipe
from tests.crawl.engineless import Passed, article, crawl_items


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/state.sqlite"


def by_version(url: str, name: str, **samples: str) -> None:
    """Have the state as another version of trafilatura would have written it."""
    store = open_store(url, None)
    recipe = {**store.recipe, "extractor": name, "samples": {**store.recipe["samples"], **samples}}
    store.write(Changes({meta_key("recipe"): pack_recipe(recipe)}))
    close_store(store)


NEWS = [article(1), article(2), article(2, 1)]


def crawled(url: str, **settings: Any) -> Passed:
    return crawl_items(*NEWS, NEARDUP_STORE=url, **settings)


def test_a_line_says_that_a_threshold_was_changed(url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert crawled(url).items == NEWS[:2]
    assert "now decides by" not in caplog.text
    second = crawled(url, NEARDUP_PARAMETERS={"base": 0.6, "certain": 1}, NEARDUP_POLICY={"excerpt": "drop"})
    assert (second.items, second.count("unchanged"), second.count("duplicate")) == ([], 2, 1)
    changed = "state.sqlite now decides by certain = 1, base = 0.6, NEARDUP_POLICY excerpt = drop; before by"
    assert f"{changed} 0.76, 0.52, tag." in caplog.text


def test_another_version_that_reads_alike_is_warned_of_once(url: str, caplog: pytest.LogCaptureFixture) -> None:
    crawled(url)
    by_version(url, "visible prose and trafilatura 1.9 fast")
    warned = crawled(url)
    assert (warned.items, warned.count("unchanged")) == ([], 2)
    assert "the extractor was visible prose and trafilatura 1.9 fast and is visible prose and traf" in caplog.text
    assert "Both read the test samples alike, so the state is used." in caplog.text
    store = open_store(url, None)
    assert store.recipe["extractor"].startswith("visible prose and trafilatura 2.")
    close_store(store)


def test_a_method_that_keeps_too_much_for_a_disk_stops_the_crawl_and_leaves_no_state(tmp_path: Path, url: str) -> None:
    with pytest.raises(NearDupError, match=r"works only in memory\. Set NEARDUP_STORE = 'memory:'"):
        crawled(url, NEARDUP_METHOD="cosine")
    assert not list(tmp_path.iterdir())
    imported = crawled("memory:", NEARDUP_METHOD="scrapy_neardup.methods.literature.NSHash")
    assert (imported.items, imported.count("errors")) == (NEWS[:2], 0)
