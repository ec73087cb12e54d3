"""``scrapy neardup migrate``: convert a state to the current settings and versions."""

from __future__ import annotations

import argparse
from itertools import count
from pathlib import Path

from scrapy_neardup.cli.command import JSON, STATE, command, option
from scrapy_neardup.cli.opening import describe_use, find_state, locate_new_state, locate_state, open_or_make_state
from scrapy_neardup.cli.output import format_data, present, progress, write
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.judge.recipes import state_recipe
from scrapy_neardup.maintenance.copying import Way, migrate
from scrapy_neardup.settings import Config
from scrapy_neardup.state.recipe import fits


@command(
    *STATE,
    option("--to TO", "path or URL of the new state (default: beside the old one)"),
    JSON,
    examples="""\
effect:
  A crawl refuses a state whose pages were fingerprinted with other settings or versions. This command makes a new state
  from it, with its ids, times, groups, evidence and deliveries; nothing is judged again. The old state stays as it is.

  A page gets a new fingerprint from its text, if the state keeps texts. Without a text it keeps its fingerprint if only
  a tool differs (extractor, segmenter). Otherwise the state knows only its URL: the page is judged when it comes again,
  and passes once as updated. --to also copies a state that needs no change: to another kind, or without the free room
  of forgotten pages.

examples:
  scrapy neardup migrate
  scrapy neardup migrate --store sqlite:///var/crawls/a.sqlite --to leveldb:///var/crawls/a.leveldb
""",
)
def migrate_command(arguments: argparse.Namespace, config: Config) -> int:
    """Migrate, and print what became of the pages."""
    method = config.make_method()
    if method.memory_only:
        raise SettingsError(f"The method {method.name} works only in memory. Set NEARDUP_METHOD to another one.")
    url = find_state(arguments.store, config)
    kind, place = locate_new_state(arguments.to or url, "--to", locate_state(url)[0])
    if not arguments.to:  # the first free place beside the state, such as state-2.sqlite
        path = Path(place)
        names = (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in count(2))
        place = str(next(one for one in names if not one.exists()))
    recipe = state_recipe(method, config.make_extractor())
    with open_or_make_state(url, None, config.secret) as old:
        if not arguments.to and fits(old.recipe, recipe):
            old.update_recipe(recipe)
            write(f"{old.location}: already has the current method, parameters and versions.\n")
            return 0
        source = old.location
        ways = migrate(old, (kind, place), recipe, method, config.make_policy(), progress)
    data = {"store": place, "from": source, "pages": {way.name.lower(): many for way, many in ways.items()}}
    lines = "\n".join(f"{many:,} {way.value}" for way, many in ways.items() if many)
    advice = "Pages known only by URL pass once as updated when they come again.\n" if ways[Way.URL] else ""
    present(arguments, data, f"{format_data({**data, 'pages': lines})}\n{advice}{describe_use(kind.url(place))}")
    return 0
