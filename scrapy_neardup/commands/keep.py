"""``scrapy neardup keep``: mark a page as no copy."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable

from scrapy_neardup.commands.opening import add_store, opened
from scrapy_neardup.commands.output import as_json, counted, line, missing, write
from scrapy_neardup.commands.pages import add_urls, named
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.judge.manual_verdicts import (
    ManualVerdict,
    Opinion,
    judgement_of,
    remove_judgements,
    write_judgements,
)
from scrapy_neardup.maintenance.drops import dropped, originals_of
from scrapy_neardup.maintenance.forget import of_host
from scrapy_neardup.maintenance.lookup import near_urls
from scrapy_neardup.maintenance.tables import crawls
from scrapy_neardup.settings import Config
from scrapy_neardup.state.pages import PageStore

# ----------------------------------------------------------------------------------------------------------------------
# What was said of pages by hand is taken back.


def take_back(store: PageStore, urls: Iterable[str], *, as_data: bool) -> int:
    """Remove the judgements on these pages; 1 if there is none on one of them."""
    found = {url: judgement_of(store, url) for url in urls}
    judged = [url for url, said in found.items() if said is not None]
    others = [url for url, said in found.items() if said is None]
    if judged:
        remove_judgements(store, *judged)
    for url in others:
        sys.stderr.write(f"{line(url)}\n  has no manual verdict; see: scrapy neardup judgements\n")
    if as_data:
        write(as_json({"removed": judged, "missing": others}) + "\n")
    else:
        write(f"{counted(len(judged), 'manual verdict')} removed.\n")
    return 1 if others else 0


# ----------------------------------------------------------------------------------------------------------------------
# ``scrapy neardup keep``: a page is no copy, whatever the method says.


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

#: Pages that are named.
_NAMED = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add_urls(parser)
    parser.add_argument(
        "--last",
        action="store_true",
        help="all pages that the last crawl dropped as copies, without those that have a manual verdict",
    )
    parser.add_argument("--site", metavar="SITE", help="with --last: only this host and its subdomains")
    parser.add_argument("--remove", action="store_true", help="remove the manual verdicts on these pages")
    add_store(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Write it down; 1 if one of the pages is not in the state, of which nothing is said then."""
    if arguments.site is not None and not arguments.last:
        raise SettingsError("--site works only with --last. Add --last.")
    urls = [] if arguments.last and not (arguments.urls or arguments.file) else named(arguments)
    with opened(arguments.store, Config.from_settings(arguments.settings)) as store:
        if arguments.last:
            urls = list(dict.fromkeys([*urls, *_dropped_last(store, arguments.site)]))
        if arguments.remove:
            return take_back(store, urls, as_data=arguments.json)
        records = {url: store.find(url) for url in urls}
        found = [record for record in records.values() if record is not None]
        gone = [url for url, record in records.items() if record is None]
        for url in gone:
            sys.stderr.write(missing(url, near_urls(store, url), store.location))
        now = int(time.time())
        said = [
            Opinion(record.url, ManualVerdict.KEEP, original.url if original else "", now)
            for record, original in zip(found, originals_of(store, found), strict=True)
        ]
        if said:
            write_judgements(store, *said)
    if arguments.json:
        kept = [{"url": one.url, "original": one.other or None} for one in said]
        write(as_json({"kept": kept, "missing": gone}) + "\n")
    else:
        write(_as_text(said))
    return 1 if gone else 0


def _dropped_last(store: PageStore, site: str | None) -> list[str]:
    """The URLs of the pages that the last crawl dropped, of this site or of all; not those that a person judged."""
    last = max((crawl.generation for crawl in crawls(store)), default=0)
    is_wanted = of_host(site) if site is not None else lambda record: True
    records = [one.record for one in dropped(store, last) if one.said is None] if last else []
    return [record.url for record in records if record is not None and is_wanted(record)]


def _as_text(said: list[Opinion]) -> str:
    told = f"{counted(len(said), 'page')} will pass when they come again.\n" if len(said) != 1 else ""
    told = told or "1 page will pass when it comes again.\n"
    for one in said[:_NAMED]:
        told += f"  {line(one.url)}\n"
        told += f"    no copy of {line(one.other)}\n" if one.other else "    no known page was the reason of its drop\n"
    rest = len(said) - _NAMED
    return told + (f"  (and {rest:,} more)\n" if rest > 0 else "")
