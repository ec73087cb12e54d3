"""``scrapy neardup copy``: mark a page as a copy of another one."""

from __future__ import annotations

import argparse
import time

from scrapy_neardup.cli.keep import remove_verdicts
from scrapy_neardup.cli.opening import add_store, open_state
from scrapy_neardup.cli.options import add_json, config_of
from scrapy_neardup.cli.output import describe_missing, to_line, write_result
from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.inspect.lookup import near_urls
from scrapy_neardup.judge.manual_verdicts import (
    ManualKind,
    ManualVerdict,
    find_manual_verdict,
    original_at,
    write_manual_verdicts,
)
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
    """Add the options."""
    parser.add_argument("url", metavar="URL", help="the copy, by its URL as crawled")
    parser.add_argument("original", metavar="ORIGINAL", nargs="?", help="its original, by its URL as crawled")
    parser.add_argument("--remove", action="store_true", help="remove the manual verdict on the page")
    add_store(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the manual verdict, or remove it; raises NearDupError if the page cannot be a copy of the other."""
    if arguments.remove == (arguments.original is not None):
        raise SettingsError("Name the copy and its original: copy URL ORIGINAL. To undo it: copy --remove URL.")
    url: str = arguments.url
    with open_state(arguments.store, config_of(arguments)) as store:
        if arguments.remove:
            return remove_verdicts(arguments, store, [url])
        original = _find_original(store, url, arguments.original)
        is_known = store.find(url) is not None
        write_manual_verdicts(store, ManualVerdict(url, ManualKind.COPY, arguments.original, int(time.time())))
    unknown = "" if is_known else " The state does not know it yet."
    text = f"{to_line(url)}\n  is a copy of {to_line(original.url)}, when it comes again.{unknown}"
    write_result(arguments, {"url": url, "original": original.url, "known": is_known}, text)
    return 0


def _find_original(store: PageStore, url: str, other: str) -> Record:
    """Return the original that the page becomes a copy of; raises NearDupError if it cannot be one."""
    if url == other:
        raise SettingsError("A page cannot be a copy of itself. Name another page as its original.")
    if store.find(other) is None:
        raise NearDupError(describe_missing(other, near_urls(store, other), store.location).strip())
    opinion = find_manual_verdict(store, other)
    if opinion is not None and opinion.kind is ManualKind.COPY and opinion.other == url:
        raise NearDupError(
            f"{to_line(other)} is marked as a copy of {to_line(url)}. Undo that first: scrapy neardup copy --remove."
        )
    original = original_at(store, other, url)
    if original is None:
        raise NearDupError(
            f"{to_line(other)} cannot be the original of {to_line(url)}: it is its copy in the state, is unjudged, or "
            "has lost its own original. To make it an original, run scrapy neardup keep and crawl it."
        )
    return original
