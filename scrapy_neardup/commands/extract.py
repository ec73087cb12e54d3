"""``scrapy neardup extract``: show the text of a page that would be judged."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from scrapy_neardup.atomic import replacing
from scrapy_neardup.commands.opening import add_store, add_strict, config_of, opened_if_there
from scrapy_neardup.commands.output import as_json, counted, facts, is_coloured, line, room, shown, write
from scrapy_neardup.commands.pages import fetch, prejudge, read_bounded, why_not, within_bounds
from scrapy_neardup.crawl.state_location import page_extractor
from scrapy_neardup.errors import AnyReason, LexiconNeeded, NearDupError, PageError, SettingsError
from scrapy_neardup.judge.former import state_recipe
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.oneline import one_line
from scrapy_neardup.page.extraction import Line, LineKind, analyse, classify_lines
from scrapy_neardup.page.html import is_risky
from scrapy_neardup.page.reading import Reading
from scrapy_neardup.page.response import PageResponse
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.report.clean import SENTENCE
from scrapy_neardup.report.figures import language_of
from scrapy_neardup.report.html import check_template
from scrapy_neardup.report.marked import marked_page
from scrapy_neardup.report.words import ENGLISH, Words
from scrapy_neardup.settings import Config
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.text.marking import Mark, Part, own_letters

# ----------------------------------------------------------------------------------------------------------------------
# One page taken apart: what is read of it, by whom and why, and what a state holds for boilerplate in it.


@dataclass(frozen=True, slots=True)
class Dissected:
    """A page, how it was read, and its lines.

    ``letters``: letters and digits of its text; ``own``: those that are not boilerplate, None where that was not asked;
    ``quoted``: those that it quotes, which are not its own either.
    ``reason``: why it would not be judged, and ``why`` in words; empty if it would. ``noted``: pages of its site that
    the state has counted, 256 at most.
    """

    html: str
    page: Page
    reading: Reading
    lines: list[Line]
    letters: int
    own: int | None
    quoted: int
    reason: AnyReason
    why: str
    noted: int


def dissect(served: PageResponse, method: Method, config: Config, store: PageStore | None) -> Dissected:
    """Read a page as a crawl does that comes to it now; ``store`` is asked for boilerplate, and left as it is.

    Raises ExtractionError if there is no page in the response.
    """
    method = method.under(store.hashes) if store else method
    html = served.html()
    if is_risky(html):
        read_bounded(html, served.url, config)  # first where it can be ended
    found = analyse(html, served.url, max_html=config.max_html, extractor=page_extractor(config))
    page = replace(within_bounds(found.page, config), site=site_of(served.url))
    fingerprint, reason, why = _judged(method, page, config.min_letters, store)
    simplified = method.parameters.simplified
    return Dissected(
        html=html,
        page=page,
        reading=found.reading,
        lines=classify_lines(found, _boilerplate(fingerprint, page.site, method, store), simplified=simplified),
        letters=len(own_letters(page.text, simplified=simplified)),
        own=fingerprint.own if fingerprint else None,
        quoted=fingerprint.quoted if fingerprint else 0,
        reason=reason,
        why=why,
        noted=store.on_site(page.site).pages() if store and page.site else 0,
    )


def _judged(
    method: Method, page: Page, min_letters: int, store: PageStore | None
) -> tuple[Fingerprint | None, AnyReason, str]:
    try:
        fingerprint, reason = prejudge(method, page, min_letters, store)
    except LexiconNeeded as error:
        return None, error.reason, f"cannot be read by the method {method.name}: {error}".rstrip(".")
    return fingerprint, reason, why_not(reason, min_letters) if reason else ""


def _boilerplate(
    fingerprint: Fingerprint | None, site: str, method: Method, store: PageStore | None
) -> Callable[[str], int]:
    """Tells of a sentence on how many pages it stands, if it was left out for that."""
    if fingerprint is None or store is None or not fingerprint.boilerplate:
        return lambda sentence: 0
    left_out = np.array(sorted(fingerprint.boilerplate), np.uint32)
    pages = dict(zip(left_out.tolist(), store.on_site(site).stood_anywhere(left_out).tolist(), strict=True))
    return lambda sentence: pages.get(method.hashes.short(sentence), 0)


# ----------------------------------------------------------------------------------------------------------------------
# A page that was taken apart, as lines for people, as plain data, and as HTML.


#: Letters of the longest role.
_WIDTH = max(len(role.value) for role in LineKind)
#: As many pages of a site as are counted.
_MOST = 256


def as_lines(found: Dissected, location: str | None, why: str, *, coloured: bool) -> Iterator[str]:
    """What is known of the page, then its lines, each behind what it is; ``why`` there is no state at ``location``."""
    yield line(found.page.url) or "standard input"
    yield facts((name, line(value) or "(none)") for name, value in _facts(found, location, why, ENGLISH)).rstrip("\n")
    yield ""
    for one in found.lines:
        stood = f" (on {one.pages:,} pages)" if one.pages else ""
        yield f"{one.kind.value:<{_WIDTH}}  {_shown(one, coloured=coloured)}{stood}"
    if not found.lines:
        yield "It shows no text."


def as_data(found: Dissected, location: str | None, why: str) -> dict[str, Any]:
    """The same, for JSON."""
    page, reading = found.page, found.reading
    return {
        "url": page.url,
        "title": page.title,
        "headline": page.headline,
        "keywords": list(page.keywords),
        "description": page.description,
        "canonical": page.canonical or None,
        "site": page.site or None,
        "reader": page.reader,
        "why": _why(reading, ENGLISH),
        "judged": not found.reason,
        "reason": found.reason or None,
        "letters": found.letters,
        "own_letters": found.own,
        "quoted_letters": found.quoted,
        "store": location,
        "why_no_store": why or None,
        "pages_of_site": found.noted if location else None,
        "text": page.text,
        "main": page.main,
        "lines": [_line(one) for one in found.lines],
    }


def as_html(found: Dissected, location: str | None, why: str, language: str = "") -> str:
    """The page itself with its parts marked, in its own language unless another is named; see ``report.marked``."""
    page = found.page
    words = Words(language or language_of([(page.title or page.text[:SENTENCE], page.url)]))
    return marked_page(found.html, page, found.lines, list(_facts(found, location, why, words)), words)


def _facts(found: Dissected, location: str | None, why: str, words: Words) -> Iterator[tuple[str, str]]:
    page = found.page
    values = {
        "title": page.title,
        "headline": " / ".join(page.headline.split("\n")),
        "keywords": ", ".join(page.keywords),
        "description": page.description,
        "canonical": page.canonical,
        "site": page.site,
        "reader": f"{page.reader}: {_why(found.reading, words)}",
        "judged": _judgement(found, words),
        "state": _state(found, location, why, words),
    }
    yield from ((words(f"fact.{name}"), value) for name, value in values.items())


def _why(reading: Reading, words: Words) -> str:
    """Why the page was read in this way."""
    name, numbers = reading.explain()
    shown = {key: f"{value:.0%}" if isinstance(value, float) else f"{value:,}" for key, value in numbers.items()}
    letters = {"letters": words("letters", int(numbers["letters"]))} if "letters" in numbers else {}
    return words(f"reading.{name}", **{**shown, **letters})


def _judgement(found: Dissected, words: Words) -> str:
    """What a crawl would do, before it looks for earlier pages."""
    if found.reason:
        why = found.why if words.language == ENGLISH.language else words(f"reason.{found.reason}")
        return words("judged.no", reason=found.reason, why=why)
    letters = words("letters", found.letters)
    if found.own is None or found.own >= found.letters:
        return words("judged.yes", letters=letters)
    rest = max(0, found.letters - found.own - found.quoted)
    left_out = [words("judged.quotes", found.quoted)] if found.quoted else []
    left_out += [words("judged.boilerplate", rest)] if rest or not left_out else []
    return words("judged.part", own=f"{found.own:,}", letters=letters, left_out=words("comma").join(left_out))


def _state(found: Dissected, location: str | None, why: str, words: Words) -> str:
    if location is None:
        return words("marked.no_state", why=why)
    lines = words("marked.lines", sum(one.pages > 0 for one in found.lines))
    if not found.page.site:
        return words("marked.state_without_site", location=location, lines=lines)
    pages = words("pages", found.noted)
    pages = words("marked.or_more", pages=pages) if found.noted >= _MOST else pages
    return words("marked.state", location=location, site=found.page.site, pages=pages, lines=lines)


def _shown(one: Line, *, coloured: bool) -> str:
    """A line in one line; where all of it is boilerplate, that has been said."""
    whole = one.kind is LineKind.BOILERPLATE and not coloured
    return " ".join(shown([Part(one.text)] if whole else list(one.parts), coloured=coloured).split())


def _line(one: Line) -> dict[str, Any]:
    boilerplate = [part.text for part in one.parts if part.mark is Mark.BOILERPLATE]
    return {"role": one.kind.value, "text": one.text, "boilerplate": boilerplate, "pages": one.pages or None}


# ----------------------------------------------------------------------------------------------------------------------
# ``scrapy neardup extract``: what would be judged of a page, and why.


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


def _served(arguments: argparse.Namespace) -> PageResponse:
    """The page as a server gave it, or as it would have."""
    source: str = arguments.source
    if source.partition("://")[0].lower() in ("http", "https"):
        if arguments.url:
            raise SettingsError("--url is for a page in a file. A fetched page has its own URL; leave --url out.")
        return fetch(source, arguments.settings)
    if source == _STDIN:
        return PageResponse(arguments.url or "", sys.stdin.buffer.read())
    path = Path(source)
    try:
        return PageResponse(arguments.url or path.absolute().as_uri(), path.read_bytes())
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
