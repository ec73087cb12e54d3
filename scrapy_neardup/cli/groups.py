"""``scrapy neardup groups``: list the groups of a state, each original with its copies."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.cli.command import STATE, command, config_of, flag, limit_option, number, option
from scrapy_neardup.cli.opening import snapshot_state
from scrapy_neardup.cli.output import as_json, format_count, format_rest, progress, to_line, write
from scrapy_neardup.inspect.pages import KnownGroup, inspect_group
from scrapy_neardup.maintenance.scan import members

#: Groups that a terminal shows by default, and pages of each.
_SHOWN, _PAGES = 20, 10


@command(
    "groups",
    *STATE,
    option("-o, --output FILE", "write JSON lines to this file, all or nothing"),
    option("--min N", "smallest group to list (default: 2)", type=number(1), default=2),
    limit_option(None, "groups to list (default: all, on a terminal 20; 0: all)"),
    flag("--json", "print JSON lines, also on a terminal"),
    examples="""\
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
""",
)
def groups(arguments: argparse.Namespace) -> int:
    """Print the groups, or write them to a file."""
    for_terminal = not arguments.output and not arguments.json and sys.stdout.isatty()
    limit = arguments.limit if arguments.limit is not None else _SHOWN if for_terminal else 0
    with snapshot_state(arguments.store, config_of(arguments)) as store:
        found = list(members(progress(store.records(), store.pages)).groups(arguments.min))
        listed = found[: limit or None]
        if for_terminal:
            for one in listed:
                write("".join(_lines(inspect_group(store, *one, _PAGES))))
            rest = len(found) - len(listed)
            more = f", {rest:,} not shown; --limit 0 shows all" if rest else ""
            write(f"{format_count(len(found), 'group')}{more}.\n")
            return 0
        described = (inspect_group(store, *one) for one in progress(listed, len(listed), "groups"))
        if arguments.output:
            with replace_file(Path(arguments.output)) as draft, draft.open("w", encoding="utf-8") as file:
                file.writelines(as_json(group, indent=None, wide=True) + "\n" for group in described)
        else:
            for group in described:
                write(as_json(group, indent=None) + "\n")
    return 0


def _lines(group: KnownGroup) -> Iterator[str]:
    yield f"{group.similar_id}  {format_count(group.size, 'page')}\n"
    if group.original is None:
        yield "  (the original is no longer in the state: updated or forgotten)\n"
    for one in group.pages:
        kind = one.role or f"{one.similarity:.2f} {to_line(one.kind or 'copy')}"
        title = f'  "{to_line(one.title)}"' if one.title else ""
        judged = f"  (manual verdict: {one.judged})" if one.judged else ""
        yield f"  {one.first_seen}  {kind:<14}  {to_line(one.url)}{title}{judged}\n"
    yield format_rest(group.size - _PAGES) + "\n"
