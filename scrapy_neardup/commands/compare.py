"""``scrapy neardup compare``: why two pages are taken for copies, or are not."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from scrapy_neardup.commands.explained import as_data, as_lines
from scrapy_neardup.commands.opening import add_strict, config_of, looked
from scrapy_neardup.commands.output import is_coloured, method_spec, write
from scrapy_neardup.commands.pair import judge
from scrapy_neardup.commands.remembered import Remembered, remembered
from scrapy_neardup.commands.remembered import as_data as remembered_data
from scrapy_neardup.commands.remembered import as_lines as remembered_lines
from scrapy_neardup.commands.sides import Side, read_page, read_side
from scrapy_neardup.commands.wording import as_json
from scrapy_neardup.config import Config
from scrapy_neardup.crawl.state import page_extractor
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.judging.recipe import state_recipe
from scrapy_neardup.methods import METHODS, Method, make_method
from scrapy_neardup.stores import Store

NAME = "compare"
HELP = "Explain the verdict on two pages: every feature with its weight, the rule that decided, what both say."
EXAMPLES = """\
pages:
  page.html             decoded and extracted as in a crawl; also .htm
  page.txt              text without a title
  crawl.jsonl#42        the document with the id 42 of a file of JSON lines, or of a folder with docs.jsonl:
                        {"id": "42", "title": "…", "text": "…"} a line; also .gz, .bz2, .xz, .zst
  https://a.example/    a page of the state: features can be compared; texts are there if the crawl kept them
                        (NEARDUP_KEEP = "texts")

  Of a copy that was dropped the state keeps why, and no text unless NEARDUP_KEEP = "texts": with its original it is
  told of as it was judged then, in either order.

  A is the page that was there first; B is judged against it. Both are judged by the method, the extractor and the
  other settings of the project, if the command runs in one.

the state:
  It is opened for a URL, and where --store is given: then sentences that it knows from many pages are left out as
  boilerplate, as in a crawl. It is only read, also while a crawl is at work on it, and none is made where there is
  none.

examples:
  scrapy neardup compare first.html second.html
  scrapy neardup compare corpora/news#a17 corpora/news#a93 --method simhash:distance=6
  scrapy neardup compare https://a.example/ferry second.html
  scrapy neardup compare crawl.jsonl.gz#1 crawl.jsonl.gz#2 --store sqlite:///var/crawls/state.sqlite --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    kinds = "a file of HTML or text, FILE#ID, or a URL in the state"
    parser.add_argument("a", metavar="A", help=f"the page that was there first: {kinds}")
    parser.add_argument("b", metavar="B", help="the page that is judged")
    parser.add_argument(
        "--method",
        metavar="NAME[:PARAMETER=VALUE,…]",
        help=f"one of {', '.join(METHODS)} (default: the project's, else cascade)",
    )
    parser.add_argument("--store", metavar="URL", help="the state (default, for a URL: the project's)")
    add_strict(parser)
    parser.add_argument(
        "--limit", type=int, default=3000, metavar="N", help="characters shown of each text (default: 3000; 0: all)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def run(arguments: argparse.Namespace) -> int:
    """Print the verdict with all that led to it; 0, whatever it is."""
    if arguments.limit < 0:
        raise SettingsError(f"--limit must be 0 or more, not {arguments.limit}; 0 shows all.")
    config = config_of(arguments)
    method = make_method(*method_spec(arguments.method)) if arguments.method else config.make_method()
    names = arguments.a, arguments.b
    pages = [read_page(name, config, or_url=bool(arguments.store)) for name in names]
    with _state(arguments.store, method, config, needed=None in pages) as store:
        if store and pages == [None, None] and (known := remembered(store, *names)):
            _tell_remembered(known, store, as_json_object=arguments.json)
            return 0
        method = method.under(store.hashes) if store else method
        a, b = (
            read_side(name, store) if page is None and store else Side(name, page)
            for name, page in zip(names, pages, strict=True)
        )
        outcome = judge(method, config, a, b, store)
    if arguments.json:
        found = as_data(method, a, b, outcome, arguments.limit)
        write(as_json({**found, "store": store.location if store else None}) + "\n")
    else:
        write("\n".join(as_lines(method, a, b, outcome, arguments.limit, coloured=is_coloured())) + "\n")
    return 0


def _tell_remembered(known: Remembered, store: Store, *, as_json_object: bool) -> None:
    if as_json_object:
        write(as_json({**remembered_data(known), "store": store.location}) + "\n")
    else:
        write("\n".join(remembered_lines(known)) + "\n")


@contextmanager
def _state(asked: str | None, method: Method, config: Config, *, needed: bool) -> Iterator[Store | None]:
    """The state where one is asked for or needed."""
    if not needed and not asked:
        yield None
        return
    with looked(asked, config, state_recipe(method, page_extractor(config))) as store:
        yield store
