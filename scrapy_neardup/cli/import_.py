"""``scrapy neardup import``: make a new state from an exported file."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from scrapy_neardup.cli.opening import add_store, find_or_place_state, locate_state, open_or_make_state
from scrapy_neardup.cli.options import add_json, config_of
from scrapy_neardup.cli.output import format_count, progress, write_result
from scrapy_neardup.maintenance.export import ExportFile, import_state

NAME = "import"
HELP = "Make a new state from a file written by 'export'."
EXAMPLES = """\
effect:
  The whole file is verified before the state is made. If the state already has pages, nothing happens: add pages with
  'merge'. The pages count only after the whole import.

examples:
  scrapy neardup import pages.jsonl.gz
  scrapy neardup import pages.jsonl.gz --store sqlite:///var/crawls/state.sqlite
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a file written by 'export'")
    add_store(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Make the state, and print how many pages it has."""
    config = config_of(arguments)
    url = find_or_place_state(arguments.store, config)
    locate_state(url)  # raises for a state in memory
    source = ExportFile(arguments.file, progress)
    with open_or_make_state(url, source.recipe, source.secret or config.secret) as store:
        pages = import_state(source, store, partial(progress, total=source.size))
        location = store.location
    text = f"{location}: {format_count(pages, 'page')} imported from {source.name}"
    write_result(arguments, {"store": location, "pages": pages}, text)
    return 0
