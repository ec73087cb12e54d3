"""Rows of a state that are not of its pages: what reads them tells a check whether they are whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from scrapy_neardup.judging.drops import Drop
from scrapy_neardup.states.crawls import unpacked_crawl
from scrapy_neardup.states.deliveries import unpacked
from scrapy_neardup.states.site_drops import unpacked_site_drops


class KeptRows(NamedTuple):
    """Those that begin with a prefix; ``unpack`` raises ValueError for a row that is none of them."""

    prefix: bytes
    what: str
    unpack: Callable[[bytes, bytes], object]


KEPT = (
    KeptRows(b"f", "feed", unpacked),
    KeptRows(b"c", "crawl", unpacked_crawl),
    KeptRows(b"d", "drop", Drop.of_row),
    KeptRows(b"h", "site", unpacked_site_drops),
)
