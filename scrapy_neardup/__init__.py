"""Near-duplicate pages recognised while they are crawled, and dropped or tagged.

    response + item -> Page -> Fingerprint -> candidates -> Verdict -> drop | tag | stats
      sources, extract   methods/         stores/       detector    pipelines

A page goes in, a verdict with its evidence comes out. Each module imports only those above it:

    errors, atomic       what goes wrong; files that are there whole or not at all
    model                the frozen things that travel
    hashing/, text/      hashes; text in small stages
    charset, sites       bytes to HTML; whose page a URL is
    inputs/              records and pages from files
    extract              HTML to a page
    methods/, stores/    how pages are compared; where they are kept; neither knows the other
    reservations         pages whose items are still on their way
    candidates           earlier pages that a page may be like
    detector             where a method meets a store
    groups               union-find
    exchange/, upkeep/   states exported, merged; looked into, tidied up, mended
    report/              a state as one HTML file
    evaluation/          methods measured on labelled corpora and on edits
    config               every setting, checked once
    -- from here on Scrapy --
    stats, state, notes, waiting, feeds, sources, ledger, handoff, judge
    pipelines            NearDupPipeline
    spidermiddlewares, addon
    outputs/, batch      records to files; records judged without a crawl
    commands/            scrapy neardup …
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from scrapy_neardup.addon import Addon
    from scrapy_neardup.model import Page, Verdict
    from scrapy_neardup.pipelines import DuplicatePage, NearDupPipeline, UnchangedPage

__all__ = ["Addon", "DuplicatePage", "NearDupPipeline", "Page", "UnchangedPage", "Verdict"]

_HOMES = {
    "Addon": "addon",
    "DuplicatePage": "pipelines",
    "NearDupPipeline": "pipelines",
    "Page": "model",
    "UnchangedPage": "pipelines",
    "Verdict": "model",
}


def __getattr__(name: str) -> Any:
    """Public names on demand, so that the modules below Scrapy can be used without importing it."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
