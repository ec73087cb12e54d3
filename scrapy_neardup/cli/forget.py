"""``scrapy neardup forget``, ``expire`` and ``compact``: remove pages from a state, and shrink its files."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from scrapy_neardup.ages import parse_duration, parse_time
from scrapy_neardup.cli.command import DRY_RUN, JSON, STATE, command, config_of, flag, option
from scrapy_neardup.cli.opening import find_pages, open_state
from scrapy_neardup.cli.output import ask, format_counts, format_rest, present, progress, to_line, warn, write
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.maintenance.scan import (
    PageSelection,
    of_host,
    pages_where,
    select_unseen,
)
from scrapy_neardup.report.words import format_size
from scrapy_neardup.settings import many_pages
from scrapy_neardup.state.expiry import Bounds
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record

#: URLs that a dry run prints.
_SHOWN = 20
_QUESTION = "Forget all %d pages of the state at %s? Type yes: "


@command(
    "forget",
    option("urls URL", "a page, by its URL as crawled", nargs="*"),
    option("--host HOST", 'all pages of this host and its subdomains; one account is "mp.weixin.qq.com BIZ"'),
    option("--before TIME", "pages last seen before a date or time in UTC, or longer ago than an age such as 90d"),
    flag("--all", "all pages; the command asks first"),
    flag("--yes", "with --all: do not ask"),
    DRY_RUN,
    *STATE,
    JSON,
    examples="""\
effect:
  Give one of the ways above. An original goes together with all its copies, so the next of them is judged again. Counts
  of sentences and manual verdicts stay. The room becomes free for other pages; to shrink the files, use 'compact'.

examples:
  scrapy neardup forget https://a.example/ferry
  scrapy neardup forget --host a.example --dry-run
  scrapy neardup forget --before 90d --store leveldb:///var/crawls/state.leveldb
""",
)
def forget(arguments: argparse.Namespace) -> int:
    """Forget the pages; return 1 if a named page is not in the state, or if the host has none."""
    ways = (arguments.urls, arguments.host is not None, arguments.before is not None)
    if sum(map(bool, (*ways, arguments.all))) != 1:
        raise SettingsError("Name what to forget in exactly one way: URLs, --host HOST, --before TIME, or --all.")
    must_ask = arguments.all and not arguments.yes and not arguments.dry_run
    if must_ask and (arguments.json or not sys.stdin.isatty()):
        raise SettingsError("--all asks before it forgets, but nobody can answer here. Add --yes.")
    dry, find = arguments.dry_run, _make_search(arguments)
    with open_state(arguments.store, config_of(arguments)) as store:
        if must_ask and ask(_QUESTION % (store.pages, store.location)).strip().lower() != "yes":
            write("Nothing is forgotten.\n")
            return 1
        records, missing = find_pages(store, dict.fromkeys(arguments.urls))
        found = _forget(store, find(store, records), missing, dry=dry)
    present(arguments, found, _as_text(found))
    return 1 if missing or (arguments.host is not None and not found["pages"]) else 0


def _make_search(arguments: argparse.Namespace) -> Callable[[PageStore, list[Record]], PageSelection]:
    """Return what finds the pages; raises SettingsError before a state is opened."""
    if arguments.all:
        return lambda store, _: pages_where(store, lambda record: True, progress)
    if arguments.before is not None:
        seconds = parse_time("--before", arguments.before, datetime.now(timezone.utc))
        return lambda store, _: select_unseen(store, seconds, watch=progress)
    if arguments.host is not None:
        if not re.fullmatch(r"\s*[^\s/:?#@\[\]]+(?: \S+)?\s*", arguments.host):
            raise SettingsError(f"--host is {arguments.host!r}. Give the host name only, such as a.example.")
        is_wanted = of_host(arguments.host)
        return lambda store, _: pages_where(store, is_wanted, progress)

    def find(store: PageStore, records: list[Record]) -> PageSelection:
        ids = {record.id for record in records}
        return pages_where(store, lambda record: record.id in ids, progress) if ids else PageSelection((), 0, 0, 0, 0)

    return find


def _forget(store: PageStore, found: PageSelection, missing: list[str], *, dry: bool) -> dict[str, Any]:
    """Forget the pages, unless it is a dry run; return their counts, and the URLs of the oldest ones."""
    urls = [record.url for id in sorted(found.ids)[:_SHOWN] if (record := store.record(id)) is not None]
    if not dry:
        store.forget(progress(found.ids, len(found.ids)))
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


def _as_text(found: dict[str, Any]) -> str:
    if not found["pages"]:
        return "There is nothing to forget."
    if not found["dry_run"]:
        return f"Forgotten: {format_counts(found)}"
    urls = "".join(f"  {to_line(url)}\n" for url in found["urls"])
    rest = format_rest(found["pages"] - len(found["urls"]))
    return f"Would be forgotten: {format_counts(found)}\n{urls}{rest}"


@command(
    "expire",
    option("--ttl TIME", "how long to know a page after it was last seen, such as 90d"),
    option("--max-pages N", "how many pages to know at most, including copies"),
    DRY_RUN,
    *STATE,
    JSON,
    examples="""\
effect:
  Pages last seen before the TTL go; then, if there are too many, those last seen the longest ago. A copy renews the
  time of its original, and no copy outlives it. Without options the bounds come from the settings.

examples:
  scrapy neardup expire --dry-run
  scrapy neardup expire --ttl 90d
  scrapy neardup expire --max-pages 1000000 --store sqlite:///var/crawls/state.sqlite
""",
)
def expire(arguments: argparse.Namespace) -> int:
    """Forget the pages beyond the bounds."""
    config, dry = config_of(arguments), arguments.dry_run
    bounds = Bounds(
        config.ttl if arguments.ttl is None else parse_duration("--ttl", arguments.ttl),
        config.max_pages if arguments.max_pages is None else many_pages("--max-pages", arguments.max_pages),
    )
    if bounds == Bounds():
        raise SettingsError(
            "No bound is given. Add --ttl 90d or --max-pages 1000000, or set NEARDUP_TTL or NEARDUP_MAX_PAGES."
        )
    with open_state(arguments.store, config) as store:
        before = None if bounds.ttl is None else store.clock.now() - bounds.ttl
        found = _forget(store, select_unseen(store, before, bounds.max_pages, progress), [], dry=dry)
        left = store.pages - (found["pages"] if dry else 0)
    data = {"ttl": bounds.ttl, "max_pages": bounds.max_pages, **found, "pages_left": left}
    present(arguments, data, _as_text(found))
    return 0


@command(
    "compact",
    *STATE,
    JSON,
    examples="""\
effect:
  While it runs it needs as much free room as the state takes. If it fails, no page is lost.

examples:
  scrapy neardup compact
  scrapy neardup compact --store sqlite:///var/crawls/state.sqlite
""",
)
def compact(arguments: argparse.Namespace) -> int:
    """Compact the state and print its size before and after."""
    with open_state(arguments.store, config_of(arguments)) as store:
        before = store.size()
        if sys.stderr.isatty():
            warn(f"Compacting {format_size(before)} …")
        store.kv.compact()
        after = store.size()
    text = f"{store.location}: {format_size(before)} → {format_size(after)}"
    present(arguments, {"store": store.location, "bytes_before": before, "bytes_after": after}, text)
    return 0
