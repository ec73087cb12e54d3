"""``scrapy neardup dropped``: which pages crawls dropped as copies."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any

from scrapy_neardup.ages import parse_time
from scrapy_neardup.commands.opening import add_store, looked
from scrapy_neardup.commands.output import add_output, check_output, counted, iso, line, put
from scrapy_neardup.maintenance.drops import Dropped, dropped
from scrapy_neardup.maintenance.forget import of_host
from scrapy_neardup.maintenance.tables import Crawl, crawls
from scrapy_neardup.settings import Config
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record

NAME = "dropped"
HELP = "List pages that were dropped as copies: in the last crawl, since a time, of a site."
EXAMPLES = """\
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
"""

_NOUN = "dropped pages"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--last", action="store_true", help="only the last crawl")
    parser.add_argument("--since", metavar="TIME", help="since a date or time in UTC, or an age such as 30min, 12h, 7d")
    parser.add_argument(
        "--site", metavar="SITE", help='this host and its subdomains; one account: "mp.weixin.qq.com BIZ"'
    )
    add_store(parser)
    add_output(parser, _NOUN)


def run(arguments: argparse.Namespace) -> int:
    """List the pages; 0."""
    check_output(arguments)
    since = parse_time("--since", arguments.since, datetime.now(timezone.utc)) if arguments.since is not None else 0.0
    is_wanted = of_host(arguments.site) if arguments.site is not None else None
    with looked(arguments.store, Config.from_settings(arguments.settings)) as store:
        known = {crawl.generation: crawl for crawl in crawls(store)}
        last = known[max(known)] if known and arguments.last else None
        if arguments.last and last is None:
            sys.stderr.write("The state remembers no crawl, so --last finds nothing.\n")
            return 0
        if last is not None:
            sys.stderr.write(f"{_about(last)}\n")
        found = _Chosen(store, since, is_wanted, last.generation if last else 0)
        many = put(arguments, (_as_data(one, known) for one in found), _as_text, _NOUN)
        if found.gone:
            sys.stderr.write(f"{counted(found.gone, 'more dropped page')} forgotten since.\n")
        if found.came:
            sys.stderr.write(f"{counted(found.came, 'more dropped page')} kept by hand and delivered since.\n")
        if not many and not found.gone and not found.came:
            sys.stderr.write(f"{_nothing(arguments, last)}\n")
    return 0


class _Chosen:
    """The drops that were asked for.

    ``gone``: of how many nothing is known any more; ``came``: how many were kept by hand, and passed since.
    """

    def __init__(
        self, store: PageStore, since: float, is_wanted: Callable[[Record], bool] | None, generation: int
    ) -> None:
        self.gone = self.came = 0
        self._store, self._since, self._is_wanted, self._generation = store, since, is_wanted, generation

    def __iter__(self) -> Iterator[Dropped]:
        for one in dropped(self._store, self._generation):
            if one.when < self._since:
                continue
            if one.record is None:
                self.gone += self._is_wanted is None
            elif one.came_since:
                self.came += 1
            elif self._is_wanted is None or self._is_wanted(one.record):
                yield one


def _as_data(one: Dropped, known: dict[int, Crawl]) -> dict[str, Any]:
    crawl = known.get(one.drop.generation)
    return {
        "url": one.record.url if one.record else None,
        "title": one.title or None,
        "original": one.original.url if one.original else None,
        "kind": one.drop.likeness or None,
        "similarity": round(one.drop.similarity, 4),
        "when": iso(one.when),
        "crawl": crawl.who if crawl else None,
        "begun": iso(one.drop.generation / 1e9),
        "judged": one.said.said.value if one.said else None,
    }


def _as_text(one: dict[str, Any]) -> str:
    judged = {"keep": "  (manual verdict: keep)", "copy": "  (manual verdict: copy)"}.get(one["judged"], "")
    title = f'    "{line(one["title"])}"\n' if one["title"] else ""
    original = line(one["original"]) if one["original"] else "a page that is no longer in the state"
    return (
        f"{one['when']}  {one['kind'] or 'copy'} {one['similarity']:.2f}  {line(one['url'])}{judged}\n"
        f"{title}    for {original}\n"
    )


def _about(crawl: Crawl) -> str:
    ended = f"ended {iso(crawl.ended)}" if crawl.ended else "has no end: it was killed, or still runs"
    return f"The last crawl, {line(crawl.who)}, began {iso(crawl.begun)}, {ended}."


def _nothing(arguments: argparse.Namespace, last: Crawl | None) -> str:
    if last is None or arguments.since is not None or arguments.site is not None:
        return "The state remembers no such drop."
    if copies := last.counts.get("duplicate"):
        return f"It dropped nothing: its {copies:,.0f} copies passed, or NEARDUP_KEEP was 'nothing'."
    return "It dropped nothing."
