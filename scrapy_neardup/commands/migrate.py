"""``scrapy neardup migrate``: a state under the settings and versions of now."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import Any

from scrapy_neardup.commands.opening import add_store, existing, location_of, only_state, opened_or_made
from scrapy_neardup.commands.output import as_json, progress, table, write
from scrapy_neardup.crawl.state_location import page_extractor
from scrapy_neardup.errors import PageError, SettingsError, StoreError
from scrapy_neardup.inputs import FORMATS, Entry, Malformed, read_input
from scrapy_neardup.judge.former import state_recipe
from scrapy_neardup.maintenance.migrate import Migrated, Migration, Way
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Page
from scrapy_neardup.oneline import one_line
from scrapy_neardup.page.extraction import decode_body
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.settings import DEFAULT_FIELDS, Config
from scrapy_neardup.state.kv import Place
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import fits
from scrapy_neardup.state.replacement import as_left, draft_of, exchange, finish, is_unfinished, remove_draft
from scrapy_neardup.state.tally import KEY, RowTally

NAME = "migrate"
HELP = "Convert a state to the current method, parameters and versions."
EXAMPLES = """\
effect:
  A crawl refuses a state whose pages were fingerprinted with other settings or versions. This command makes a new state
  from it. Every page keeps its id, its times, its group, its evidence and its delivery. Nothing is judged again.

  The new state replaces the old one. The old one stays next to it as PATH-before-DATE, a complete state, until you
  remove it. If the command is stopped, the state is unchanged, or the next call finishes the exchange.

the new fingerprint of a page:
  1. comes from a feed (--from) that has its URL: any format that 'dedup' reads, texts or HTML;
  2. else comes from the text in the state (NEARDUP_KEEP = "texts");
  3. else stays, if only a tool differs (extractor, segmenter): a page that both read alike is unchanged;
  4. else is made when the page comes again. Until then the state knows only its URL. If it is the same by the earlier
     method, it is not delivered again. Otherwise it is judged like a new page, and passes as updated if it is no copy.
     A copy at a new URL that comes before it passes.

examples:
  scrapy neardup migrate
  scrapy neardup migrate --from articles.jsonl.gz crawl.warc.gz
  scrapy neardup migrate --store sqlite:///var/crawls/a.sqlite --to leveldb:///var/crawls/a.leveldb
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add_store(parser)
    parser.add_argument("--to", metavar="URL", help="place of the new state (default: that of the old one)")
    parser.add_argument(
        "--from", dest="feeds", nargs="+", default=[], metavar="FEED", help="files with texts of the pages"
    )
    parser.add_argument("--format", choices=FORMATS, default="", help="format of the feeds (default: by suffix)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    names = parser.add_argument_group("fields", "Names of the fields in the feeds, if they differ from these.")
    for part, name in DEFAULT_FIELDS.items():
        names.add_argument(f"--{part}", metavar="FIELD", help=f"(default: {name or 'none'}, or as in NEARDUP_FIELDS)")


def run(arguments: argparse.Namespace) -> int:
    """Migrate, and say what became of the pages; 0."""
    config = Config.from_settings(arguments.settings)
    method = config.make_method()
    if method.memory_only:
        raise SettingsError(f"The method {method.name} works only in memory. Set NEARDUP_METHOD to another one.")
    url = arguments.store or only_state(config)
    kind, place = location_of(arguments.to or url)
    if kind.is_shared:
        raise StoreError(
            f"{place} is on a server, where migrate does not work. Copy the state to a file with scrapy neardup merge, "
            "migrate the file, and merge it into a new state on the server."
        )
    if is_unfinished(place):
        kept = finish(kind, place)
        sys.stderr.write(f"{NAME}: an earlier migration that was stopped is finished now. A new one begins.\n")
        _say_kept(kind, kept)
    existing(url, config)
    if arguments.to and kind.exists(place):
        raise StoreError(f"A state at {place} already exists. Name another place with --to.")
    recipe = state_recipe(method, page_extractor(config))
    remove_draft(kind, place)
    with opened_or_made(url, None, config.secret) as old:
        if not (arguments.to or arguments.feeds) and fits(old.recipe, recipe):
            old.take_on(recipe)
            write(f"{old.location}: already has the current method, parameters and versions.\n")
            return 0
        source = old.location
        with opened_or_made(kind.url(draft_of(place)), recipe, _secret_of(old)) as new:
            found = _migrated(old, new, method, config, arguments)
            pages = RowTally.unpack(new.value(KEY) or b"").pages
        if pages != old.pages:
            raise StoreError(
                f"Only {pages:,} of {old.pages:,} pages were converted, so the state at {old.location} is unchanged. "
                "Find the cause with: scrapy neardup check"
            )
    kept = exchange(kind, place, as_left(kind, place))
    if arguments.json:
        write(as_json(_as_data(found, source, place, kept)) + "\n")
    else:
        write(_as_text(found, source, place))
        _say_kept(kind, kept)
    return 0


def _secret_of(old: PageStore) -> Any:
    _ = old.hashes  # raises what is to be done where the secret is not known
    return old.secret


def _migrated(
    old: PageStore, new: PageStore, method: Method, config: Config, arguments: argparse.Namespace
) -> Migrated:
    migration = Migration(old, new, method, config.min_letters)
    migration.take_all(progress)
    if arguments.feeds:
        fields = {part: getattr(arguments, part) or name for part, name in config.fields.items()}
        risky_pool = config.make_risky_pool()
        with closing(risky_pool) if risky_pool else nullcontext():
            source = PageSource(
                fields,
                config.max_html,
                page_extractor(config),
                max_text=config.max_text,
                read_risky=risky_pool.read if risky_pool else None,
            )
            entries = (entry for name in arguments.feeds for entry in read_input(name, arguments.format))
            migration.take_feed(_pages(progress(entries, what="records"), source, fields["html"]))
    return migration.found


def _pages(entries: Any, source: PageSource, html: str) -> Iterator[Page | None]:
    """The pages of records, under the names that a crawl knows them by; None for a record of which none can be made."""
    for entry in entries:
        if isinstance(entry, Malformed):
            sys.stderr.write(f"{NAME}: {entry.place}: {one_line(entry.why)}\n")
        if not isinstance(entry, Entry):
            continue
        fields = dict(entry.fields)
        try:
            if entry.html:
                fields[html] = decode_body(entry.html, entry.content_type or None)
            url = source.fields.url(fields)
            name = source.fields.article_url(fields, url)
            yield replace(source.page(fields, None, url), url=name, site=site_of(url)) if url else None
        except PageError:
            yield None


def _as_text(found: Migrated, source: str, place: str) -> str:
    rows = [(way.value, f"{many:,}") for way in Way if (many := found.pages[way])]
    total = sum(found.pages.values())
    lines = [f"{source}: {total:,} page{'s' * (total != 1)} converted to the current method, parameters and versions"]
    lines += [f"in {place}"] * (source != place)
    lines += ["", table(["pages", "how many"], rows), ""]
    if found.rows:
        lines.append(
            f"{found.used:,} of {found.rows:,} records of the feed belong to a page that needed a fingerprint."
        )
    if found.pages[Way.URL]:
        lines.append(
            "Pages known only by URL get a fingerprint when they come again. If a feed has their texts, convert them "
            "now: scrapy neardup migrate --from FEED"
        )
    return "\n".join([*lines, ""])


def _say_kept(kind: type[Place], kept: str) -> None:
    if kept:
        write(f"The old state is kept as {kind.url(kept)}. Remove it when you no longer need it.\n")


def _as_data(found: Migrated, source: str, place: str, kept: str) -> dict[str, Any]:
    pages = {way.name.lower(): found.pages[way] for way in Way}
    records = {"records": found.rows, "records_used": found.used}
    return {"store": place, "from": source, "kept": kept or None, "pages": pages, **records}
