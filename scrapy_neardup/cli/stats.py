"""``scrapy neardup stats``: count the contents of a state."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from textwrap import fill
from typing import Any

from scrapy_neardup.cli.opening import add_store, snapshot_state
from scrapy_neardup.cli.options import add_json, check_minimum, config_of, format_parameters
from scrapy_neardup.cli.output import (
    format_facts,
    format_size,
    format_table,
    format_time,
    progress,
    to_line,
    write_result,
)
from scrapy_neardup.maintenance.statistics import Statistics, statistics
from scrapy_neardup.state.history import decisions_of

NAME = "stats"
HELP = "Count the contents of a state: pages, originals, copies by kind, groups, sites, size."
EXAMPLES = """\
words:
  original    a page with a new article; its copies are dropped
  copy        a dropped page: identical, near (edited), retitled (edited, under another title), or "unknown" if
              NEARDUP_KEEP was "nothing"
  witness     a copy that differs so much from its original that later pages are compared with it too
  row         one of several items of a response without their own texts; it is compared with no other page, and dropped
              only if it comes again unchanged; to have rows judged, set NEARDUP_FIELDS = {'text': …}
  unjudged    a page with too little text; the state keeps it so that it passes only once
  delivered   recently dropped pages that an earlier crawl delivered with another text; the counts cover about the last
              1,000 pages of a site; to take drops back: scrapy neardup keep --last --site SITE
  unsealed    a page of a running or killed crawl whose feed is not stored; if it never is, the next crawl rolls the
              page back

examples:
  scrapy neardup stats
  scrapy neardup stats --store leveldb:///var/crawls/state.leveldb --limit 50
  scrapy neardup stats --json
"""

_WIDTH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_store(parser)
    parser.add_argument(
        "--limit", type=int, default=10, metavar="N", help="sites to name, those with most pages (default: 10)"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the counts."""
    check_minimum(arguments, "limit", 0)
    with snapshot_state(arguments.store, config_of(arguments)) as store:
        found, unsealed = statistics(store, arguments.limit, progress), store.pending().pages
        recipe, decisions = store.recipe, decisions_of(store)
        place = f"{store.scheme}: {store.location}"
        data = {
            "store": store.location,
            "backend": store.scheme,
            "as_of": format_time(store.as_of),
            "in_use": store.is_held,
            "unsealed": unsealed,
            **_data(found),
            "recipe": recipe,
            "decisions": decisions,
        }
    shown = {**recipe, **({"decides by": decisions} if decisions else {})}
    write_result(arguments, data, _lines(found, unsealed, place, shown))
    return 0


def _data(found: Statistics) -> dict[str, Any]:
    return {
        "pages": found.pages,
        "originals": found.originals,
        "copies": found.copies,
        "rows": found.rows,
        "unjudged": found.unjudged,
        "kinds": found.kinds,
        "originals_like_others": found.passed,
        "witnesses": found.witnesses,
        "better": found.better,
        "copies_without_original": found.lost,
        "judged_by_hand": found.judged,
        "groups": found.groups,
        "largest_group": found.largest,
        "sites": found.sites,
        "top_sites": [asdict(site) for site in found.top],
        "dropped_sites": [{**asdict(site), "crawled": format_time(site.crawled)} for site in found.dropped],
        "first_seen": format_time(found.first_seen),
        "last_seen": format_time(found.last_seen),
        "bytes": found.bytes,
        "bytes_per_page": round(found.bytes / found.pages, 1) if found.pages else None,
    }


def _lines(found: Statistics, unsealed: int, place: str, recipe: Mapping[str, Any]) -> Iterator[str]:
    per_page = f", {found.bytes / found.pages:,.0f} bytes per page" if found.pages else ""
    yield _facts(
        ("state", place),
        ("size", format_size(found.bytes) + per_page),
        ("first seen", format_time(found.first_seen) or "(nothing)"),
        ("last seen", format_time(found.last_seen) or "(nothing)"),
    )
    rows = [(what, f"{many:,}", f"{many / max(found.pages, 1):.1%}") for what, many in _pages(found, unsealed)]
    yield format_table(["what", "pages", "of all"], rows) + "\n"
    yield _facts(("groups", f"{found.groups:,} of two or more pages; the largest has {found.largest:,}"))
    if found.judged:
        verdicts = ", ".join(f"{many:,} {name}" for name, many in sorted(found.judged.items(), reverse=True))
        yield _facts(("manual", f"{verdicts}; see: scrapy neardup judgements"))
    if found.top:
        title = "site" if len(found.top) == found.sites else f"site ({len(found.top)} of {found.sites:,})"
        sites = [_site(one.name or "(none)", one.pages, one.copies) for one in found.top]
        yield format_table([title, "pages", "copies", "of them"], sites) + "\n"
    if found.dropped:
        drops = [(*_site(one.site, one.pages, one.drops), f"{one.delivered:,}") for one in found.dropped]
        yield format_table(["site, last crawls", "pages", "dropped", "of them", "delivered"], drops) + "\n"
    yield format_facts(_recipe(recipe), width=16, indent="")


def _facts(*pairs: tuple[str, object]) -> str:
    return format_facts(pairs, indent="")


def _site(name: str, pages: int, part: int) -> tuple[str, ...]:
    return to_line(name), f"{pages:,}", f"{part:,}", f"{part / pages:.1%}"


def _pages(found: Statistics, unsealed: int) -> Iterator[tuple[str, int]]:
    yield "pages", found.pages
    yield "originals", found.originals
    for kind, many in found.passed.items():
        yield f"- similar to an earlier page: {to_line(kind)}", many
    yield "copies", found.copies
    for kind, many in found.kinds.items():
        yield f"- {to_line(kind)}", many
    yield "- witnesses among the copies", found.witnesses
    if found.better:
        yield "- copies that are better than their original", found.better
    if found.lost:
        yield "- copies without an original (updated or forgotten)", found.lost
    if found.rows:
        yield "rows of listings, not judged", found.rows
    yield "unjudged", found.unjudged
    if unsealed:
        yield "unsealed among all pages", unsealed


def _recipe(recipe: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Yield the entries of a recipe, the method first."""
    for name, value in sorted(recipe.items(), key=lambda item: item[0] != "method"):
        if isinstance(value, dict):
            yield to_line(name), fill(to_line(format_parameters(value, ", ", wide=True)), _WIDTH) or "(none)"
        else:
            yield to_line(name), to_line(str(value))
