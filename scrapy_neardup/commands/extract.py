"""``scrapy neardup extract``: what would be judged of a page, and why."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scrapy_neardup.atomic import replacing
from scrapy_neardup.commands.dissected import Dissected, dissect
from scrapy_neardup.commands.extracted import as_data, as_html, as_lines
from scrapy_neardup.commands.fetching import fetch
from scrapy_neardup.commands.opening import add_store, add_strict, config_of, opened_if_there
from scrapy_neardup.commands.output import is_coloured, write
from scrapy_neardup.commands.wording import as_json, counted, line, room
from scrapy_neardup.crawl.state import page_extractor
from scrapy_neardup.errors import NearDupError, PageError, SettingsError
from scrapy_neardup.judging.recipe import state_recipe
from scrapy_neardup.oneline import one_line
from scrapy_neardup.page.served import Served
from scrapy_neardup.report.template import check_template

NAME = "extract"
HELP = "Show the text of a page that would be judged: its reader, the reason, its boilerplate."
EXAMPLES = """\
roles of a line:
  article               judged, and part of the article: trafilatura's main text, if it is plausible
  prose                 judged; all text of a page without a clear article, or the text of NEARDUP_EXTRACTOR
  unseen                judged though invisible: a paragraph that a script unfolds
  boilerplate           left out: the state knows it from many pages; within another line {{like this}}
  frame                 left out: navigation or footer by the page's own markup
  links                 left out: nothing but links
  other                 left out: no letters, or not given by NEARDUP_EXTRACTOR

the state:
  The command uses the state of a crawl here, if it exists, is free and has the same settings. It asks only for
  boilerplate. The page is neither compared with the state nor added to it.

--html:
  Writes the page with its parts marked, as one file that loads nothing: no scripts, styles, images or forms.

examples:
  scrapy neardup extract https://a.example/ferry
  scrapy neardup extract saved.html --url https://a.example/ferry --store sqlite:///var/crawls/state.sqlite
  scrapy neardup extract saved.html --html marked.html
  curl https://a.example/ferry | scrapy neardup extract - --json | jq .reader
"""

_STDIN = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument(
        "source", metavar="URL|FILE", help="a page: a URL to fetch as a crawl would, an HTML file, or -"
    )
    parser.add_argument("--url", metavar="URL", help="the address of the page in a file; it shows the site")
    add_store(parser)
    add_strict(parser)
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--html", metavar="FILE", help="write the page with its parts marked (-: standard output)")
    output.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Print what is read of the page, and why; 0."""
    if arguments.html:
        check_template()
    config = config_of(arguments)
    method = config.make_method()
    served = _served(arguments)
    with opened_if_there(arguments.store, config, state_recipe(method, page_extractor(config))) as (store, why):
        try:
            found = dissect(served, method, config, store)
        except PageError as error:
            raise NearDupError(
                f"{line(arguments.source)} has no readable page: {line(str(error)).rstrip('.')} ({error.reason}). In "
                "a crawl its items pass unjudged."
            ) from None
        location = store.location if store else None
    if arguments.html:
        _save(as_html(found, location, why, config.lang), arguments.html, found)
    elif arguments.json:
        write(as_json(as_data(found, location, why)) + "\n")
    else:
        write("\n".join(as_lines(found, location, why, coloured=is_coloured())) + "\n")
    return 0


def _served(arguments: argparse.Namespace) -> Served:
    """The page as a server gave it, or as it would have."""
    source: str = arguments.source
    if source.partition("://")[0].lower() in ("http", "https"):
        if arguments.url:
            raise SettingsError("--url is for a page in a file. A fetched page has its own URL; leave --url out.")
        return fetch(source, arguments.settings)
    if source == _STDIN:
        return Served(arguments.url or "", sys.stdin.buffer.read())
    path = Path(source)
    try:
        return Served(arguments.url or path.absolute().as_uri(), path.read_bytes())
    except (OSError, ValueError) as error:  # such as a NUL in the name
        raise NearDupError(
            f"{one_line(source)} cannot be read: {one_line(str(error))}. Name an HTML file, a URL with http:// "
            "or https://, or - for standard input."
        ) from None


def _save(html: str, name: str, found: Dissected) -> None:
    if name == _STDIN:
        sys.stdout.buffer.write(html.encode())  # UTF-8, as it says itself, whatever standard output is set to
        return
    path = Path(name)
    with replacing(path) as draft:
        draft.write_text(html, encoding="utf-8")
    write(f"{name}: {found.page.reader}, {counted(len(found.lines), 'line')} ({room(path.stat().st_size)}).\n")
