"""Recognise near-duplicate pages during a crawl, and drop or tag their items.

    response + item -> Page -> Fingerprint -> candidates -> Verdict -> drop | tag | stats
                page/   methods/      state/        judge/     crawl/

A page goes in, a verdict with its evidence comes out. ARCHITECTURE.md describes the rooms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.9.0"

if TYPE_CHECKING:
    from scrapy_neardup.crawl.pipeline import Addon, DuplicatePage, NearDupPipeline, UnchangedPage
    from scrapy_neardup.deduplicator import Deduplicator
    from scrapy_neardup.model import Page, Verdict

__all__ = ["Addon", "Deduplicator", "DuplicatePage", "NearDupPipeline", "Page", "UnchangedPage", "Verdict"]

_HOMES = {
    "Addon": "crawl.pipeline",
    "Deduplicator": "deduplicator",
    "DuplicatePage": "crawl.pipeline",
    "NearDupPipeline": "crawl.pipeline",
    "Page": "model",
    "UnchangedPage": "crawl.pipeline",
    "Verdict": "model",
}


def __getattr__(name: str) -> Any:
    """Public names on demand: the rooms above ``crawl`` work without Scrapy."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
