"""``scrapy neardup brake``: for what the safety brake has come on, and whether all is well there."""

from __future__ import annotations

import argparse
import sys

from scrapy_neardup.commands.opening import add_store, looked, opened
from scrapy_neardup.commands.output import table, write
from scrapy_neardup.commands.wording import as_json, counted, iso, line
from scrapy_neardup.config import Config
from scrapy_neardup.states.brakes import Braked, brakes, release, watch_again

NAME = "brake"
HELP = "List the sites and originals for which the safety brake has come on, and release it."
EXAMPLES = """\
where it came on:
  Many pages of a site were dropped of a sudden, or many of different titles for one original: something may have been
  wrong with the text that was read, or somebody forged. From then on copies there pass, tagged, in this crawl and in
  the next ones, which so bring what had been dropped; until it is released. It does not come on again for what was
  released, unless it is told to watch that again.

examples:
  scrapy neardup brake
  scrapy neardup brake --release a.example https://b.example/disclaimer
  scrapy neardup brake --watch a.example
  scrapy neardup brake --release-all --store leveldb:///var/crawls/state.leveldb
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument(
        "--release", metavar="NAME", nargs="+", default=[], help="a site, or an original by its URL, as they are listed"
    )
    ways.add_argument("--release-all", action="store_true", help="all that it is on for")
    ways.add_argument(
        "--watch", metavar="NAME", nargs="+", default=[], help="what was released is like any other again"
    )
    add_store(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def run(arguments: argparse.Namespace) -> int:
    """List, release, or watch again; 1 if a name is none that it came on for."""
    way = opened if arguments.release or arguments.release_all or arguments.watch else looked
    with way(arguments.store, Config.from_settings(arguments.settings)) as store:
        names, found = {*arguments.release, *arguments.watch}, list(brakes(store))
        if arguments.release_all:
            names = {braked.name for braked in found if not braked.released}
        shown = (watch_again if arguments.watch else release)(store, names) if names else found
    unknown = sorted(names - {braked.name for braked in found})
    for name in unknown:
        sys.stderr.write(f"The safety brake never came on for {line(name)}; scrapy neardup brake lists what it did.\n")
    if arguments.json:
        write(as_json({"brakes": [_as_data(braked) for braked in shown]}) + "\n")
    elif names or arguments.release_all:
        write(f"{'watched again' if arguments.watch else 'released'}: {counted(len(shown) if names else 0, 'brake')}\n")
    elif not found:
        write("The safety brake is on for nothing.\n")
    else:
        rows = [
            (line(one.name), _sort(one), iso(one.since), "released" if one.released else "on, copies pass")
            for one in shown
        ]
        write(table(["name", "what it is", "came on", "now"], rows, words=4))
    return 1 if unknown else 0


def _sort(braked: Braked) -> str:
    return f"original, copied by {line(braked.site)}" if braked.url else "site"


def _as_data(braked: Braked) -> dict[str, object]:
    return {
        "name": braked.name,
        "site": braked.site,
        "original": braked.url or None,
        "since": iso(braked.since),
        "released": braked.released,
    }
