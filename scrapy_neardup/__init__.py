"""Near-duplicate pages recognised while they are crawled, and dropped or tagged.

    response + item -> Page -> Fingerprint -> candidates -> Verdict -> drop | tag | stats
                page/   methods/      stores/       judging/   crawl/

A page goes in, a verdict with its evidence comes out. Each room imports only those above it:

    errors, ages        what goes wrong; how long ago, or since when
    atomic              files that are there whole or not at all
    model               the frozen things that travel
    hashing/, text/     hashes; text in small stages
    page/               bytes of a response to a page
    inputs/             records and pages from files
    methods/, stores/   how pages are compared; where they are kept; neither knows the other
    judging/            where a method meets a store
    states/             looking after a state: statistics, forgetting, check and repair, export, import, merge
    report/             a state as one HTML file
    evaluation/         methods measured on labelled corpora and on edits
    config              every setting, checked once
    script/             the same for scripts and notebooks
    -- only the rooms below know Scrapy --
    outputs/            records to files, some by Scrapy's exporters
    crawl/              the add-on, the pipeline, and what keeps the state in step with the items
    commands/           scrapy neardup …
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from scrapy_neardup.crawl.addon import Addon
    from scrapy_neardup.crawl.pipeline import DuplicatePage, NearDupPipeline, UnchangedPage
    from scrapy_neardup.model import Page, Verdict
    from scrapy_neardup.script.deduplicator import Deduplicator

__all__ = ["Addon", "Deduplicator", "DuplicatePage", "NearDupPipeline", "Page", "UnchangedPage", "Verdict"]

_HOMES = {
    "Addon": "crawl.addon",
    "Deduplicator": "script.deduplicator",
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
