"""``scrapy neardup stats``: what is in a state, in numbers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from textwrap import fill
from typing import Any

from scrapy_neardup.commands.opening import add_store, looked
from scrapy_neardup.commands.output import progress, table, write
from scrapy_neardup.commands.wording import as_json, facts, iso, line, room
from scrapy_neardup.config import Config
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.states.statistics import Statistics, statistics
from scrapy_neardup.stores.decisions import decisions_of

NAME = "stats"
HELP = "Count what is in a state: pages, originals, copies by kind, groups, sites, room, and by what method."
EXAMPLES = """\
the words:
  original    a page that brought something new; copies are dropped for it
  copy        a page that was dropped: identical, near (edited), retitled (edited, under another title); "unknown" where
              NEARDUP_KEEP was "nothing"
  witness     a copy that differs from its original so much that later pages are compared with it too
  unjudged    a page with too little text to be judged, kept so that it need not pass twice
  not sealed  a page of a crawl that is at work or was killed, whose feed is not stored: the next crawl takes it back if
              it never is

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
        "--limit", type=int, default=10, metavar="N", help="sites that are named, those with most pages (default: 10)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def run(arguments: argparse.Namespace) -> int:
    """Print the numbers."""
    if arguments.limit < 0:
        raise SettingsError(f"--limit must be 0 or more, not {arguments.limit}.")
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
        "first_seen": iso(found.first_seen),
        "last_seen": iso(found.last_seen),
        "bytes": found.bytes,
        "bytes_per_page": round(found.bytes / found.pages, 1) if found.pages else None,
    }


def _as_text(found: Statistics, unsealed: int, place: str, recipe: Mapping[str, Any]) -> Iterator[str]:
    each = f", {found.bytes / found.pages:,.0f} bytes a page" if found.pages else ""
    yield facts(
        [
            ("state", place),
            ("room", room(found.bytes) + each),
            ("first seen", iso(found.first_seen) or "(nothing)"),
            ("last seen", iso(found.last_seen) or "(nothing)"),
        ],
        indent="",
    )
    rows = [(what, f"{many:,}", f"{many / max(found.pages, 1):.1%}") for what, many in _pages(found, unsealed)]
    yield table(["what", "pages", "of all"], rows) + "\n"
    yield facts(
        [("groups", f"{found.groups:,} of two pages or more; the largest has {found.largest:,}")],
        indent="",
    )
    if found.judged:
        said = ", ".join(f"{many:,} {name}" for name, many in sorted(found.judged.items(), reverse=True))
        yield facts([("by hand", f"{said}; see: scrapy neardup judgements")], indent="")
    if found.top:
        title = "site" if len(found.top) == found.sites else f"site ({len(found.top)} of {found.sites:,})"
        sites = [
            (line(site.name) or "(none)", f"{site.pages:,}", f"{site.copies:,}", f"{site.copies / site.pages:.1%}")
            for site in found.top
        ]
        yield table([title, "pages", "copies", "of them"], sites) + "\n"
    yield facts(_recipe(recipe), width=16, indent="")


def _pages(found: Statistics, unsealed: int) -> Iterator[tuple[str, int]]:
    yield "pages", found.pages
    yield "originals", found.originals
    for kind, many in found.passed.items():
        yield f"- like an earlier page: {line(kind)}", many
    yield "copies", found.copies
    for kind, many in found.kinds.items():
        yield f"- {line(kind)}", many
    yield "- of all copies, witnesses", found.witnesses
    if found.better:
        yield "- of all copies, better than their original", found.better
    if found.lost:
        yield "- of all copies, those whose original is gone", found.lost
    yield "unjudged", found.unjudged
    if unsealed:
        yield "of all pages, not sealed yet", unsealed


def _recipe(recipe: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """What the pages were fingerprinted by, a line each; parameters as they are given to other commands."""
    for name, value in sorted(recipe.items(), key=lambda item: item[0] != "method"):
        if isinstance(value, dict):
            given = ", ".join(f"{one}={json.dumps(what, ensure_ascii=False)}" for one, what in value.items())
            yield line(name), fill(line(given), _WIDTH) or "(none)"
        else:
            yield line(name), line(str(value))
