"""``scrapy neardup copy``: a page is a copy of another one, whatever the method says."""

from __future__ import annotations

import argparse
import time

from scrapy_neardup.commands.keep import take_back
from scrapy_neardup.commands.opening import add_store, opened
from scrapy_neardup.commands.output import as_json, line, missing, write
from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.judge.manual_verdicts import ManualVerdict, Opinion, judgement_of, original_at, write_judgements
from scrapy_neardup.maintenance.lookup import near_urls
from scrapy_neardup.settings import Config
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record

NAME = "copy"
HELP = "Mark a page as a copy of another one, to be dropped when it comes again."
EXAMPLES = """\
effect:
  When the page comes again with enough text, it counts as a copy of the other page, or of that page's original. It is
  dropped unless NEARDUP_POLICY lets copies pass. This holds as long as the state knows the other page. An earlier
  version that was delivered stays in the state, and so do its copies. The manual verdict survives 'forget', is kept by
  'export', 'import' and 'merge', and is a label for 'evaluate': see scrapy neardup judgements.

examples:
  scrapy neardup copy https://b.example/the-ferry-again https://a.example/ferry
  scrapy neardup copy --remove https://b.example/the-ferry-again
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("url", metavar="URL", help="the copy, by its URL as crawled")
    parser.add_argument("original", metavar="ORIGINAL", nargs="?", help="its original, by its URL as crawled")
    parser.add_argument("--remove", action="store_true", help="remove the manual verdict on the page")
    add_store(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Write it down; raises NearDupError where it cannot be."""
    if arguments.remove == (arguments.original is not None):
        raise SettingsError("Name the copy and its original: copy URL ORIGINAL. To undo it: copy --remove URL.")
    with opened(arguments.store, Config.from_settings(arguments.settings)) as store:
        if arguments.remove:
            return take_back(store, [arguments.url], as_data=arguments.json)
        original = _original(store, arguments.url, arguments.original)
        is_known = store.find(arguments.url) is not None
        write_judgements(store, Opinion(arguments.url, ManualVerdict.COPY, arguments.original, int(time.time())))
    if arguments.json:
        write(as_json({"url": arguments.url, "original": original.url, "known": is_known}) + "\n")
    else:
        new = "" if is_known else " The state does not know it yet."
        write(f"{line(arguments.url)}\n  is a copy of {line(original.url)}, when it comes again.{new}\n")
    return 0


def _original(store: PageStore, url: str, other: str) -> Record:
    """The original that a page is to be a copy of; raises NearDupError if it cannot be."""
    if url == other:
        raise SettingsError("A page cannot be a copy of itself. Name another page as its original.")
    if store.find(other) is None:
        raise NearDupError(missing(other, near_urls(store, other), store.location).strip())
    found, said = original_at(store, other, url), judgement_of(store, other)
    if said is not None and said.said is ManualVerdict.COPY and said.other == url:
        raise NearDupError(
            f"{line(other)} is marked as a copy of {line(url)}. Undo that first: scrapy neardup copy --remove."
        )
    if found is None:
        raise NearDupError(
            f"{line(other)} cannot be the original of {line(url)}: it is its copy in the state, is unjudged, or has "
            "lost its own original. To make it an original, run scrapy neardup keep and crawl it."
        )
    return found
