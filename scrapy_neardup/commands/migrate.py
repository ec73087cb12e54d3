"""``scrapy neardup migrate``: a state under the settings and versions of now."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import Any

from scrapy_neardup.commands.making import opened_or_made
from scrapy_neardup.commands.opening import add_store, existing, location_of
from scrapy_neardup.commands.output import progress, table, write
from scrapy_neardup.commands.wording import as_json
from scrapy_neardup.config import DEFAULT_FIELDS, Config
from scrapy_neardup.crawl.state import page_extractor, state_url
from scrapy_neardup.errors import PageError, SettingsError, StoreError
from scrapy_neardup.inputs import FORMATS, Entry, Malformed, read_input
from scrapy_neardup.judging.recipe import state_recipe
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Page
from scrapy_neardup.oneline import one_line
from scrapy_neardup.page.extraction import decode_body
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.states.migration import Migrated, Migration, Way
from scrapy_neardup.stores import Store
from scrapy_neardup.stores.exchanged import as_left, draft_of, exchange, finish, is_unfinished, remove_draft
from scrapy_neardup.stores.place import Place
from scrapy_neardup.stores.recipe import fits
from scrapy_neardup.stores.tally import KEY, RowTally

NAME = "migrate"
HELP = "Bring a state to the method, parameters and versions of now."
EXAMPLES = """\
Where the settings or the versions of now are not those by which the pages of a state were fingerprinted, the state is
refused. This makes a new one of it, in which every page keeps its id, when it was first and last seen, its group, its
evidence and its delivery. Nothing is judged again. Its fingerprint

  1. is made anew from a feed (--from), if the page is in it by its URL: any format that 'dedup' reads, texts or HTML;
  2. else from the text that the state keeps of it (NEARDUP_KEEP = "texts");
  3. else stays as it is, if only a tool is another (extractor, segmenter): pages that are read as before are unchanged;
  4. else is made when the page comes again, which is known by its URL until then. If it is what it was by the former
     method, it is not delivered again. If it is not, or that cannot be told, it is judged as if it came for the first
     time, and passes as updated if it is no copy. A copy of it at a new URL that comes before it passes.

The new state takes the place of the old one, which is kept beside it as PATH-before-DATE, a state like any other, until
you remove it. If the command is stopped, the state is as it was, or the next call ends what was begun.

examples:
  scrapy neardup migrate
  scrapy neardup migrate --from articles.jsonl.gz crawl.warc.gz
  scrapy neardup migrate --store sqlite:///var/crawls/a.sqlite --to leveldb:///var/crawls/a.leveldb
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add_store(parser)
    parser.add_argument("--to", metavar="URL", help="where the new state goes (default: in the place of the old one)")
    parser.add_argument(
        "--from", dest="feeds", nargs="+", default=[], metavar="FEED", help="files with texts of the pages"
    )
    parser.add_argument("--format", choices=FORMATS, default="", help="that of the feeds (default: by their names)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    names = parser.add_argument_group("fields", "What holds what in the feeds, where the names differ from these.")
    for part, name in DEFAULT_FIELDS.items():
        names.add_argument(f"--{part}", metavar="FIELD", help=f"(default: {name or 'none'}, or as in NEARDUP_FIELDS)")


def run(arguments: argparse.Namespace) -> int:
    """Migrate, and say what became of the pages; 0."""
    config = Config.from_settings(arguments.settings)
    method = config.make_method()
    if method.memory_only:
        raise SettingsError(f"The method {method.name} works in memory alone; name one whose state lasts.")
    url = arguments.store or state_url(config)
    kind, place = location_of(arguments.to or url)
    if kind.is_shared:
        raise StoreError(
            f"A state on a server is not migrated there: {place}. Bring it into a file with scrapy neardup merge, "
            "migrate that, and merge it into a new state on the server."
        )
    if is_unfinished(place):
        kept = finish(kind, place)
        sys.stderr.write(f"{NAME}: the migration that was cut short is complete now, and what follows is another.\n")
        _say_kept(kind, kept)
    existing(url, config)
    if arguments.to and kind.exists(place):
        raise StoreError(f"There is a state at {place} already; name a place where nothing is with --to.")
    recipe = state_recipe(method, page_extractor(config))
    remove_draft(kind, place)
    with opened_or_made(url, None, config.secret) as old:
        if not (arguments.to or arguments.feeds) and fits(old.recipe, recipe):
            old.take_on(recipe)
            write(f"{old.location}: it is of the method, parameters and versions of now; nothing to do.\n")
            return 0
        source = old.location
        with opened_or_made(kind.url(draft_of(place)), recipe, _secret_of(old)) as new:
            found = _migrated(old, new, method, config, arguments)
            pages = RowTally.unpack(new.value(KEY) or b"").pages
        if pages != old.pages:
            raise StoreError(
                f"Of {old.pages:,} pages {pages:,} came over, so the state at {old.location} was left as it is. Look "
                "for what is wrong with it: scrapy neardup check"
            )
    kept = exchange(kind, place, as_left(kind, place))
    if arguments.json:
        write(as_json(_as_data(found, source, place, kept)) + "\n")
    else:
        write(_as_text(found, source, place))
        _say_kept(kind, kept)
    return 0


def _secret_of(old: Store) -> Any:
    _ = old.hashes  # raises what is to be done where the secret is not known
    return old.secret


def _migrated(old: Store, new: Store, method: Method, config: Config, arguments: argparse.Namespace) -> Migrated:
    migration = Migration(old, new, method, config.min_letters)
    migration.take_all(progress)
    if arguments.feeds:
        fields = {part: getattr(arguments, part) or name for part, name in config.fields.items()}
        apart = config.make_apart()
        with closing(apart) if apart else nullcontext():
            source = PageSource(
                fields,
                config.max_html,
                page_extractor(config),
                max_text=config.max_text,
                apart=apart.read if apart else None,
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
            name = source.fields.named(fields, url)
            yield replace(source.page(fields, None, url), url=name, site=site_of(url)) if url else None
        except PageError:
            yield None


def _as_text(found: Migrated, source: str, place: str) -> str:
    rows = [(way.value, f"{many:,}") for way in Way if (many := found.pages[way])]
    total = sum(found.pages.values())
    lines = [f"{source}: {total:,} page{'s' * (total != 1)} brought to the method, parameters and versions of now"]
    lines += [f"in {place}"] * (source != place)
    lines += ["", table(["pages", "how many"], rows), ""]
    if found.rows:
        lines.append(
            f"Of {found.rows:,} records of the feed {found.used:,} are of a page that was to be fingerprinted."
        )
    if found.pages[Way.URL]:
        lines.append(
            "Pages that are known by their URL are fingerprinted when they come again; those of which there is a feed "
            "with texts can be now: scrapy neardup migrate --from FEED"
        )
    return "\n".join([*lines, ""])


def _say_kept(kind: type[Place], kept: str) -> None:
    if kept:
        write(f"The old state is kept as {kind.url(kept)}; remove it when you need it no more.\n")


def _as_data(found: Migrated, source: str, place: str, kept: str) -> dict[str, Any]:
    pages = {way.name.lower(): found.pages[way] for way in Way}
    records = {"records": found.rows, "records_used": found.used}
    return {"store": place, "from": source, "kept": kept or None, "pages": pages, **records}
