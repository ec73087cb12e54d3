"""``scrapy neardup export``: the state as one file."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from scrapy_neardup.atomic import replacing
from scrapy_neardup.commands.opening import add_store, looked
from scrapy_neardup.commands.output import progress, write
from scrapy_neardup.config import Config
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.states.exchange import write_export

NAME = "export"
HELP = "Write the state into one file: a backup, or the way to another machine or store."
EXAMPLES = """\
The file is the same for LevelDB and SQLite, on every machine and in every release of this form: packed JSON lines with
a checksum, a page a line. It holds all that the state holds, so the URLs of all pages, and their texts if these are
kept. 'import' makes a state of it, 'merge' adds it to one. While a crawl is at work on the state, its pages whose feed
is not stored yet are left out.

examples:
  scrapy neardup export -o pages.jsonl.gz
  scrapy neardup export -o pages.jsonl.gz --force --store sqlite:///var/crawls/state.sqlite
  scrapy neardup export -o - | ssh backup 'cat > pages.jsonl.gz'
  zcat pages.jsonl.gz | head
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the file to write; - is standard output")
    add_store(parser)
    parser.add_argument("--force", action="store_true", help="replace the file if it is there")


def run(arguments: argparse.Namespace) -> int:
    """Write the file, and say how large it is; 0."""
    output = None if arguments.output == "-" else Path(arguments.output)
    _check_output(output, force=arguments.force)
    with looked(arguments.store, Config.from_settings(arguments.settings)) as store:
        watch = partial(progress, total=store.pages)
        if output is None:
            write_export(store, sys.stdout.buffer, watch)
            return 0
        with replacing(output) as draft, draft.open("wb") as file:
            pages = write_export(store, file, watch)
        left = store.pages - pages
    out = f"; {left:,} not sealed yet, left out" if left else ""
    write(f"{output}: {pages:,} page{'s' * (pages != 1)} in {output.stat().st_size:,} bytes{out}\n")
    return 0


def _check_output(output: Path | None, *, force: bool) -> None:
    """Raises NearDupError where nothing can be written, before the state is read."""
    if output is None:
        if sys.stdout.isatty():
            raise NearDupError("The export is packed, no text; name a file with -o, or send it on: … -o - | ssh …")
    elif output.is_dir():
        raise NearDupError(f"{output} is a folder; name a file in it with -o.")
    elif output.exists() and not force:
        raise NearDupError(f"{output} is there already; name another file with -o, or replace it with --force.")
