"""``scrapy neardup import``: a new state from an exported file."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from scrapy_neardup.commands.opening import add_store, existing_or_new, location_of, opened_or_made
from scrapy_neardup.commands.output import as_json, progress, write
from scrapy_neardup.maintenance.export import ExportFile, import_state
from scrapy_neardup.settings import Config

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
    """Options of the command."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a file written by 'export'")
    add_store(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Make the state, and say how many pages it holds; 0."""
    config = Config.from_settings(arguments.settings)
    url = existing_or_new(arguments.store, config)
    location_of(url)
    source = ExportFile(arguments.file, progress)
    with opened_or_made(url, source.recipe, source.secret or config.secret) as store:
        pages = import_state(source, store, partial(progress, total=source.size))
        location = store.location
    if arguments.json:
        write(as_json({"store": location, "pages": pages}) + "\n")
    else:
        write(f"{location}: {pages:,} page{'s' * (pages != 1)} imported from {source.name}\n")
    return 0
