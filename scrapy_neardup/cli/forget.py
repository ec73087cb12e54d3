"""``scrapy neardup forget``: remove pages from a state."""

from __future__ import annotations

import argparse
import re
from datetime import datetime, timezone
from heapq import nsmallest

from scrapy_neardup.ages import parse_time
from scrapy_neardup.cli.command import JSON, STATE, command, flag, option
from scrapy_neardup.cli.opening import find_pages, open_state
from scrapy_neardup.cli.output import format_counts, format_rest, present, progress, to_line
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.maintenance.scan import of_host, select_pages, select_unseen
from scrapy_neardup.settings import Config

#: URLs that a dry run prints.
_SHOWN = 20


@command(
    option("urls URL", "a page, by its URL as crawled", nargs="*"),
    option("--host HOST", 'all pages of this host and its subdomains; one account is "mp.weixin.qq.com BIZ"'),
    option(
        "--before TIME", "pages last seen before a date or time in UTC, or longer ago than an age such as 90d; 0d: all"
    ),
    flag("--dry-run", "show what would go, and change nothing"),
    *STATE,
    JSON,
    examples="""\
effect:
  Give one of the ways above. An original goes together with all its copies, so the next of them is judged again. Counts
  of sentences and manual verdicts stay. The room becomes free for other pages; 'migrate --to' makes a
  smaller state.

examples:
  scrapy neardup forget https://a.example/ferry
  scrapy neardup forget --host a.example --dry-run
  scrapy neardup forget --before 90d --store leveldb:///var/crawls/state.leveldb
""",
)
def forget_command(arguments: argparse.Namespace, config: Config) -> int:
    """Forget the pages; return 1 if a named page is not in the state, or if the host has none."""
    dry, host = arguments.dry_run, arguments.host
    if bool(arguments.urls) + (host is not None) + (arguments.before is not None) != 1:
        raise SettingsError("Name what to forget in exactly one way: URLs, --host HOST, or --before TIME.")
    if host is not None and not re.fullmatch(r"\s*[^\s/:?#@\[\]]+(?: \S+)?\s*", host):
        raise SettingsError(f"--host is {host!r}. Give the host name only, such as a.example.")
    now = datetime.now(timezone.utc)
    before = parse_time("--before", arguments.before, now) if arguments.before is not None else None
    with open_state(arguments.store, config) as store:
        records, missing = find_pages(store, dict.fromkeys(arguments.urls))
        if before is not None:
            ids, counts = select_unseen(store, before, progress)
        else:
            named = {record.id for record in records}
            is_wanted = (lambda record: record.id in named) if host is None else of_host(host)
            ids, counts = select_pages(store, is_wanted, progress)
        urls = [record.url for id in nsmallest(_SHOWN, ids) if (record := store.record(id)) is not None]
        if not dry:
            store.forget(progress(ids, len(ids)))
    data = {"dry_run": dry, "pages": len(ids), **counts, "urls": urls, "missing": missing}
    text = f"Forgotten: {format_counts(data)}"
    if not ids:
        text = "There is nothing to forget."
    elif dry:
        lines = "".join(f"  {to_line(url)}\n" for url in urls)
        text = f"Would be forgotten: {format_counts(data)}\n{lines}{format_rest(len(ids) - len(urls))}"
    present(arguments, data, text)
    return 1 if missing or (host is not None and not ids) else 0
