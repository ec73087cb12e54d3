"""``scrapy neardup keep``: mark a page as no copy."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

from scrapy_neardup.cli.opening import add_store, open_state
from scrapy_neardup.cli.options import add_json, config_of
from scrapy_neardup.cli.output import format_count, format_rest, to_line, warn, write_result
from scrapy_neardup.cli.pages import add_urls, find_pages, read_urls
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.judge.manual_verdicts import (
    ManualKind,
    ManualVerdict,
    find_manual_verdict,
    remove_manual_verdicts,
    write_manual_verdicts,
)
from scrapy_neardup.maintenance.drops import dropped, originals_of
from scrapy_neardup.maintenance.forget import of_host
from scrapy_neardup.maintenance.tables import crawls
from scrapy_neardup.state.pages import PageStore

NAME = "keep"
HELP = "Mark a page as no copy: it passes in the next crawl and from then on."
EXAMPLES = """\
effect:
  The page passes when it comes again, even if its text is edited or like another page. From then on it is an
  original. The time after, with the same text, it is unchanged, so it is delivered once. Its former original keeps its
  place. The manual verdict survives 'forget', is kept by 'export', 'import' and 'merge', and is a label for 'evaluate':
  see scrapy neardup judgements.

examples:
  scrapy neardup keep https://a.example/ferry
  scrapy neardup keep --last --site a.example
  scrapy neardup dropped --last -o dropped.jsonl && scrapy neardup keep --from dropped.jsonl
  grep harbour urls.txt | scrapy neardup keep -
  scrapy neardup keep --remove https://a.example/ferry
"""

#: Pages to print.
_SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_urls(parser)
    parser.add_argument(
        "--last",
        action="store_true",
        help="all pages that the last crawl dropped as copies, without those that have a manual verdict",
    )
    parser.add_argument("--site", metavar="SITE", help="with --last: only this host and its subdomains")
    parser.add_argument("--remove", action="store_true", help="remove the manual verdicts on these pages")
    add_store(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write or remove manual verdicts; return 1 if a page is not in the state."""
    if arguments.site is not None and not arguments.last:
        raise SettingsError("--site works only with --last. Add --last.")
    urls = [] if arguments.last and not (arguments.urls or arguments.file) else read_urls(arguments)
    with open_state(arguments.store, config_of(arguments)) as store:
        if arguments.last:
            urls = list(dict.fromkeys([*urls, *_dropped_in_last_crawl(store, arguments.site)]))
        if arguments.remove:
            return remove_verdicts(arguments, store, urls)
        found, missing = find_pages(store, urls)
        now = int(time.time())
        opinions = [
            ManualVerdict(record.url, ManualKind.KEEP, original.url if original else "", now)
            for record, original in zip(found, originals_of(store, found), strict=True)
        ]
        if opinions:
            write_manual_verdicts(store, *opinions)
    kept = [{"url": one.url, "original": one.other or None} for one in opinions]
    write_result(arguments, {"kept": kept, "missing": missing}, "".join(_lines(opinions)))
    return 1 if missing else 0


def remove_verdicts(arguments: argparse.Namespace, store: PageStore, urls: list[str]) -> int:
    """Remove the manual verdicts on these pages, and print how many; return 1 if a page has none."""
    verdicts = {url: find_manual_verdict(store, url) for url in urls}
    removed = [url for url, verdict in verdicts.items() if verdict is not None]
    missing = [url for url, verdict in verdicts.items() if verdict is None]
    if removed:
        remove_manual_verdicts(store, *removed)
    for url in missing:
        warn(f"{to_line(url)}\n  has no manual verdict; see: scrapy neardup judgements")
    text = f"{format_count(len(removed), 'manual verdict')} removed."
    write_result(arguments, {"removed": removed, "missing": missing}, text)
    return 1 if missing else 0


def _dropped_in_last_crawl(store: PageStore, site: str | None) -> list[str]:
    """Return the URLs of the pages that the last crawl dropped, without those that have a manual verdict."""
    last = max((crawl.generation for crawl in crawls(store)), default=0)
    is_wanted = of_host(site) if site is not None else lambda record: True
    records = [one.record for one in dropped(store, last) if one.said is None] if last else []
    return [record.url for record in records if record is not None and is_wanted(record)]


def _lines(opinions: list[ManualVerdict]) -> Iterator[str]:
    one_page = len(opinions) == 1
    yield f"{format_count(len(opinions), 'page')} will pass when {'it comes' if one_page else 'they come'} again.\n"
    for one in opinions[:_SHOWN]:
        yield f"  {to_line(one.url)}\n"
        reason = f"no copy of {to_line(one.other)}" if one.other else "no known page was the reason of its drop"
        yield f"    {reason}\n"
    yield format_rest(len(opinions) - _SHOWN)
