"""``scrapy neardup migrate``: convert a state to the current settings and versions."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator

from scrapy_neardup.cli.command import JSON, STATE, command, config_of, fields_of, fields_option, format_option, option
from scrapy_neardup.cli.opening import find_state, locate_state, only_state, open_or_make_state
from scrapy_neardup.cli.output import format_data, present, progress, warn, write
from scrapy_neardup.errors import PageError, SettingsError, StoreError
from scrapy_neardup.files import Entry, InputRecord, Malformed, read_input
from scrapy_neardup.judge.recipes import state_recipe
from scrapy_neardup.kv.base import FileEngine
from scrapy_neardup.kv.exchange import draft_of, exchange, finish, is_unfinished, remove_draft
from scrapy_neardup.kv.tally import KEY, RowTally
from scrapy_neardup.lab.documents import make_page
from scrapy_neardup.maintenance.migrate import Migration, Way
from scrapy_neardup.model import Page
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.state.recipe import fits
from scrapy_neardup.untrusted import one_line


@command(
    "migrate",
    *STATE,
    option("--to URL", "place of the new state (default: that of the old one)"),
    option("--from FEED", "files with texts of the pages", dest="feeds", nargs="+", default=[]),
    format_option("the feeds"),
    JSON,
    fields_option("Names of the fields in the feeds, if they differ from these."),
    examples="""\
effect:
  A crawl refuses a state whose pages were fingerprinted with other settings or versions. This command makes a new state
  from it. Every page keeps its id, its times, its group, its evidence and its delivery. Nothing is judged again.

  The new state replaces the old one. The old one stays next to it as PATH-before-DATE, a complete state, until you
  remove it. If the command is stopped, the state is unchanged, or the next call finishes the exchange.

the new fingerprint of a page:
  1. comes from a feed (--from) that has its URL: any format that 'dedup' reads, texts or HTML;
  2. else comes from the text in the state (NEARDUP_KEEP = "texts");
  3. else stays, if only a tool differs (extractor, segmenter): a page that both read alike is unchanged;
  4. else is made when the page comes again. Until then the state knows only its URL. The page passes once as updated,
     also if it is unchanged; --from FEED avoids that. A copy at a new URL that comes before it passes.

examples:
  scrapy neardup migrate
  scrapy neardup migrate --from articles.jsonl.gz crawl.warc.gz
  scrapy neardup migrate --store sqlite:///var/crawls/a.sqlite --to leveldb:///var/crawls/a.leveldb
""",
)
def convert_state(arguments: argparse.Namespace) -> int:
    """Migrate, and print what became of the pages."""
    config = config_of(arguments)
    method = config.make_method()
    if method.memory_only:
        raise SettingsError(f"The method {method.name} works only in memory. Set NEARDUP_METHOD to another one.")
    url = arguments.store or only_state(config)
    kind, place = locate_state(arguments.to or url)
    if not issubclass(kind, FileEngine):
        raise StoreError(
            f"{place} is on a server, where migrate does not work. Copy the state to a file with scrapy neardup merge, "
            "migrate the file, and merge it into a new state on the server."
        )
    if is_unfinished(place):
        kept = finish(kind, place)
        warn("migrate: an earlier migration that was stopped is finished now. A new one begins.")
        write(_describe_old_state(kept and kind.url(kept)))
    find_state(url, config)  # raises if there is none
    if arguments.to and kind.exists(place):
        raise StoreError(f"A state at {place} already exists. Name another place with --to.")
    recipe = state_recipe(method, config.make_extractor())
    remove_draft(kind, place)
    with open_or_make_state(url, None, config.secret) as old:
        if not (arguments.to or arguments.feeds) and fits(old.recipe, recipe):
            old.update_recipe(recipe)
            write(f"{old.location}: already has the current method, parameters and versions.\n")
            return 0
        source = old.location
        _ = old.hashes  # raises if the secret is unknown
        with open_or_make_state(kind.url(draft_of(place)), recipe, old.secret) as new:
            migration = Migration(old, new, method, config.min_letters)
            migration.take_all(progress)
            if arguments.feeds:
                with config.open_source(fields_of(arguments, config)) as pages_of:
                    records = (record for name in arguments.feeds for record in read_input(name, arguments.format))
                    migration.take_feed(_pages(progress(records, what="records"), pages_of))
            found = migration.found
            pages = RowTally.unpack(new.value(KEY) or b"").pages
        if pages != old.pages:
            raise StoreError(
                f"Only {pages:,} of {old.pages:,} pages were converted, so the state at {old.location} is unchanged. "
                "Find the cause with: scrapy neardup check"
            )
    kept = exchange(kind, place, old.kv.tally if source == place else None)
    data = {
        "store": place,
        "from": source,
        "kept": kept or None,
        "pages": {way.name.lower(): found.pages[way] for way in Way},
        "records": found.rows,
        "records_used": found.used,
    }
    known_by_url = (
        "Pages known only by URL pass once as updated when they come again. If a feed has their texts, convert them "
        "now: scrapy neardup migrate --from FEED\n"
    )
    advice = known_by_url if found.pages[Way.URL] else ""
    ways = "\n".join(f"{found.pages[way]:,} {way.value}" for way in Way if found.pages[way])
    present(
        arguments,
        data,
        f"{format_data({**data, 'pages': ways})}\n{advice}{_describe_old_state(kept and kind.url(kept))}",
    )
    return 0


def _pages(records: Iterable[InputRecord], source: PageSource) -> Iterator[Page | None]:
    """Yield the page of each record, under the URL that a crawl gives it; None if the record has no page."""
    for record in records:
        if isinstance(record, Malformed):
            warn(f"migrate: {record.place}: {one_line(record.why)}")
        if not isinstance(record, Entry):
            continue
        url = source.fields.url(record.fields)
        try:
            yield make_page(source, record, source.fields.article_url(record.fields, url), url) if url else None
        except PageError:
            yield None


def _describe_old_state(url: str) -> str:
    return f"The old state is kept as {url}. Remove it when you no longer need it.\n" if url else ""
