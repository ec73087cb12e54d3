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
HELP = "Show what would be judged of a page: by which reader, why, and what of it is boilerplate to the state."
EXAMPLES = """\
what a line is:
  article               judged, and part of the article: trafilatura holds it for the main text, and can be believed
  prose                 judged as well; all of it where no article can be told, or what NEARDUP_EXTRACTOR gives
  unseen                judged though it is not visible: a paragraph that a script unfolds
  boilerplate           left out, as it stands on many pages that the state knows; within another line {{as this is}}
  frame                 left out: in what the page itself marks as navigation or footer
  links                 left out: nothing but links
  other                 left out: without letters, or not given by NEARDUP_EXTRACTOR

the state:
  The one that a crawl here uses, if it is there, no crawl holds it, and it was written under the same settings. It is
  asked for boilerplate alone: the page is not judged against it, and not put into it.

--html:
  The page itself with its parts marked, as one file that loads nothing: without scripts, styles, images and forms.

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
        "source", metavar="URL|FILE", help="a page: fetched as a crawl here would, a file of HTML, or -"
    )
    parser.add_argument("--url", metavar="URL", help="the address of the page in a file: it tells whose page it is")
    add_store(parser)
    add_strict(parser)
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--html", metavar="FILE", help="write the page with its parts marked instead (- prints)")
    output.add_argument("--json", action="store_true", help="print one JSON object instead")


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
                f"No page can be made of {line(arguments.source)}: {line(str(error)).rstrip('.')} ({error.reason}). In "
                "a crawl its items pass, and are not judged."
            ) from None
        location = store.location if store else None
    if arguments.html:
        _save(as_html(found, location, why), arguments.html, found)
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
            raise SettingsError("--url is the address of a page in a file; one that is fetched has its own.")
        return fetch(source, arguments.settings)
    if source == _STDIN:
        return Served(arguments.url or "", sys.stdin.buffer.read())
    path = Path(source)
    try:
        return Served(arguments.url or path.absolute().as_uri(), path.read_bytes())
    except (OSError, ValueError) as error:  # such as a NUL in the name
        raise NearDupError(
            f"{one_line(source)} cannot be read: {one_line(str(error))}; name a file of HTML, a URL with its http:// "
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
