"""Recognise near-duplicate pages during a crawl, and drop or tag their items.

    response + item -> Page -> Fingerprint -> candidates -> Verdict -> drop | tag | stats
                page/   methods/      state/        judge/     crawl/

A page goes in, a verdict with its evidence comes out. Each room imports only those above it:

    errors, ages        error classes; ages and times in settings
    atomic              files written completely or not at all
    model               frozen dataclasses: Page, Fingerprint, Verdict
    hashing/, text/     hashes; stages of text processing
    page/               from the bytes of a response to a Page
    files/              records and pages from files, and records to files
    methods/            how to compare pages
    state/, server/     where pages are stored: on a disk, on a server
    judge/              judges pages with a method and a store
    maintenance/        maintenance of a state: statistics, forget, check, repair, export, import, merge
    report/             a state as one HTML file
    lab/                measures methods on labelled corpora and on edits
    settings            every setting, checked once
    deduplicator        the Deduplicator for scripts and notebooks
    inspect/            what is known of a page, a pair or a state, as plain data
    -- only the rooms below know Scrapy --
    crawl/              the add-on, the pipeline, and the session of a crawl
    cli/                scrapy neardup …
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from scrapy_neardup.crawl.addon import Addon
    from scrapy_neardup.crawl.pipeline import DuplicatePage, NearDupPipeline, UnchangedPage
    from scrapy_neardup.deduplicator import Deduplicator
    from scrapy_neardup.model import Page, Verdict

__all__ = ["Addon", "Deduplicator", "DuplicatePage", "NearDupPipeline", "Page", "UnchangedPage", "Verdict"]

_HOMES = {
    "Addon": "crawl.addon",
    "Deduplicator": "deduplicator",
    "DuplicatePage": "crawl.pipeline",
    "NearDupPipeline": "crawl.pipeline",
    "Page": "model",
    "UnchangedPage": "crawl.pipeline",
    "Verdict": "model",
}


def __getattr__(name: str) -> Any:
    """Public names on demand, so that the modules below Scrapy can be used without importing it."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
