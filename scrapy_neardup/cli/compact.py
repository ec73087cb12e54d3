"""``scrapy neardup compact``: shrink the files of a state."""

from __future__ import annotations

import argparse

from scrapy_neardup.cli.opening import add_store, open_state
from scrapy_neardup.cli.options import add_json, config_of
from scrapy_neardup.cli.output import format_size, write_result
from scrapy_neardup.errors import StoreDamaged, StoreError

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
    """Add the options."""
    add_store(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compact the state and print its size before and after."""
    before = 0
    try:
        with open_state(arguments.store, config_of(arguments)) as store:
            before, location = store.size(), store.location
            store.kv.compact()
            after = store.size()
    except StoreDamaged:
        raise
    except StoreError as error:
        if not before:  # it was not opened
            raise
        raise StoreError(
            f"{error} The state is not compacted, and no page is lost. Make {format_size(before)} free for it and as "
            "much in the temporary directory, then try again."
        ) from error
    data = {"store": location, "bytes_before": before, "bytes_after": after}
    write_result(arguments, data, f"{location}: {format_size(before)} → {format_size(after)}")
    return 0
