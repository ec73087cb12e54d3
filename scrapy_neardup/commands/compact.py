"""``scrapy neardup compact``: the room of what was deleted is given back."""

from __future__ import annotations

import argparse

from scrapy_neardup.commands.opening import add_store, opened
from scrapy_neardup.commands.output import as_json, room, write
from scrapy_neardup.errors import StoreDamaged, StoreError
from scrapy_neardup.settings import Config

NAME = "compact"
HELP = "Shrink the files of a state after pages were forgotten."
EXAMPLES = """\
effect:
  While it runs it needs as much free room as the state takes. If it fails, no page is lost.

examples:
  scrapy neardup compact
  scrapy neardup compact --store sqlite:///var/crawls/state.sqlite
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add_store(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Compact the state and print how large it was and is."""
    before = 0
    try:
        with opened(arguments.store, Config.from_settings(arguments.settings)) as store:
            before, location = store.size(), store.location
            store.compact()
            after = store.size()
    except StoreDamaged:
        raise
    except StoreError as error:
        if not before:  # it was not opened
            raise
        raise StoreError(
            f"{error} The state is not compacted, and no page is lost. Make {room(before)} free for it and as much in "
            "the temporary directory, then try again."
        ) from error
    if arguments.json:
        write(as_json({"store": location, "bytes_before": before, "bytes_after": after}) + "\n")
    else:
        write(f"{location}: {room(before)} → {room(after)}\n")
    return 0
