"""What may be changed between two crawls on one state, what may not, and the way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.kv.base import Changes
from scrapy_neardup.state.layout import meta_key
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.recipe import pack_recipe
from tests.cli import run
from tests.crawl.conftest import NEWS, Crawl, Site


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/state.sqlite"


def by_version(url: str, name: str, **samples: str) -> None:
    """Have the state as another version of trafilatura would have written it."""
    store = open_store(url, None)
    recipe = {**store.recipe, "extractor": name, "samples": {**store.recipe["samples"], **samples}}
    store.write(Changes({meta_key("recipe"): pack_recipe(recipe)}))
    close_store(store)


def test_a_threshold_is_changed_between_two_crawls_and_a_line_says_so(news: Site, crawl: Crawl, url: str) -> None:
    def crawled(**settings: Any) -> Any:
        return crawl(NEWS, NEARDUP_STORE=url, **settings)

    first = crawled()
    assert first.paths == NEWS[:2]
    assert "now decides by" not in first.log
    second = crawled(NEARDUP_PARAMETERS={"base": 0.6, "certain": 1}, NEARDUP_POLICY={"excerpt": "drop"})
    assert (second.items, second.count("unchanged"), second.count("duplicate")) == ([], 2, 1)
    changed = "state.sqlite now decides by certain = 1, base = 0.6, NEARDUP_POLICY excerpt = drop; before by"
    assert f"{changed} 0.76, 0.52, tag." in second.log


def test_another_version_that_reads_alike_is_warned_of_once(news: Site, crawl: Crawl, url: str) -> None:
    crawl(NEWS, NEARDUP_STORE=url)
    by_version(url, "visible prose and trafilatura 1.9 fast")
    strict = crawl(NEWS, NEARDUP_STORE=url, NEARDUP_STRICT=True)
    assert "response_received_count" not in strict.stats
    assert "NEARDUP_STRICT refuses it" in strict.log
    warned = crawl(NEWS, NEARDUP_STORE=url)
    assert (warned.items, warned.count("unchanged")) == ([], 2)
    assert "the extractor was visible prose and trafilatura 1.9 fast and is visible prose and traf" in warned.log
    assert "Both read the test samples alike, so the state is used." in warned.log
    store = open_store(url, None)
    assert store.recipe["extractor"].startswith("visible prose and trafilatura 2.")
    close_store(store)


def test_one_that_reads_otherwise_is_refused_until_the_state_is_migrated(news: Site, crawl: Crawl, url: str) -> None:
    crawl(NEWS, NEARDUP_STORE=url)
    by_version(url, "visible prose and trafilatura 1.9 fast", extractor="0" * 16)
    refused = crawl(NEWS, NEARDUP_STORE=url)
    assert "response_received_count" not in refused.stats
    assert "which reads the test samples differently. Fingerprints of two recipes cannot be compared" in refused.log
    assert "scrapy neardup migrate" in refused.log
    assert run("migrate", "--store", url) == 0
    again = crawl(NEWS, NEARDUP_STORE=url)
    assert (again.items, again.count("unchanged"), again.count("duplicate")) == ([], 2, 1)
