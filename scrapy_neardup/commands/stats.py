"""``scrapy neardup stats``: what is in a state, in numbers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from textwrap import fill
from typing import Any

from scrapy_neardup.commands.opening import add_store, looked
from scrapy_neardup.commands.output import as_json, facts, iso, line, progress, room, table, write
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.maintenance.statistics import Statistics, statistics
from scrapy_neardup.maintenance.tables import SiteDrops
from scrapy_neardup.settings import Config
from scrapy_neardup.state.pages import decisions_of

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
    """Options of the command."""
    add_store(parser)
    parser.add_argument(
        "--limit", type=int, default=10, metavar="N", help="sites to name, those with most pages (default: 10)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Print the numbers."""
    if arguments.limit < 0:
        raise SettingsError(f"--limit is {arguments.limit}. Give 0 or more.")
    with looked(arguments.store, Config.from_settings(arguments.settings)) as store:
        found, unsealed = statistics(store, arguments.limit, progress), store.pending().pages
        place, recipe, decided = f"{store.scheme}: {store.location}", store.recipe, decisions_of(store)
        location = {"store": store.location, "backend": store.scheme}
        moment = {"as_of": iso(store.as_of), "in_use": store.is_held, "unsealed": unsealed}
    if arguments.json:
        write(as_json({**location, **moment, **as_data(found), "recipe": recipe, "decisions": decided}) + "\n")
    else:
        write("\n".join(_as_text(found, unsealed, place, {**recipe, **({"decides by": decided} if decided else {})})))
    return 0


def as_data(found: Statistics) -> dict[str, Any]:
    """The numbers, for JSON."""
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
        "dropped_sites": [{**asdict(site), "crawled": iso(site.crawled)} for site in found.dropped],
        "first_seen": iso(found.first_seen),
        "last_seen": iso(found.last_seen),
        "bytes": found.bytes,
        "bytes_per_page": round(found.bytes / found.pages, 1) if found.pages else None,
    }


def _as_text(found: Statistics, unsealed: int, place: str, recipe: Mapping[str, Any]) -> Iterator[str]:
    each = f", {found.bytes / found.pages:,.0f} bytes per page" if found.pages else ""
    yield facts(
        [
            ("state", place),
            ("size", room(found.bytes) + each),
            ("first seen", iso(found.first_seen) or "(nothing)"),
            ("last seen", iso(found.last_seen) or "(nothing)"),
        ],
        indent="",
    )
    rows = [(what, f"{many:,}", f"{many / max(found.pages, 1):.1%}") for what, many in _pages(found, unsealed)]
    yield table(["what", "pages", "of all"], rows) + "\n"
    yield facts(
        [("groups", f"{found.groups:,} of two or more pages; the largest has {found.largest:,}")],
        indent="",
    )
    if found.judged:
        said = ", ".join(f"{many:,} {name}" for name, many in sorted(found.judged.items(), reverse=True))
        yield facts([("manual", f"{said}; see: scrapy neardup judgements")], indent="")
    if found.top:
        title = "site" if len(found.top) == found.sites else f"site ({len(found.top)} of {found.sites:,})"
        sites = [
            (line(site.name) or "(none)", f"{site.pages:,}", f"{site.copies:,}", f"{site.copies / site.pages:.1%}")
            for site in found.top
        ]
        yield table([title, "pages", "copies", "of them"], sites) + "\n"
    if found.dropped:
        yield table(["site, last crawls", "pages", "dropped", "of them", "delivered"], _drops(found.dropped)) + "\n"
    yield facts(_recipe(recipe), width=16, indent="")


def _drops(sites: Sequence[SiteDrops]) -> list[tuple[str, ...]]:
    return [
        (line(one.site), f"{one.pages:,}", f"{one.drops:,}", f"{one.drops / one.pages:.1%}", f"{one.delivered:,}")
        for one in sites
    ]


def _pages(found: Statistics, unsealed: int) -> Iterator[tuple[str, int]]:
    yield "pages", found.pages
    yield "originals", found.originals
    for kind, many in found.passed.items():
        yield f"- similar to an earlier page: {line(kind)}", many
    yield "copies", found.copies
    for kind, many in found.kinds.items():
        yield f"- {line(kind)}", many
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
    """What the pages were fingerprinted by, a line each; parameters as they are given to other commands."""
    for name, value in sorted(recipe.items(), key=lambda item: item[0] != "method"):
        if isinstance(value, dict):
            given = ", ".join(f"{one}={json.dumps(what, ensure_ascii=False)}" for one, what in value.items())
            yield line(name), fill(line(given), _WIDTH) or "(none)"
        else:
            yield line(name), line(str(value))
