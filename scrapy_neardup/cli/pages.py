"""``scrapy neardup compare`` and ``extract``: the verdict on two pages, and the text of a page that would be judged."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from textwrap import indent
from typing import Any

from scrapy_neardup.cli.command import JSON, STATE, command, option
from scrapy_neardup.cli.opening import snapshot_if_exists
from scrapy_neardup.cli.output import BRACKETS, format_data, format_parts, present, to_line
from scrapy_neardup.errors import NearDupError, PageError, describe_reason
from scrapy_neardup.files import STDIN
from scrapy_neardup.inspect.extraction import inspect_extraction
from scrapy_neardup.inspect.pair import inspect_pair
from scrapy_neardup.inspect.sources import Side, find_side, read_page
from scrapy_neardup.judge.recipes import state_recipe
from scrapy_neardup.page.reading import LineRole
from scrapy_neardup.page.source import PageResponse
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.settings import Config
from scrapy_neardup.text.marking import Mark, Part
from scrapy_neardup.untrusted import one_line

#: Values that the sentence of a verdict has, and texts, which follow below.
_SAID = ("sentence", "verdict", "kind", "reason", "similarity", "containment", "certain", "parameters", "a", "b")
#: Before each line of a page: a page cannot forge lines of the command.
_INDENT = "  | "


@command(
    option("a A", "the earlier page: a file, FILE#ID, or a URL in the state"),
    option("b B", "the page to judge"),
    option("--a-url URL", "the address of A, if it is a file; it shows the site"),
    option("--b-url URL", "the address of B, if it is a file; it shows the site"),
    *STATE,
    JSON,
    examples="""\
pages:
  page.html, page.txt   a file, read as in a crawl; --a-url and --b-url name its address
  crawl.jsonl#42        the document with id 42 of any file; line 42, if that has no id and no URL
  https://a.example/    a page of the state; its text is shown if the crawl kept it (NEARDUP_KEEP = "texts")

  A state here with the same settings is used, and only read. Its boilerplate and its counts of both sites decide as
  they are now. Without it: -s NEARDUP_STORE=memory:

examples:
  scrapy neardup compare https://a.example/ferry second.html --b-url https://a.example/ferry-again
  scrapy neardup compare feed.jsonl#a17 feed.jsonl#a93 -s NEARDUP_METHOD=simhash
""",
)
def compare_command(arguments: argparse.Namespace, config: Config) -> int:
    """Print the verdict, its features and its rule."""
    method = config.make_method()
    sides = []
    for name, url in ((arguments.a, arguments.a_url), (arguments.b, arguments.b_url)):
        page = read_page(name, config, or_url=bool(arguments.store))
        sides.append(Side(name, replace(page, site=site_of(url)) if page and url else page))
    needed = bool(arguments.spider) or any(side.page is None for side in sides)
    recipe = state_recipe(method, config.make_extractor())
    with snapshot_if_exists(arguments.store, config, recipe, needed=needed) as (store, why_none):
        a, b = (find_side(side.name, store) if side.page is None and store else side for side in sides)
        pair = inspect_pair(method, config, a, b, store, why_none)
    present(arguments, pair, _pair_lines(pair))
    return 0


def _pair_lines(pair: dict[str, Any]) -> Iterator[str]:
    """Yield verdict, features, rule and marked texts."""
    yield pair["sentence"]
    sides = {"A": pair["a"], "B": pair["b"]}
    for name, side in sides.items():
        title = f', "{to_line(side["title"])}"' if side["title"] else ""
        yield f"{name} is {to_line(side['name'])}{title}"
    yield ""
    data = {**pair, "comparison": None}
    if (found := pair["comparison"]) is not None:
        keys = found["keys"]
        common = f" ({keys['common']} keys of too many pages do not count)" if keys["common"] else ""
        data |= {
            **found,
            "features": [one for one in found["features"] or () if one["value"]],
            "keys": f"{keys['shared']} of B's {keys['of']} keys are keys of A{common}",
            "compared_in_a_crawl": "yes" if found["compared_in_a_crawl"] else "no",
        }
    yield format_data(data, *_SAID)
    texts = {name: side["text"] for name, side in sides.items()}
    yield from _note_lines(texts)
    for name, text in texts.items():
        if text is not None:
            marked = format_parts(text).rstrip()
            yield f"\n{name}:\n"
            yield indent(marked, _INDENT, lambda _: True) if marked else "(no text)"


def _note_lines(texts: dict[str, list[Part] | None]) -> Iterator[str]:
    """Yield what the marks mean, and which texts are not kept."""
    without_text = [name for name, text in texts.items() if text is None]
    if len(without_text) == 2:
        yield "The state has the text of neither page. Crawl with NEARDUP_KEEP = 'texts', or name files with the pages."
        return
    for name in without_text:
        yield f"The state has no text of {name}. It recognises only some of its longest sentences."
    shared, boilerplate = ("between {} and {}".format(*BRACKETS[mark]) for mark in (Mark.SHARED, Mark.BOILERPLATE))
    yield f"Common sentences are {shared}, boilerplate (on many pages) {boilerplate}."


#: Length of the longest role of a line.
_WIDTH = max(len(role.value) for role in LineRole)


@command(
    option("source FILE", "an HTML file, or - for standard input"),
    option("--url URL", "the address of the page; it shows the site"),
    *STATE,
    JSON,
    examples="""\
roles of a line:
  article, prose        judged
  unseen                judged though invisible: a paragraph that a script unfolds
  boilerplate           left out: the state knows it from many pages; within another line {{like this}}
  quote                 left out: the words of others in a reply, a signature
  frame, links, other   left out: navigation and footer, nothing but links, no letters

examples:
  scrapy fetch --nolog https://a.example/ferry | scrapy neardup extract - --url https://a.example/ferry
  scrapy neardup extract saved.html --url https://a.example/ferry --store sqlite:///var/crawls/state.sqlite
""",
)
def extract_command(arguments: argparse.Namespace, config: Config) -> int:
    """Print the text of the page, and why it is read so."""
    method = config.make_method()
    served = _read_source(arguments.source, arguments.url or "")
    recipe = state_recipe(method, config.make_extractor())
    with snapshot_if_exists(arguments.store, config, recipe) as (store, why_no_state):
        try:
            found = inspect_extraction(served, method, config, store, why_no_state)
        except PageError as error:
            raise NearDupError(
                f"{to_line(arguments.source)} has no readable page: {to_line(str(error)).rstrip('.')} "
                f"({error.reason}). In a crawl its items pass unjudged."
            ) from None
    present(arguments, found, _page_lines(found))
    return 0


def _read_source(source: str, url: str) -> PageResponse:
    if source == STDIN:
        return PageResponse(url, sys.stdin.buffer.read())
    path = Path(source)
    try:
        return PageResponse(url or path.absolute().as_uri(), path.read_bytes())
    except (OSError, ValueError) as error:  # ValueError: the name has a NUL
        raise NearDupError(
            f"{one_line(source)} cannot be read: {one_line(str(error))}. Name an HTML file, or give a page to standard "
            "input: scrapy fetch --nolog URL | scrapy neardup extract - --url URL"
        ) from None


def _page_lines(found: dict[str, Any]) -> Iterator[str]:
    yield to_line(found["url"]) or "standard input"
    data = {**found, "judged": "yes" if found["judged"] else "no: " + describe_reason(found["reason"])}
    yield format_data(data, "url", "text", "main", "lines", indent="  ")
    for one in found["lines"]:
        is_marked = one["role"] != LineRole.BOILERPLATE.value  # else the role says it of the whole line
        parts = one["text"] if is_marked else (Part(part.text) for part in one["text"])
        yield f"{one['role']:<{_WIDTH}}  {' '.join(format_parts(parts).split())}"
    if not found["lines"]:
        yield "It shows no text."
