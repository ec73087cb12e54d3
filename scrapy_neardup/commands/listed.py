"""A list of records that a command prints for people, or as JSON lines, or writes to a file of any format."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from typing import Any

from scrapy_neardup.commands.output import write
from scrapy_neardup.commands.wording import as_json, counted
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.outputs import WRITERS, opened_output, output_format

#: Records that a terminal is shown unless more are asked for.
_SHOWN = 50


def add_output(parser: argparse.ArgumentParser, what: str) -> None:
    """The options that say where the list goes; ``what`` it is a list of."""
    parser.add_argument("-o", "--output", metavar="FILE", help=f"write the {what} to this file, all or nothing")
    parser.add_argument("--output-format", choices=WRITERS, default="", help="(default: by the suffix of FILE)")
    parser.add_argument(
        "--limit", type=int, metavar="N", help=f"{what} to show, the last ones (default: {_SHOWN}; 0: all)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON lines")


def check_output(arguments: argparse.Namespace) -> None:
    """Raises NearDupError for a format that is none, before a state is opened."""
    if arguments.limit is not None and arguments.limit < 0:
        raise SettingsError(f"--limit is {arguments.limit}. Give 0 (all) or more.")
    if arguments.output:
        output_format(arguments.output, arguments.output_format)


def put(
    arguments: argparse.Namespace, records: Iterable[dict[str, Any]], shown: Callable[[dict[str, Any]], str], what: str
) -> int:
    """Print or write the records, all with the same fields; returns how many there were.

    A table is for people and may hold what strangers wrote, so nothing in it is run by a spreadsheet. Less is shown to
    people than there is; whoever wants JSON or a file gets all.
    """
    if arguments.output:
        many, format = 0, output_format(arguments.output, arguments.output_format)
        with opened_output(arguments.output, format, "", for_spreadsheet=True) as out:
            for record in records:
                out.write(record, None)
                many += 1
        if arguments.output != "-":
            sys.stderr.write(f"{counted(many, *_one_and_more(what))} written to {arguments.output}.\n")
        return many
    found = list(records)
    limit = _SHOWN if arguments.limit is None else arguments.limit
    if arguments.json:
        few = found if arguments.limit is None else found[-limit:]
        for record in few:
            write(as_json(record, indent=None) + "\n")
        return len(found)
    for record in found[-limit:]:
        write(shown(record))
    if (rest := len(found) - len(found[-limit:])) > 0:
        write(f"(and {rest:,} before these; --limit 0 shows all)\n")
    return len(found)


def _one_and_more(what: str) -> tuple[str, str]:
    """A noun in the plural as singular and plural."""
    return what.removesuffix("s"), what
