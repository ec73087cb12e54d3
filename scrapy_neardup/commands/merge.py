"""``scrapy neardup merge``: the pages of several states in one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scrapy_neardup.commands.opening import OPTION, add_store, existing, existing_or_new, location_of, opened_or_made
from scrapy_neardup.commands.output import as_json, progress, write
from scrapy_neardup.errors import StoreError
from scrapy_neardup.maintenance.export import ExportFile, OpenState, Source, check_recipes, method_of
from scrapy_neardup.maintenance.merge import Merged, merge
from scrapy_neardup.methods import Method
from scrapy_neardup.settings import Config
from scrapy_neardup.state.opening import STORES
from scrapy_neardup.state.pages import PageStore, decisions_of
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
    """Options of the command."""
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="FROM",
        help=f"a file written by 'export', or the URL of a state: {STORES.forms(lasting=True)}",
    )
    add_store(parser)
    parser.add_argument("--keep-originals", action="store_true", help="only join; find no copies across the states")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Merge, and say what became of the pages of each source; 0."""
    config = Config.from_settings(arguments.settings)
    url = existing_or_new(arguments.store, config)
    with ExitStack() as stack:
        sources = [_source(name, config, stack) for name in arguments.sources]
        recipe: Mapping[str, Any] | None = None
        secret = config.secret
        if not _is_there(url, config):
            recipe, secret = sources[0].recipe, sources[0].secret or secret
            check_recipes(sources, recipe, OPTION)
        store = stack.enter_context(opened_or_made(url, recipe, secret))
        check_recipes(sources, store.recipe, OPTION)
        method = None if arguments.keep_originals else _method(store, config)
        merged = [(source.name, merge(source, store, method, progress)) for source in sources]
        render = _as_data if arguments.json else _as_text
        write(render(merged, store.location, store.pages))
    return 0


def _source(name: str, config: Config, stack: ExitStack) -> Source:
    if "://" not in name:
        return ExportFile(Path(name), progress)
    return OpenState(stack.enter_context(opened_or_made(existing(name, config), None, config.secret)))


def _is_there(url: str, config: Config) -> bool:
    location_of(url)  # raises what is wrong with it
    try:
        existing(url, config)
    except StoreError:
        return False
    return True


def _method(store: PageStore, config: Config) -> Method | None:
    recipe = {**store.recipe, PARAMETERS: {**store.recipe.get(PARAMETERS, {}), **decisions_of(store)}}
    method = method_of(recipe, config.make_method())
    if method is None:
        sys.stderr.write(
            f"The state does not say how to make its method {recipe.get('method')!r}, so copies across the states are "
            "not found. To find them, run the command in the project with the method.\n"
        )
    return method


def _as_text(merged: list[tuple[str, Merged]], location: str, pages: int) -> str:
    lines = []
    for name, found in merged:
        copies = f"; copies across the states: {found.copies:,}" if found.copies else ""
        lines.append(
            f"{name}: {_pages(found.added)} added, {found.known:,} known already, {found.newer:,} newer{copies}"
            + (f"; manual verdicts: {found.judgements:,}" if found.judgements else "")
            + (f"; the manual verdicts on {_pages(found.against)} differed: the newer stays" if found.against else "")
        )
    return "\n".join([*lines, f"{location}: {_pages(pages)}\n"])


def _pages(number: int) -> str:
    return f"{number:,} page{'s' * (number != 1)}"


def _as_data(merged: list[tuple[str, Merged]], location: str, pages: int) -> str:
    found = [{"from": name, **asdict(one)} for name, one in merged]
    return as_json({"store": location, "pages": pages, "merged": found}) + "\n"
