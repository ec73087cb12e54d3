"""``scrapy neardup merge``: add the pages of other states to a state."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scrapy_neardup.cli.opening import (
    OPTION,
    add_store,
    find_or_place_state,
    find_state,
    locate_state,
    open_or_make_state,
)
from scrapy_neardup.cli.options import add_json, config_of
from scrapy_neardup.cli.output import format_count, progress, warn, write_result
from scrapy_neardup.errors import StoreError
from scrapy_neardup.maintenance.export import ExportFile, OpenState, Source, check_recipes, method_of
from scrapy_neardup.maintenance.merge import Merged, merge
from scrapy_neardup.methods import Method
from scrapy_neardup.settings import Config
from scrapy_neardup.state.history import decisions_of
from scrapy_neardup.state.opening import STORES
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import PARAMETERS

NAME = "merge"
HELP = "Add the pages of other states, or of exported files, to a state."
EXAMPLES = """\
effect:
  All must have the same method, parameters, versions and NEARDUP_SECRET. If one differs, or if a file is damaged,
  nothing is written. If --store names no state yet, it is made.

  Pages are joined by URL. If both sides know a page, the version seen later stays. If the method finds that an original
  of one side copies an original of the other, it becomes its copy, as if one crawl had seen both. To merge the same
  again changes nothing.

examples:
  scrapy neardup merge east.jsonl.gz west.jsonl.gz --store sqlite:///var/crawls/all.sqlite
  scrapy neardup merge leveldb:///var/crawls/east/state.leveldb
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="FROM",
        help=f"a file written by 'export', or the URL of a state: {STORES.forms(lasting=True)}",
    )
    add_store(parser)
    parser.add_argument("--keep-originals", action="store_true", help="only join; find no copies across the states")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Merge, and print what became of the pages of each source."""
    config = config_of(arguments)
    url = find_or_place_state(arguments.store, config)
    with ExitStack() as stack:
        sources = [_open_source(name, config, stack) for name in arguments.sources]
        recipe: Mapping[str, Any] | None = None
        secret = config.secret
        if not _exists(url, config):
            recipe, secret = sources[0].recipe, sources[0].secret or secret
            check_recipes(sources, recipe, OPTION)
        store = stack.enter_context(open_or_make_state(url, recipe, secret))
        check_recipes(sources, store.recipe, OPTION)
        method = None if arguments.keep_originals else _method(store, config)
        merged = [(source.name, merge(source, store, method, progress)) for source in sources]
        location, pages = store.location, store.pages
        found = [{"from": name, **asdict(one)} for name, one in merged]
        lines = [*map(_line, merged), f"{location}: {format_count(pages, 'page')}"]
        write_result(arguments, {"store": location, "pages": pages, "merged": found}, lines)
    return 0


def _open_source(name: str, config: Config, stack: ExitStack) -> Source:
    if "://" not in name:
        return ExportFile(Path(name), progress)
    return OpenState(stack.enter_context(open_or_make_state(find_state(name, config), None, config.secret)))


def _exists(url: str, config: Config) -> bool:
    locate_state(url)  # raises for a URL that is wrong
    try:
        find_state(url, config)
    except StoreError:
        return False
    return True


def _method(store: PageStore, config: Config) -> Method | None:
    recipe = {**store.recipe, PARAMETERS: {**store.recipe.get(PARAMETERS, {}), **decisions_of(store)}}
    method = method_of(recipe, config.make_method())
    if method is None:
        warn(
            f"The state does not say how to make its method {recipe.get('method')!r}, so copies across the states are "
            "not found. To find them, run the command in the project with the method."
        )
    return method


def _line(merged: tuple[str, Merged]) -> str:
    return "; ".join(_counts(*merged))


def _counts(name: str, found: Merged) -> Iterator[str]:
    added = format_count(found.added, "page")
    yield f"{name}: {added} added, {found.known:,} known already, {found.newer:,} newer"
    if found.copies:
        yield f"copies across the states: {found.copies:,}"
    if found.judgements:
        yield f"manual verdicts: {found.judgements:,}"
    if found.against:
        yield f"the manual verdicts on {format_count(found.against, 'page')} differed: the newer stays"
