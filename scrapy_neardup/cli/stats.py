"""``scrapy neardup stats``: count the contents of a state."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from scrapy_neardup.cli.command import JSON, STATE, command, config_of, limit_option
from scrapy_neardup.cli.opening import snapshot_state
from scrapy_neardup.cli.output import format_data, present, progress
from scrapy_neardup.inspect import as_data, utc_time
from scrapy_neardup.judge.recipes import decisions_of
from scrapy_neardup.maintenance.statistics import statistics


@command(
    "stats",
    *STATE,
    limit_option(10, "sites to name, those with most pages (default: 10)"),
    JSON,
    examples="""\
words:
  original    a page with a new article; its copies are dropped
  copy        a dropped page: identical, near (edited), retitled (edited, under another title), or "unknown" if
              NEARDUP_KEEP was "nothing"
  variant     a copy that differs so much from its original that later pages are compared with it too
  row         one of several items of a response without their own texts; it is compared with no other page, and dropped
              only if it comes again unchanged; to have rows judged, set NEARDUP_FIELDS = {'text': …}
  unjudged    a page with too little text; the state keeps it so that it passes only once
  delivered   recently dropped pages that an earlier crawl delivered with another text; the counts cover about the last
              1,000 pages of a site; to take drops back: scrapy neardup keep --last --site SITE
  unsealed    a page of a running or killed crawl whose feed is not stored; if it never is, the next crawl rolls the
              page back

examples:
  scrapy neardup stats
  scrapy neardup stats --store leveldb:///var/crawls/state.leveldb --limit 50
  scrapy neardup stats --json
""",
)
def stats(arguments: argparse.Namespace) -> int:
    """Print the counts."""
    with snapshot_state(arguments.store, config_of(arguments)) as store:
        found = statistics(store, arguments.limit, progress)
        data = {
            "store": store.location,
            "backend": store.scheme,
            "as_of": utc_time(store.as_of),
            "in_use": store.is_held,
            "unsealed": store.pending().pages,
            **as_data(found),
            "dropped_sites": [{**asdict(site), "crawled": utc_time(site.crawled)} for site in found.dropped_sites],
            "first_seen": utc_time(found.first_seen),
            "last_seen": utc_time(found.last_seen),
            "bytes_per_page": round(found.bytes / found.pages, 1) if found.pages else None,
            "recipe": store.recipe,
            "decisions": decisions_of(store),
        }
    present(arguments, data, format_data(data))
    return 0
