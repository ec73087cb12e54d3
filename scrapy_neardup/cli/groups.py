"""``scrapy neardup groups``: list the groups of a state, each original with its copies."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.cli.opening import add_store, snapshot_state
from scrapy_neardup.cli.options import add_json, check_minimum, config_of
from scrapy_neardup.cli.output import as_json, format_count, format_rest, format_time, progress, to_line, write
from scrapy_neardup.judge.manual_verdicts import ManualVerdicts
from scrapy_neardup.maintenance.scan import members
from scrapy_neardup.state.pages import PageStore, leader

NAME = "groups"
HELP = "List the groups of a state, the largest first: each original with its copies."
EXAMPLES = """\
groups:
  A group is an original and its copies. Pages are compared with originals only, so groups do not drift. If an original
  is no longer in the state (updated or forgotten), its copies stay a group, with original null.

one line of JSON:
  {"similar_id": "17b9…", "size": 3, "original": "https://…", "first_seen": "2025-…", "pages": [{"url": "https://…",
  "first_seen": "2025-…", "similarity": 0.93, "kind": "near", "title": "…", "judged": null}, …]}
  Pages are ordered by the time they were first seen. The original has kind null and similarity 1. similar_id is the
  same as in tagged items. If a better page has superseded the first one (NEARDUP_KEEP_POLICY), "original" is the better
  page, and the page with kind null is the first one. judged is the manual verdict: keep, copy, or null.

examples:
  scrapy neardup groups
  scrapy neardup groups -o groups.jsonl --min 3
  scrapy neardup groups --limit 100 --json | less
"""

#: Groups that a terminal shows by default, and pages of each.
_SHOWN, _PAGES = 20, 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_store(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write JSON lines to this file, all or nothing")
    parser.add_argument("--min", type=int, default=2, metavar="N", help="smallest group to list (default: 2)")
    parser.add_argument(
        "--limit", type=int, metavar="N", help="groups to list (default: all, on a terminal 20; 0: all)"
    )
    add_json(parser, "print JSON lines, also on a terminal")


def run(arguments: argparse.Namespace) -> int:
    """Print the groups, or write them to a file."""
    check_minimum(arguments, "min", 1)
    check_minimum(arguments, "limit", 0)
    for_terminal = not arguments.output and not arguments.json and sys.stdout.isatty()
    limit = arguments.limit if arguments.limit is not None else _SHOWN if for_terminal else 0
    with snapshot_state(arguments.store, config_of(arguments)) as store:
        found = list(members(progress(store.records(), store.pages)).groups(arguments.min))
        listed = found[: limit or None]
        if for_terminal:
            for id, ids in listed:
                write("".join(_lines(store, id, ids)))
            rest = len(found) - len(listed)
            more = f", {rest:,} not shown; --limit 0 shows all" if rest else ""
            write(f"{format_count(len(found), 'group')}{more}.\n")
            return 0
        groups = (_group(store, id, ids) for id, ids in progress(listed, len(listed), "groups"))
        if arguments.output:
            with replace_file(Path(arguments.output)) as draft, draft.open("w", encoding="utf-8") as file:
                file.writelines(as_json(group, indent=None, wide=True) + "\n" for group in groups)
        else:
            for group in groups:
                write(as_json(group, indent=None) + "\n")
    return 0


def _group(store: PageStore, id: int, ids: list[int]) -> dict[str, Any]:
    """Return a group as plain data."""
    original = leader(store, id) or store.record(id)
    return {
        "similar_id": f"{id:016x}",
        "size": len(ids),
        "original": original.url if original else None,
        "first_seen": format_time(original.first_seen) if original else None,
        "pages": list(_pages(store, ids)),
    }


def _pages(store: PageStore, ids: Iterable[int]) -> Iterator[dict[str, Any]]:
    verdicts = ManualVerdicts(store)
    for id in ids:
        record, evidence = store.record(id), store.evidence(id)
        if record is None:
            continue
        copy = record.original != record.id
        similarity = evidence.similarity if copy and evidence else record.similarity
        verdict = verdicts.of(record.url)
        yield {
            "url": record.url,
            "first_seen": format_time(record.first_seen),
            "similarity": round(similarity or record.similarity, 4),
            "kind": (evidence.likeness or None) if copy and evidence else None,
            "title": (evidence.title or None) if evidence else None,
            "judged": verdict.kind.value if verdict else None,
        }


def _lines(store: PageStore, id: int, ids: list[int]) -> Iterator[str]:
    """Yield a group as lines for a terminal."""
    original = leader(store, id) or store.record(id)
    yield f"{id:016x}  {format_count(len(ids), 'page')}\n"
    if original is None:
        yield "  (the original is no longer in the state: updated or forgotten)\n"
    for one, page in zip(ids, _pages(store, islice(ids, _PAGES)), strict=False):
        kind = "superseded" if one == id else f"{page['similarity']:.2f} {to_line(page['kind'] or 'copy')}"
        kind = "original" if original and one == original.id else kind
        title = f'  "{to_line(page["title"])}"' if page["title"] else ""
        judged = f"  (manual verdict: {page['judged']})" if page["judged"] else ""
        yield f"  {page['first_seen']}  {kind:<14}  {to_line(page['url'])}{title}{judged}\n"
    yield format_rest(len(ids) - _PAGES) + "\n"
