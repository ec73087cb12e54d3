"""``scrapy neardup forget``: remove pages from a state, so that they are judged again."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from datetime import datetime, timezone

from scrapy_neardup.ages import parse_time
from scrapy_neardup.cli.opening import add_store, open_state
from scrapy_neardup.cli.options import add_json, config_of
from scrapy_neardup.cli.output import format_count, format_rest, progress, to_line, write_result
from scrapy_neardup.cli.pages import find_pages
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.maintenance.forget import Forgetting, of_host, pages_where, unseen_since
from scrapy_neardup.maintenance.tables import overwritten_pages, settle_overwritten
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record

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

#: URLs that a dry run prints.
_SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("urls", metavar="URL", nargs="*", help="a page, by its URL as crawled")
    parser.add_argument("--host", metavar="HOST", help="all pages of this host and its subdomains")
    parser.add_argument("--before", metavar="TIME", help="pages last seen before a date or time, or an age such as 90d")
    parser.add_argument("--overwritten", action="store_true", help="pages of a feed that a later crawl has overwritten")
    add_dry_run(parser)
    add_store(parser)
    add_json(parser)


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """Add ``--dry-run``."""
    parser.add_argument("--dry-run", action="store_true", help="show what would go, and change nothing")


def run(arguments: argparse.Namespace) -> int:
    """Forget the pages; return 1 if a named page is not in the state, or if the host has none."""
    ways = (bool(arguments.urls), arguments.host is not None, arguments.before is not None, arguments.overwritten)
    if sum(ways) != 1:
        raise SettingsError(
            "Name what to forget in exactly one way: URLs, --host HOST, --before TIME, or --overwritten."
        )
    dry, find = arguments.dry_run, _make_search(arguments)
    with open_state(arguments.store, config_of(arguments)) as store:
        records, missing = find_pages(store, dict.fromkeys(arguments.urls))
        found = find(store, records)
        urls = forget_pages(store, found, dry=dry)
        if arguments.overwritten and not dry:
            settle_overwritten(store)
    write_result(arguments, as_data(found, urls, missing, dry=dry), as_text(found, urls, dry=dry))
    return 1 if missing or (arguments.host is not None and not found.ids) else 0


def forget_pages(store: PageStore, found: Forgetting, *, dry: bool) -> list[str]:
    """Forget the pages unless it is a dry run; return the URLs of the oldest ones."""
    urls = [record.url for id in sorted(found.ids)[:_SHOWN] if (record := store.record(id)) is not None]
    if not dry:
        store.forget(progress(found.ids, len(found.ids)))
    return urls


def _make_search(arguments: argparse.Namespace) -> Callable[[PageStore, list[Record]], Forgetting]:
    """Return what finds the pages; raises SettingsError before a state is opened."""
    if arguments.overwritten:
        return lambda store, _: overwritten_pages(store, progress)
    if arguments.before is not None:
        seconds = parse_time("--before", arguments.before, datetime.now(timezone.utc))
        return lambda store, _: unseen_since(store, seconds, progress)
    if arguments.host is not None:
        if not re.fullmatch(r"\s*[^\s/:?#@\[\]]+(?: \S+)?\s*", arguments.host):
            raise SettingsError(f"--host is {arguments.host!r}. Give the host name only, such as a.example.")
        is_wanted = of_host(arguments.host)
        return lambda store, _: pages_where(store, is_wanted, progress)
    return _with_records


def _with_records(store: PageStore, records: list[Record]) -> Forgetting:
    ids = {record.id for record in records}
    return pages_where(store, lambda record: record.id in ids, progress) if ids else Forgetting((), 0, 0, 0, 0)


def as_data(found: Forgetting, urls: list[str], missing: list[str], *, dry: bool) -> dict[str, object]:
    """Return what was or would be forgotten, for JSON."""
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
    """Return what was or would be forgotten, as text. A dry run lists URLs."""
    if not found.ids:
        return "There is nothing to forget.\n"
    text = f"{'would forget' if dry else 'forgot'} {format_count(len(found.ids), 'page')}: {_describe(found)}\n"
    if not dry:
        return text
    return text + "".join(f"  {to_line(url)}\n" for url in urls) + format_rest(len(found.ids) - len(urls))


def _describe(found: Forgetting) -> str:
    """Return how many pages of each sort.

    >>> _describe(Forgetting((), 2, 3, 1, 1))
    '2 originals, their 3 copies, 1 other copy and 1 unjudged'
    """
    sorts = []
    if found.originals:
        sorts.append(format_count(found.originals, "original"))
    if found.with_originals:
        whose = "its" if found.originals == 1 else "their"
        sorts.append(f"{whose} {format_count(found.with_originals, 'copy', 'copies')}")
    if found.copies:
        other = "other " if found.with_originals else ""
        sorts.append(format_count(found.copies, f"{other}copy", f"{other}copies"))
    if found.unjudged:
        sorts.append(f"{found.unjudged:,} unjudged")
    *first, last = sorts
    return f"{', '.join(first)} and {last}" if first else last
