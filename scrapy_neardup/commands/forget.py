"""``scrapy neardup forget``: pages are removed from a state, and judged as if they had never been seen."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from datetime import datetime, timezone

from scrapy_neardup.ages import parse_time
from scrapy_neardup.commands.opening import add_store, opened
from scrapy_neardup.commands.output import as_json, counted, line, missing, progress, write
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.maintenance.forget import Forgetting, of_host, pages_where, unseen_since
from scrapy_neardup.maintenance.lookup import near_urls
from scrapy_neardup.maintenance.tables import overwritten, settle
from scrapy_neardup.settings import Config
from scrapy_neardup.state.pages import PageStore

NAME = "forget"
HELP = "Remove pages from a state, so that they are judged as if never seen."
EXAMPLES = """\
effect:
  Give one of the four ways below. An original goes together with all its copies, of any site and age: they were dropped
  because of it, so the next of them is judged again.

  URL …           these pages
  --host HOST     pages of this host and its subdomains (a.example: also www.a.example and news.a.example); one account
                  of mp.weixin.qq.com is written "mp.weixin.qq.com BIZ"
  --before TIME   pages last seen before a time in UTC (2025-03-01, 2025-03-01T08:00+08:00) or longer ago than an age
                  (600s, 30min, 12h, 90d, 4w); an original stays as long as one of its copies was seen since
  --overwritten   pages in a feed that a later crawl has overwritten, so that they come again; pages first seen in
                  between may go with them

  Sentence counts stay, so boilerplate is still known. The room becomes free for other pages. To shrink the files:
  scrapy neardup compact

examples:
  scrapy neardup forget https://a.example/ferry
  scrapy neardup forget --host a.example --dry-run
  scrapy neardup forget --overwritten
  scrapy neardup forget --before 90d --store leveldb:///var/crawls/state.leveldb
"""

#: URLs that a dry run names.
_NAMED = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("urls", metavar="URL", nargs="*", help="a page, by its URL as crawled")
    parser.add_argument("--host", metavar="HOST", help="all pages of this host and its subdomains")
    parser.add_argument("--before", metavar="TIME", help="pages last seen before a date or time, or an age such as 90d")
    parser.add_argument("--overwritten", action="store_true", help="pages of a feed that a later crawl has overwritten")
    parser.add_argument("--dry-run", action="store_true", help="show what would go, and change nothing")
    add_store(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Forget the pages; 1 if one that is named is not in the state, or none is of the host."""
    ways = (bool(arguments.urls), arguments.host is not None, arguments.before is not None, arguments.overwritten)
    if sum(ways) != 1:
        raise SettingsError(
            "Name what to forget in exactly one way: URLs, --host HOST, --before TIME, or --overwritten."
        )
    choose = _choice(arguments)
    with opened(arguments.store, Config.from_settings(arguments.settings)) as store:
        near = {url: near_urls(store, url) for url in arguments.urls if store.find(url) is None}
        for url, others in near.items():
            sys.stderr.write(missing(url, others, store.location))
        found = choose(store)
        urls = first_urls(store, found)
        if not arguments.dry_run:
            store.forget(progress(found.ids, len(found.ids)))
            if arguments.overwritten:
                settle(store)
    if arguments.json:
        write(as_json(as_data(found, urls, list(near), dry=arguments.dry_run)) + "\n")
    else:
        write(as_text(found, urls, dry=arguments.dry_run))
    return 1 if near or (arguments.host is not None and not found.ids) else 0


def first_urls(store: PageStore, found: Forgetting) -> list[str]:
    """Those of the oldest pages, as many as a dry run names."""
    return [record.url for id in sorted(found.ids)[:_NAMED] if (record := store.record(id)) is not None]


def _choice(arguments: argparse.Namespace) -> Callable[[PageStore], Forgetting]:
    """What finds the pages; raises SettingsError before a state is opened."""
    if arguments.overwritten:
        return lambda store: overwritten(store, progress)
    if arguments.before is not None:
        seconds = parse_time("--before", arguments.before, datetime.now(timezone.utc))
        return lambda store: unseen_since(store, seconds, progress)
    if arguments.host is not None:
        if not re.fullmatch(r"\s*[^\s/:?#@\[\]]+(?: \S+)?\s*", arguments.host):
            raise SettingsError(f"--host is {arguments.host!r}. Give the host name only, such as a.example.")
        is_wanted = of_host(arguments.host)
        return lambda store: pages_where(store, is_wanted, progress)

    def named(store: PageStore) -> Forgetting:
        ids = {record.id for url in arguments.urls if (record := store.find(url)) is not None}
        return pages_where(store, lambda record: record.id in ids, progress) if ids else Forgetting((), 0, 0, 0, 0)

    return named


def as_data(found: Forgetting, urls: list[str], missing: list[str], *, dry: bool) -> dict[str, object]:
    """What goes or went, for JSON."""
    return {
        "dry_run": dry,
        "pages": len(found.ids),
        "originals": found.originals,
        "copies_of_them": found.with_originals,
        "other_copies": found.copies,
        "unjudged": found.unjudged,
        "urls": urls,
        "missing": missing,
    }


def as_text(found: Forgetting, urls: list[str], *, dry: bool) -> str:
    """What goes or went, in lines; the URLs are told of what would go."""
    if not found.ids:
        return "There is nothing to forget.\n"
    said = f"{'would forget' if dry else 'forgot'} {counted(len(found.ids), 'page')}: {_sorts(found)}\n"
    if not dry:
        return said
    rest = len(found.ids) - len(urls)
    return said + "".join(f"  {line(url)}\n" for url in urls) + (f"  (and {rest:,} more)\n" if rest else "")


def _sorts(found: Forgetting) -> str:
    """How many pages of each sort: "1 original and its 2 copies".

    >>> _sorts(Forgetting((), 2, 3, 1, 1))
    '2 originals, their 3 copies, 1 other copy and 1 unjudged'
    """
    sorts = []
    if found.originals:
        sorts.append(counted(found.originals, "original"))
    if found.with_originals:
        whose = "its" if found.originals == 1 else "their"
        sorts.append(f"{whose} {counted(found.with_originals, 'copy', 'copies')}")
    if found.copies:
        other = "other " if found.with_originals else ""
        sorts.append(counted(found.copies, f"{other}copy", f"{other}copies"))
    if found.unjudged:
        sorts.append(f"{found.unjudged:,} unjudged")
    *first, last = sorts
    return f"{', '.join(first)} and {last}" if first else last
