"""``scrapy neardup dropped``: list the pages that crawls dropped as copies."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from scrapy_neardup.ages import parse_time
from scrapy_neardup.cli.command import STATE, command, config_of, flag, option
from scrapy_neardup.cli.opening import snapshot_state
from scrapy_neardup.cli.output import format_count, list_options, to_line, warn, write_list
from scrapy_neardup.inspect import as_data, utc_time
from scrapy_neardup.inspect.dropped import dropped
from scrapy_neardup.maintenance.forget import of_host
from scrapy_neardup.maintenance.tables import CRAWLS

_NOUN = "dropped pages"


@command(
    "dropped",
    flag("--last", "only the last crawl"),
    option("--since TIME", "since a date or time in UTC, or an age such as 30min, 12h, 7d"),
    option("--site SITE", 'this host and its subdomains; one account: "mp.weixin.qq.com BIZ"'),
    *STATE,
    *list_options(_NOUN),
    examples="""\
list:
  Every page that a crawl dropped as a copy: URL, title, original, kind, time and crawl. The state remembers the last
  100,000 drops; with NEARDUP_KEEP = "nothing" it remembers none. Unchanged pages are not listed, because an earlier
  crawl delivered them. Pages forgotten since are only counted, and
  so are pages with the manual verdict keep that came since.

  To get a page in the next crawl: scrapy neardup keep URL
  To get all that the last crawl dropped of a site: scrapy neardup keep --last --site SITE

one line of JSON, or one row of a table:
  {"url": "https://…", "title": "…", "original": "https://…", "kind": "near", "similarity": 0.93, "when": "2025-…",
  "crawl": "news", "begun": "2025-…", "judged": null}
  judged is the manual verdict since then: keep, copy, or null.

examples:
  scrapy neardup dropped --last
  scrapy neardup dropped --since 7d --site a.example -o dropped.xlsx
  scrapy neardup dropped --last -o dropped.jsonl && scrapy neardup keep --from dropped.jsonl
""",
)
def list_drops(arguments: argparse.Namespace) -> int:
    """List the pages."""
    since = parse_time("--since", arguments.since, datetime.now(timezone.utc)) if arguments.since is not None else 0.0
    is_wanted = of_host(arguments.site) if arguments.site is not None else None
    # Drops that are not listed: of forgotten pages, and of pages with the verdict keep that came again.
    unlisted: Counter[str] = Counter()
    with snapshot_state(arguments.store, config_of(arguments)) as store:
        last = max(CRAWLS.read(store), key=lambda crawl: crawl.generation, default=None) if arguments.last else None
        if arguments.last and last is None:
            warn("The state remembers no crawl, so --last finds nothing.")
            return 0
        if last is not None:
            end = f"ended {utc_time(last.ended)}" if last.ended else "has no end: it was killed, or still runs"
            warn(f"The last crawl, {to_line(last.who)}, began {utc_time(last.begun)}, {end}.")

        def records() -> Iterator[dict[str, Any]]:
            for one in dropped(store, last.generation if last else 0):
                if one.drop.id < since * 1e9:
                    continue
                if one.record is None:
                    unlisted["forgotten since"] += is_wanted is None
                elif one.came_since:
                    unlisted["kept by hand and delivered since"] += 1
                elif is_wanted is None or is_wanted(one.record):
                    yield as_data(one)

        listed = write_list(arguments, records(), _as_text, _NOUN)
    for what, number in sorted(unlisted.items()):
        if number:
            warn(f"{format_count(number, 'more dropped page')} {what}.")
    if not listed and not unlisted.total():
        copies = last.counts.get("duplicate") if last else 0
        if last is None or arguments.since is not None or arguments.site is not None:
            warn("The state remembers no such drop.")
        elif copies:
            warn(f"It dropped nothing: its {copies:,.0f} copies passed, or NEARDUP_KEEP was 'nothing'.")
        else:
            warn("It dropped nothing.")
    return 0


def _as_text(one: dict[str, Any]) -> str:
    judged = f"  (manual verdict: {one['judged']})" if one["judged"] else ""
    title = f'    "{to_line(one["title"])}"\n' if one["title"] else ""
    original = to_line(one["original"]) if one["original"] else "a page that is no longer in the state"
    return (
        f"{one['when']}  {one['kind'] or 'copy'} {one['similarity']:.2f}  {to_line(one['url'])}{judged}\n"
        f"{title}    for {original}\n"
    )
