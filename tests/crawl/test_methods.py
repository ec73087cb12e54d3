"""Other methods in a crawl: by name, by import path, and what they cannot judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import NearDupError
from tests.crawl.engineless import crawl_items
from tests.crawl.pages import text

ITEMS: list[dict[str, Any]] = [
    {"url": "http://a.example/1", "text": text("bridge-zh")},
    {"url": "http://b.example/2", "text": text("tea-zh")},
    {"url": "http://c.example/3", "text": text("bridge-zh")},
]


@pytest.mark.parametrize("name", ["minhash", "scrapy_neardup.methods.literature.NSHash"])
def test_a_method_is_named_or_imported(name: str) -> None:
    result = crawl_items(*ITEMS, NEARDUP_METHOD=name, NEARDUP_STORE="memory:")
    assert result.urls == ["http://a.example/1", "http://b.example/2"]
    assert (result.count("unique"), result.count("duplicate"), result.count("errors")) == (2, 1, 0)


def test_a_method_that_keeps_too_much_for_a_disk_stops_the_crawl_and_leaves_no_state(tmp_path: Path) -> None:
    with pytest.raises(NearDupError, match=r"works only in memory\. Set NEARDUP_STORE = 'memory:'"):
        crawl_items(*ITEMS, NEARDUP_METHOD="cosine", NEARDUP_STORE=f"sqlite://{tmp_path}/state")
    assert not list(tmp_path.iterdir())
