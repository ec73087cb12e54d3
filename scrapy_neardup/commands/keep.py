"""``scrapy neardup keep``: a page is no copy, whatever the method says."""

from __future__ import annotations

import argparse
import sys
import time

from scrapy_neardup.commands.naming import add_urls, named
from scrapy_neardup.commands.opening import add_store, opened
from scrapy_neardup.commands.output import write
from scrapy_neardup.commands.taking_back import take_back
from scrapy_neardup.commands.wording import as_json, counted, line, missing
from scrapy_neardup.config import Config
from scrapy_neardup.judging.judgements import Opinion, Said, write_judgements
from scrapy_neardup.states.drops import originals_of
from scrapy_neardup.states.near import near_urls

NAME = "keep"
HELP = "Say that a page is no copy: it passes in the next crawl and ever after."
EXAMPLES = """\
what becomes of the page:
  It passes when it comes again, whatever it is like, and is an original of its own from then on; also if its text is
  edited. With the same text it is unchanged the time after, so it is delivered once. The page that it was dropped for
  stays what it is. The judgement stays when pages are forgotten, travels with export, import and merge, and is a label
  for 'evaluate': see scrapy neardup judgements.

examples:
  scrapy neardup keep https://a.example/ferry
  scrapy neardup dropped --last -o dropped.jsonl && scrapy neardup keep --from dropped.jsonl
  grep harbour urls.txt | scrapy neardup keep -
  scrapy neardup keep --remove https://a.example/ferry
"""

#: Pages that are named.
_NAMED = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add_urls(parser)
    parser.add_argument("--remove", action="store_true", help="take back what was said of these pages by hand")
    add_store(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def run(arguments: argparse.Namespace) -> int:
    """Write it down; 1 if one of the pages is not in the state, of which nothing is said then."""
    urls = named(arguments)
    with opened(arguments.store, Config.from_settings(arguments.settings)) as store:
        if arguments.remove:
            return take_back(store, urls, as_data=arguments.json)
        records = {url: store.find(url) for url in urls}
        found = [record for record in records.values() if record is not None]
        gone = [url for url, record in records.items() if record is None]
        for url in gone:
            sys.stderr.write(missing(url, near_urls(store, url), store.location))
        now = int(time.time())
        said = [
            Opinion(record.url, Said.KEEP, original.url if original else "", now)
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


def _as_text(said: list[Opinion]) -> str:
    told = f"{counted(len(said), 'page')} kept: to pass when they come again.\n" if len(said) != 1 else ""
    told = told or "1 page kept: to pass when it comes again.\n"
    for one in said[:_NAMED]:
        told += f"  {line(one.url)}\n"
        told += (
            f"    no copy of {line(one.other)}\n" if one.other else "    which was not dropped for a page known now\n"
        )
    rest = len(said) - _NAMED
    return told + (f"  (and {rest:,} more)\n" if rest > 0 else "")
