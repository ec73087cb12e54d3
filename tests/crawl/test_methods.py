"""Other methods in a crawl: by name, by import path, and what they cannot judge."""

from __future__ import annotations

import pytest

from scrapy_neardup.methods import METHODS
from tests.crawl.conftest import Crawl
from tests.crawl.engineless import crawl as crawl_without_engine
from tests.crawl.pages import text

ALONE = {"ADDONS": {}, "ITEM_PIPELINES": {"scrapy_neardup.NearDupPipeline": 300}, "CONCURRENT_ITEMS": 1}
ITEMS = [
    {"url": "http://a.example/1", "text": text("bridge-zh")},
    {"url": "http://b.example/2", "text": text("tea-zh")},
    {"url": "http://c.example/3", "text": text("bridge-zh")},
]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_judges_a_crawl(name: str) -> None:
    stats = crawl_without_engine(ITEMS, NEARDUP_METHOD=name, NEARDUP_STORE="memory:")
    assert (stats["neardup/unique"], stats["neardup/duplicate"], stats.get("neardup/errors", 0)) == (2, 1, 0)


def test_a_method_may_be_named_by_its_import_path(crawl: Crawl) -> None:
    name = "scrapy_neardup.methods.literature.NSHash"
    result = crawl(spider="OwnContentSpider", items=ITEMS, NEARDUP_METHOD=name, NEARDUP_STORE="memory:", **ALONE)
    assert result.urls == ["http://a.example/1", "http://b.example/2"]
    assert (result.count("unique"), result.count("duplicate"), result.count("errors")) == (2, 1, 0)


def test_a_method_that_keeps_too_much_for_a_disk_stops_the_crawl_at_its_start(crawl: Crawl) -> None:
    result = crawl(spider="OwnContentSpider", items=ITEMS, NEARDUP_METHOD="cosine", **ALONE)
    assert result.items == []
    assert "works only in memory. Set NEARDUP_STORE = 'memory:'" in result.log
