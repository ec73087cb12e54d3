"""``scrapy neardup forget``, ``expire`` and ``compact``: remove pages from a state, and shrink its files."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone

from scrapy_neardup.ages import parse_duration, parse_time
from scrapy_neardup.cli.command import DRY_RUN, JSON, STATE, command, config_of, option
from scrapy_neardup.cli.opening import open_state
from scrapy_neardup.cli.output import format_counts, format_rest, present, progress, to_line
from scrapy_neardup.cli.urls import find_pages
from scrapy_neardup.errors import SettingsError, StoreDamaged, StoreError
from scrapy_neardup.inspect import as_data
from scrapy_neardup.maintenance.forget import PageSelection, of_host, pages_where, select_expired, select_unseen
from scrapy_neardup.maintenance.tables import select_overwritten, settle_overwritten
from scrapy_neardup.report.formats import format_size
from scrapy_neardup.settings import many_pages
from scrapy_neardup.state.expiry import Bounds
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record

#: URLs that a dry run prints.
_SHOWN = 20


@command(
    "forget",
    option("urls", metavar="URL", nargs="*", help="a page, by its URL as crawled"),
    option("--host", metavar="HOST", help="all pages of this host and its subdomains"),
    option("--before", metavar="TIME", help="pages last seen before a date or time, or an age such as 90d"),
    option("--overwritten", action="store_true", help="pages of a feed that a later crawl has overwritten"),
    DRY_RUN,
    STATE,
    JSON,
    examples="""\
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
""",
)
def forget(arguments: argparse.Namespace) -> int:
    """Forget the pages; return 1 if a named page is not in the state, or if the host has none."""
    ways = (bool(arguments.urls), arguments.host is not None, arguments.before is not None, arguments.overwritten)
    if sum(ways) != 1:
        raise SettingsError(
            "Name what to forget in exactly one way: URLs, --host HOST, --before TIME, or --overwritten."
        )
    dry, find = arguments.dry_run, _make_search(arguments)
    with open_state(arguments.store, config_of(arguments)) as store:
        records, missing = find_pages(store, dict.fromkeys(arguments.urls))
        found = _forget(store, find(store, records), missing, dry=dry)
        if arguments.overwritten and not dry:
            settle_overwritten(store)
    present(arguments, found, _as_text)
    return 1 if missing or (arguments.host is not None and not found.pages) else 0


def _make_search(arguments: argparse.Namespace) -> Callable[[PageStore, list[Record]], PageSelection]:
    """Return what finds the pages; raises SettingsError before a state is opened."""
    if arguments.overwritten:
        return lambda store, _: select_overwritten(store, progress)
    if arguments.before is not None:
        seconds = parse_time("--before", arguments.before, datetime.now(timezone.utc))
        return lambda store, _: select_unseen(store, seconds, progress)
    if arguments.host is not None:
        if not re.fullmatch(r"\s*[^\s/:?#@\[\]]+(?: \S+)?\s*", arguments.host):
            raise SettingsError(f"--host is {arguments.host!r}. Give the host name only, such as a.example.")
        is_wanted = of_host(arguments.host)
        return lambda store, _: pages_where(store, is_wanted, progress)

    def find(store: PageStore, records: list[Record]) -> PageSelection:
        ids = {record.id for record in records}
        return pages_where(store, lambda record: record.id in ids, progress) if ids else PageSelection((), 0, 0, 0, 0)

    return find


@dataclass(frozen=True, slots=True)
class _Forgotten:
    """The pages that were forgotten, or that a dry run would forget, and the URLs of the oldest ones."""

    dry_run: bool
    pages: int
    originals: int
    copies_of_them: int
    other_copies: int
    unjudged: int
    urls: list[str]
    missing: list[str]


def _forget(store: PageStore, found: PageSelection, missing: list[str], *, dry: bool) -> _Forgotten:
    urls = [record.url for id in sorted(found.ids)[:_SHOWN] if (record := store.record(id)) is not None]
    if not dry:
        store.forget(progress(found.ids, len(found.ids)))
    counts = found.originals, found.with_originals, found.copies, found.unjudged
    return _Forgotten(dry, len(found.ids), *counts, urls, missing)


def _as_text(found: _Forgotten) -> str:
    if not found.pages:
        return "There is nothing to forget."
    if not found.dry_run:
        return f"Forgotten: {format_counts(as_data(found))}"
    urls = "".join(f"  {to_line(url)}\n" for url in found.urls)
    return f"Would be forgotten: {format_counts(as_data(found))}\n{urls}{format_rest(found.pages - len(found.urls))}"


@command(
    "expire",
    option("--ttl", metavar="TIME", help="how long to know a page after it was last seen, such as 90d"),
    option("--max-pages", metavar="N", help="how many pages to know at most, including copies"),
    DRY_RUN,
    STATE,
    JSON,
    examples="""\
effect:
  It forgets pages last seen before the TTL. If more pages are left than allowed, it forgets those last seen the longest
  ago. A copy renews the time of its original, and no copy outlives its original. A forgotten page is judged as if it
  had never been seen. Without options the bounds come from the settings.

  The room becomes free for other pages. To shrink the files: scrapy neardup compact

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
        found = _forget(store, select_expired(store, bounds, progress), [], dry=dry)
        left = store.pages - (found.pages if dry else 0)
    data = {"ttl": bounds.ttl, "max_pages": bounds.max_pages, **as_data(found), "pages_left": left}
    present(arguments, data, lambda _: _as_text(found))
    return 0


@command(
    "compact",
    STATE,
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
    before = 0
    try:
        with open_state(arguments.store, config_of(arguments)) as store:
            before, location = store.size(), store.location
            store.kv.compact()
            after = store.size()
    except StoreDamaged:
        raise
    except StoreError as error:
        if not before:  # it was not opened
            raise
        raise StoreError(
            f"{error} The state is not compacted, and no page is lost. Make {format_size(before)} free for it and as "
            "much in the temporary directory, then try again."
        ) from error
    text = f"{location}: {format_size(before)} → {format_size(after)}"
    present(arguments, {"store": location, "bytes_before": before, "bytes_after": after}, lambda _: text)
    return 0
