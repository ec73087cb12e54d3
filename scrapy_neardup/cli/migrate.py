"""``scrapy neardup migrate``: convert a state to the current settings and versions."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

from scrapy_neardup.cli.command import JSON, STATE, command, option
from scrapy_neardup.cli.opening import describe_use, find_state, locate_state, open_or_make_state
from scrapy_neardup.cli.output import format_data, present, progress, warn, write
from scrapy_neardup.errors import PageError, SettingsError, StoreError
from scrapy_neardup.files import Entry, InputRecord, Malformed, read_input
from scrapy_neardup.judge.recipes import state_recipe
from scrapy_neardup.kv.base import FileEngine
from scrapy_neardup.lab.documents import make_page
from scrapy_neardup.maintenance.copying import Migration, Way, new_state
from scrapy_neardup.model import Page
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.settings import Config
from scrapy_neardup.state.recipe import fits
from scrapy_neardup.untrusted import one_line


@command(
    *STATE,
    option("--to URL", "place of the new state (default: beside the old one)"),
    option("--from FEED", "files with texts of the pages; NEARDUP_FIELDS names their fields", dest="feeds", nargs="+"),
    JSON,
    examples="""\
effect:
  A crawl refuses a state whose pages were fingerprinted with other settings or versions. This command makes a new state
  from it, with its ids, times, groups, evidence and deliveries; nothing is judged again. The old state stays as it is.

  A page gets a new fingerprint from its text in a feed (--from), else from its text in the state, if that keeps texts.
  Without a text it keeps its fingerprint if only a tool differs (extractor, segmenter). Otherwise the state knows only
  its URL: the page is judged when it comes again, and passes once as updated. --to also copies a state that needs no
  change: to another kind, or without the free room of forgotten pages.

examples:
  scrapy neardup migrate
  scrapy neardup migrate --from articles.jsonl.gz crawl.warc.gz
  scrapy neardup migrate --store sqlite:///var/crawls/a.sqlite --to leveldb:///var/crawls/a.leveldb
""",
)
def migrate_command(arguments: argparse.Namespace, config: Config) -> int:
    """Migrate, and print what became of the pages."""
    method, feeds = config.make_method(), arguments.feeds or []
    if method.memory_only:
        raise SettingsError(f"The method {method.name} works only in memory. Set NEARDUP_METHOD to another one.")
    url = find_state(arguments.store, config)
    kind, place = locate_state(arguments.to or url)
    if not issubclass(kind, FileEngine):
        raise StoreError(
            f"{place} is on a server, where migrate does not work. Copy the state to a file with scrapy neardup merge, "
            "migrate the file, and merge it into a new state on the server."
        )
    if not arguments.to:
        place = _new_place(place)
    recipe = state_recipe(method, config.make_extractor())
    with open_or_make_state(url, None, config.secret) as old:
        if not (arguments.to or feeds) and fits(old.recipe, recipe):
            old.update_recipe(recipe)
            write(f"{old.location}: already has the current method, parameters and versions.\n")
            return 0
        source = old.location
        _ = old.hashes  # raises if the secret is unknown
        with (
            new_state(kind, place, source) as (_, draft),
            open_or_make_state(kind.url(draft), recipe, old.secret) as new,
        ):
            migration = Migration(old, new, method, config.min_letters)
            migration.take_all(progress)
            if feeds:
                with config.open_source() as pages_of:
                    records = (record for name in feeds for record in read_input(name))
                    migration.take_feed(_pages(progress(records, what="records"), pages_of))
            if new.pages != old.pages:
                raise StoreError(
                    f"Only {new.pages:,} of {old.pages:,} pages were converted, so there is no new state. Find the "
                    "cause with: scrapy neardup check"
                )
    data = {
        "store": place,
        "from": source,
        "pages": {way.name.lower(): migration.ways[way] for way in Way},
        "records": migration.records,
        "records_used": migration.records_used,
    }
    known_by_url = (
        "Pages known only by URL pass once as updated when they come again. If a feed has their texts, convert the "
        "old state with them: scrapy neardup migrate --from FEED\n"
    )
    advice = known_by_url if migration.ways[Way.URL] else ""
    ways = "\n".join(f"{migration.ways[way]:,} {way.value}" for way in Way if migration.ways[way])
    text = f"{format_data({**data, 'pages': ways})}\n{advice}{describe_use(kind.url(place))}"
    present(arguments, data, text)
    return 0


def _new_place(place: str) -> str:
    """Return the first free place beside a state, such as ``state-2.sqlite``."""
    path = Path(place)
    names = (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in count(2))
    return str(next(one for one in names if not one.exists()))


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
