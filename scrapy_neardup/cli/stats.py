"""``scrapy neardup stats``: count the contents of a state."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from textwrap import fill
from typing import Any

from scrapy_neardup.cli.command import JSON, STATE, command, config_of, format_parameters, limit_option
from scrapy_neardup.cli.opening import snapshot_state
from scrapy_neardup.cli.output import format_facts, format_table, present, progress, to_line
from scrapy_neardup.inspect import as_data, utc_time
from scrapy_neardup.judge.recipes import decisions_of
from scrapy_neardup.maintenance.statistics import Statistics, statistics
from scrapy_neardup.report.formats import format_size

_WIDTH = 100


@command(
    "stats",
    *STATE,
    limit_option(10, "sites to name, those with most pages (default: 10)"),
    JSON,
    examples="""\
words:
  original    a page with a new article; its copies are dropped
  copy        a dropped page: identical, near (edited), retitled (edited, under another title), or "unknown" if
              NEARDUP_KEEP was "nothing"
  variant     a copy that differs so much from its original that later pages are compared with it too
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
""",
)
def stats(arguments: argparse.Namespace) -> int:
    """Print the counts."""
    with snapshot_state(arguments.store, config_of(arguments)) as store:
        found, unsealed = statistics(store, arguments.limit, progress), store.pending().pages
        data = {
            "store": store.location,
            "backend": store.scheme,
            "as_of": utc_time(store.as_of),
            "in_use": store.is_held,
            "unsealed": unsealed,
            **as_data(found),
            "dropped_sites": [{**asdict(site), "crawled": utc_time(site.crawled)} for site in found.dropped_sites],
            "first_seen": utc_time(found.first_seen),
            "last_seen": utc_time(found.last_seen),
            "bytes_per_page": round(found.bytes / found.pages, 1) if found.pages else None,
            "recipe": store.recipe,
            "decisions": decisions_of(store),
        }
    present(arguments, data, _lines(found, data))
    return 0


def _lines(found: Statistics, data: dict[str, Any]) -> Iterator[str]:
    per_page = f", {found.bytes / found.pages:,.0f} bytes per page" if found.pages else ""
    yield _facts(
        ("state", f"{data['backend']}: {data['store']}"),
        ("size", format_size(found.bytes) + per_page),
        ("first seen", data["first_seen"] or "(nothing)"),
        ("last seen", data["last_seen"] or "(nothing)"),
    )
    counts = _page_counts(found, data["unsealed"])
    rows = [(what, f"{many:,}", f"{many / max(found.pages, 1):.1%}") for what, many in counts]
    yield format_table(["what", "pages", "of all"], rows) + "\n"
    yield _facts(("groups", f"{found.groups:,} of two or more pages; the largest has {found.largest_group:,}"))
    if found.judged_by_hand:
        verdicts = ", ".join(f"{many:,} {name}" for name, many in sorted(found.judged_by_hand.items(), reverse=True))
        yield _facts(("manual", f"{verdicts}; see: scrapy neardup judgements"))
    if found.top_sites:
        title = "site" if len(found.top_sites) == found.sites else f"site ({len(found.top_sites)} of {found.sites:,})"
        sites = [_site_cells(one.name or "(none)", one.pages, one.copies) for one in found.top_sites]
        yield format_table([title, "pages", "copies", "of them"], sites) + "\n"
    if found.dropped_sites:
        drops = [(*_site_cells(one.site, one.pages, one.drops), f"{one.delivered:,}") for one in found.dropped_sites]
        yield format_table(["site, last crawls", "pages", "dropped", "of them", "delivered"], drops) + "\n"
    decisions = {"decides by": data["decisions"]} if data["decisions"] else {}
    recipe = sorted({**data["recipe"], **decisions}.items(), key=lambda item: item[0] != "method")
    yield format_facts(((to_line(name), _format_entry(value)) for name, value in recipe), width=16, indent="")


def _facts(*pairs: tuple[str, object]) -> str:
    return format_facts(pairs, indent="")


def _site_cells(name: str, pages: int, part: int) -> tuple[str, ...]:
    return to_line(name), f"{pages:,}", f"{part:,}", f"{part / pages:.1%}"


def _page_counts(found: Statistics, unsealed: int) -> Iterator[tuple[str, int]]:
    yield "pages", found.pages
    yield "originals", found.originals
    yield from (
        (f"- similar to an earlier page: {to_line(kind)}", many) for kind, many in found.originals_like_others.items()
    )
    yield "copies", found.copies
    yield from ((f"- {to_line(kind)}", many) for kind, many in found.kinds.items())
    yield "- variants among the copies", found.variants
    if found.better:
        yield "- copies that are better than their original", found.better
    if found.copies_without_original:
        yield "- copies without an original (updated or forgotten)", found.copies_without_original
    if found.rows:
        yield "rows of listings, not judged", found.rows
    yield "unjudged", found.unjudged
    if unsealed:
        yield "unsealed among all pages", unsealed


def _format_entry(value: Any) -> str:
    """Return an entry of a recipe."""
    if isinstance(value, dict):
        return fill(to_line(format_parameters(value, ", ", wide=True)), _WIDTH) or "(none)"
    return to_line(str(value))
