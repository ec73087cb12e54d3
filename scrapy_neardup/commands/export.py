"""``scrapy neardup export``: the state as one file."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from scrapy_neardup.atomic import open_private, replace_file
from scrapy_neardup.commands.opening import add_store, looked
from scrapy_neardup.commands.output import progress, write
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.maintenance.export import write_export
from scrapy_neardup.settings import Config

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
    """Options of the command."""
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the file to write; -: standard output")
    add_store(parser)
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")


def run(arguments: argparse.Namespace) -> int:
    """Write the file, and say how large it is; 0."""
    output = None if arguments.output == "-" else Path(arguments.output)
    _check_output(output, force=arguments.force)
    with looked(arguments.store, Config.from_settings(arguments.settings)) as store:
        watch = partial(progress, total=store.pages)
        if output is None:
            write_export(store, sys.stdout.buffer, watch)
            return 0
        with replace_file(output) as draft, open(draft, "wb", opener=open_private) as file:
            pages = write_export(store, file, watch)
        left = store.pages - pages
    out = f"; {left:,} unsealed, left out" if left else ""
    write(f"{output}: {pages:,} page{'s' * (pages != 1)} in {output.stat().st_size:,} bytes{out}\n")
    return 0


def _check_output(output: Path | None, *, force: bool) -> None:
    """Raises NearDupError where nothing can be written, before the state is read."""
    if output is None:
        if sys.stdout.isatty():
            raise NearDupError("The export is binary. Name a file with -o, or send it on: … -o - | ssh …")
    elif output.is_dir():
        raise NearDupError(f"{output} is a folder. Name a file in it with -o.")
    elif output.exists() and not force:
        raise NearDupError(f"{output} exists. Name another file with -o, or replace it with --force.")
