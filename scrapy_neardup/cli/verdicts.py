"""``scrapy neardup keep``, ``copy`` and ``judgements``: give manual verdicts, and list them."""

from __future__ import annotations

import argparse
import time

from scrapy_neardup.cli.command import JSON, JSON_LINES, STATE, command, flag, option
from scrapy_neardup.cli.opening import describe_missing, find_pages, open_state, snapshot_state
from scrapy_neardup.cli.output import as_json, format_count, format_rest, present, to_line, warn, write
from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.inspect import utc_time
from scrapy_neardup.inspect.pages import list_dropped, originals_of
from scrapy_neardup.judge.lists import (
    ManualKind,
    ManualVerdict,
    find_manual_verdict,
    manual_verdicts,
    original_at,
    remove_manual_verdicts,
    write_manual_verdicts,
)
from scrapy_neardup.maintenance.tables import CRAWLS
from scrapy_neardup.settings import Config
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record

#: Pages to print.
_SHOWN = 20


@command(
    option("urls URL", "a page, by its URL as crawled", nargs="*"),
    flag("--last", "all pages that the last crawl dropped as copies, without those that have a manual verdict"),
    option("--site SITE", "with --last: only this host and its subdomains"),
    flag("--remove", "remove the manual verdicts on these pages, also those of 'copy'"),
    *STATE,
    JSON,
    examples="""\
effect:
  The page passes when it comes again, whatever it resembles. From then on it is an original. Its former original keeps
  its place. With the same text it is delivered once.

examples:
  scrapy neardup keep https://a.example/ferry
  scrapy neardup keep --last --site a.example
  scrapy neardup dropped --last --json | jq -r .url | tr "\\n" "\\0" | xargs -0 scrapy neardup keep
  scrapy neardup keep --remove https://a.example/ferry
""",
)
def keep_command(arguments: argparse.Namespace, config: Config) -> int:
    """Write or remove manual verdicts; return 1 if a page is not in the state."""
    if arguments.site is not None and not arguments.last:
        raise SettingsError("--site works only with --last. Add --last.")
    urls: list[str] = arguments.urls
    if not (any(urls) or arguments.last):
        raise SettingsError("No page is named. Give URLs, or --last.")
    with open_state(arguments.store, config) as store:
        if arguments.last:
            last = max((crawl.generation for crawl in CRAWLS.read(store)), default=0)
            dropped = list_dropped(store, last, site=arguments.site) if last else ()
            urls += [one["url"] for one in dropped if one["judged"] is None]
        urls = list(dict.fromkeys(urls))
        if arguments.remove:
            return _remove_verdicts(arguments, store, urls)
        found, missing = find_pages(store, urls)
        now = int(time.time())
        verdicts = [
            ManualVerdict(record.url, ManualKind.KEEP, original.url if original else "", now)
            for record, original in zip(found, originals_of(store, found), strict=True)
        ]
        if verdicts:
            write_manual_verdicts(store, *verdicts)
    kept = [{"url": one.url, "original": one.other or None} for one in verdicts]
    comes = "it comes" if len(verdicts) == 1 else "they come"
    shown = "".join(map(_format_verdict, verdicts[:_SHOWN])) + format_rest(len(verdicts) - _SHOWN)
    text = f"{format_count(len(verdicts), 'page')} will pass when {comes} again.\n{shown}"
    present(arguments, {"kept": kept, "missing": missing}, text)
    return 1 if missing else 0


def _format_verdict(one: ManualVerdict) -> str:
    relation = "a copy of" if one.kind is ManualKind.COPY else "no copy of"
    other = f"    {relation} {to_line(one.other)}\n" if one.other else ""
    return f"{utc_time(one.when)}  {one.kind.value}  {to_line(one.url)}\n{other}"


def _remove_verdicts(arguments: argparse.Namespace, store: PageStore, urls: list[str]) -> int:
    """Remove the manual verdicts on these pages, and print how many; return 1 if a page has none."""
    removed = [url for url in urls if find_manual_verdict(store, url) is not None]
    missing = [url for url in urls if url not in removed]
    if removed:
        remove_manual_verdicts(store, *removed)
    for url in missing:
        warn(f"{to_line(url)}\n  has no manual verdict; see: scrapy neardup judgements")
    text = f"{format_count(len(removed), 'manual verdict')} removed."
    present(arguments, {"removed": removed, "missing": missing}, text)
    return 1 if missing else 0


@command(
    option("url URL", "the copy, by its URL as crawled"),
    option("original ORIGINAL", "its original, by its URL as crawled"),
    *STATE,
    JSON,
    examples="""\
effect:
  When the page comes again with enough text, it counts as a copy of the other page, or of that page's original. This
  holds as long as the state knows the other page. What was delivered before stays. 'keep --remove' undoes it.

examples:
  scrapy neardup copy https://b.example/the-ferry-again https://a.example/ferry
""",
)
def copy_command(arguments: argparse.Namespace, config: Config) -> int:
    """Write the manual verdict; raises NearDupError if the page cannot be a copy of the other."""
    url: str = arguments.url
    with open_state(arguments.store, config) as store:
        original = _find_original(store, url, arguments.original)
        is_known = store.find(url) is not None
        write_manual_verdicts(store, ManualVerdict(url, ManualKind.COPY, arguments.original, int(time.time())))
    unknown = "" if is_known else " The state does not know it yet."
    text = f"{to_line(url)}\n  is a copy of {to_line(original.url)}, when it comes again.{unknown}"
    present(arguments, {"url": url, "original": original.url, "known": is_known}, text)
    return 0


def _find_original(store: PageStore, url: str, other: str) -> Record:
    """Return the original that the page becomes a copy of; raises NearDupError if it cannot be one."""
    if url == other:
        raise SettingsError("A page cannot be a copy of itself. Name another page as its original.")
    if store.find(other) is None:
        raise NearDupError(describe_missing(other, store))
    verdict = find_manual_verdict(store, other)
    if verdict is not None and verdict.kind is ManualKind.COPY and verdict.other == url:
        raise NearDupError(
            f"{to_line(other)} is marked as a copy of {to_line(url)}. Undo that first: scrapy neardup keep --remove "
            f"{to_line(other)}"
        )
    original = original_at(store, other, url)
    if original is None:
        raise NearDupError(
            f"{to_line(other)} cannot be the original of {to_line(url)}: it is its copy in the state, is unjudged, or "
            "has lost its own original. To make it an original, run scrapy neardup keep and crawl it."
        )
    return original


@command(
    *STATE,
    JSON_LINES,
    examples="""\
labels (--json):
  One label per pair: {"a": "https://…", "b": "https://…", "drop": "yes", "when": …} for a copy, "no" for a page to
  keep. 'evaluate --pairs' reads them.

examples:
  scrapy neardup judgements
  scrapy neardup judgements --json > labels.jsonl
""",
)
def judgements_command(arguments: argparse.Namespace, config: Config) -> int:
    """List the manual verdicts, as text or as labels."""
    with snapshot_state(arguments.store, config) as store:
        verdicts = sorted(manual_verdicts(store), key=lambda one: (one.when, one.url))
    for one in verdicts:
        if not arguments.json:
            write(_format_verdict(one))
        elif one.other:
            drop = "yes" if one.kind is ManualKind.COPY else "no"
            label = {"a": one.other, "b": one.url, "drop": drop, "when": utc_time(one.when)}
            write(as_json(label, indent=None) + "\n")
    if arguments.json and (rest := sum(not one.other for one in verdicts)):
        warn(f"{format_count(rest, 'more manual verdict')} without a known original, so not a pair.")
    if not verdicts:
        warn("This state has no manual verdicts.")
    return 0
