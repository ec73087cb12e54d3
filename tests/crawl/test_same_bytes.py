"""Crawls over pages with the same bytes at the same URLs: they are not read again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.crawl.conftest import Crawl, Site
from tests.crawl.pages import html

SLUGS = ["bridge-zh", "goats-en", "honey-zh"]


@pytest.mark.parametrize("workers", [0, 2])
def test_known_bytes_are_not_read_in_the_next_crawl(site: Site, crawl: Crawl, workers: int) -> None:
    site.content |= {f"/{copy}/{slug}": html(slug) for copy in "ab" for slug in SLUGS} | {"/short": "<p>见附件。"}
    settings: dict[str, Any] = {"CONCURRENT_REQUESTS": 1, "NEARDUP_WORKERS": workers}
    first, second = (crawl(list(site.content), **settings) for _ in range(2))
    assert (first.count("same_bytes"), first.count("duplicate")) == (0, 3)
    assert (second.count("same_bytes"), second.count("unchanged"), second.count("duplicate")) == (4, 4, 3)
    assert (second.count("extraction/article"), second.items) == (3, [])
