"""``scrapy neardup groups``: which pages of a state are copies of which."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.commands.opening import add_store, looked
from scrapy_neardup.commands.output import as_json, counted, iso, line, progress, write
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.judge.manual_verdicts import ManualVerdicts
from scrapy_neardup.maintenance.scan import members
from scrapy_neardup.settings import Config
from scrapy_neardup.state.pages import PageStore, leader
from scrapy_neardup.state.record import Record

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

#: Groups that a terminal is shown unless more are asked for, and pages of each.
_SHOWN, _PAGES = 20, 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add_store(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write JSON lines to this file, all or nothing")
    parser.add_argument("--min", type=int, default=2, metavar="N", help="smallest group to list (default: 2)")
    parser.add_argument(
        "--limit", type=int, metavar="N", help="groups to list (default: all, on a terminal 20; 0: all)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON lines, also on a terminal")


def run(arguments: argparse.Namespace) -> int:
    """Print the groups, or write them to a file."""
    if arguments.min < 1:
        raise SettingsError(f"--min is {arguments.min}. Give 1 or more.")
    if arguments.limit is not None and arguments.limit < 0:
        raise SettingsError(f"--limit is {arguments.limit}. Give 0 (all) or more.")
    readable = not arguments.output and not arguments.json and sys.stdout.isatty()
    limit = arguments.limit if arguments.limit is not None else _SHOWN if readable else 0
    with looked(arguments.store, Config.from_settings(arguments.settings)) as store:
        found = list(members(progress(store.records(), store.pages)).groups(arguments.min))
        few = found[: limit or None]
        if readable:
            _show(store, few, len(found))
        elif arguments.output:
            with replace_file(Path(arguments.output)) as draft, draft.open("w", encoding="utf-8") as file:
                file.writelines(_lines(store, few, wide=True))
        else:
            for text in _lines(store, few):
                write(text)
    return 0


def _lines(store: PageStore, groups: list[tuple[int, list[int]]], *, wide: bool | None = None) -> Iterator[str]:
    for original, ids in progress(groups, len(groups), "groups"):
        record = _standing(store, original)
        group = {
            "similar_id": f"{original:016x}",
            "size": len(ids),
            "original": record.url if record else None,
            "first_seen": iso(record.first_seen) if record else None,
            "pages": list(_pages(store, ids)),
        }
        yield as_json(group, indent=None, wide=wide) + "\n"


def _standing(store: PageStore, group: int) -> Record | None:
    return leader(store, group) or store.record(group)


def _pages(store: PageStore, ids: Iterable[int]) -> Iterator[dict[str, Any]]:
    judgements = ManualVerdicts(store)
    for id in ids:
        record, evidence = store.record(id), store.evidence(id)
        if record is None:
            continue
        copy = record.original != record.id
        similarity = evidence.similarity if copy and evidence else record.similarity
        said = judgements.of(record.url)
        yield {
            "url": record.url,
            "first_seen": iso(record.first_seen),
            "similarity": round(similarity or record.similarity, 4),
            "kind": (evidence.likeness or None) if copy and evidence else None,
            "title": (evidence.title or None) if evidence else None,
            "judged": said.said.value if said else None,
        }


def _show(store: PageStore, groups: list[tuple[int, list[int]]], all: int) -> None:
    """The groups as people read them."""
    for original, ids in groups:
        write(f"{original:016x}  {counted(len(ids), 'page')}\n")
        standing = _standing(store, original)
        if standing is None:
            write("  (the original is no longer in the state: updated or forgotten)\n")
        for id, page in zip(ids, _pages(store, islice(ids, _PAGES)), strict=False):
            kind = "superseded" if id == original else f"{page['similarity']:.2f} {line(page['kind'] or 'copy')}"
            kind = "original" if standing and id == standing.id else kind
            title = f'  "{line(page["title"])}"' if page["title"] else ""
            judged = f"  (manual verdict: {page['judged']})" if page["judged"] else ""
            write(f"  {page['first_seen']}  {kind:<14}  {line(page['url'])}{title}{judged}\n")
        if len(ids) > _PAGES:
            write(f"  (and {len(ids) - _PAGES:,} more)\n")
        write("\n")
    rest = all - len(groups)
    write(f"{counted(all, 'group')}{f', {rest:,} not shown; --limit 0 shows all' if rest else ''}.\n")
