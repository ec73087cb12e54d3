"""``scrapy neardup export``: write a state to one file."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from scrapy_neardup.atomic import open_private, replace_file
from scrapy_neardup.cli.opening import add_store, snapshot_state
from scrapy_neardup.cli.options import config_of
from scrapy_neardup.cli.output import check_new_file, format_count, progress, write
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.maintenance.export import write_export

NAME = "export"
HELP = "Write the state to one file: a backup, or a way to another machine or store."
EXAMPLES = """\
the file:
  Packed JSON lines with a checksum, one page per line, the same for LevelDB and SQLite on every machine. The file has
  all data of the state, including the URLs of all pages, and their texts if kept. 'import' makes a state from it;
  'merge' adds it to one. During a crawl, the export leaves out pages whose feed is not stored yet.

examples:
  scrapy neardup export -o pages.jsonl.gz
  scrapy neardup export -o pages.jsonl.gz --force --store sqlite:///var/crawls/state.sqlite
  scrapy neardup export -o - | ssh backup 'cat > pages.jsonl.gz'
  zcat pages.jsonl.gz | head
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the file to write; -: standard output")
    add_store(parser)
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")


def run(arguments: argparse.Namespace) -> int:
    """Write the file, and print its size."""
    output = None if arguments.output == "-" else Path(arguments.output)
    if output is not None:
        check_new_file(output, force=arguments.force)
    elif sys.stdout.isatty():
        raise NearDupError("The export is binary. Name a file with -o, or send it on: … -o - | ssh …")
    with snapshot_state(arguments.store, config_of(arguments)) as store:
        watch = partial(progress, total=store.pages)
        if output is None:
            write_export(store, sys.stdout.buffer, watch)
            return 0
        with replace_file(output) as draft, open(draft, "wb", opener=open_private) as file:
            pages = write_export(store, file, watch)
        unsealed = store.pages - pages
    left_out = f"; {unsealed:,} unsealed, left out" if unsealed else ""
    write(f"{output}: {format_count(pages, 'page')} in {output.stat().st_size:,} bytes{left_out}\n")
    return 0
