"""``scrapy neardup compare``: explain the verdict on two pages."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from scrapy_neardup.commands.comparison import UsedState, as_data, as_lines, judge
from scrapy_neardup.commands.opening import add_store, add_strict, config_of, looked, opened_if_there
from scrapy_neardup.commands.output import as_json, is_coloured, iso, line, method_spec, write
from scrapy_neardup.commands.pages import Side, read_page, read_side
from scrapy_neardup.crawl.state_location import page_extractor
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.judge.former import state_recipe
from scrapy_neardup.maintenance.lookup import KnownSite
from scrapy_neardup.methods import METHODS, Method, make_method
from scrapy_neardup.model import Page
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.settings import Config
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record

# ----------------------------------------------------------------------------------------------------------------------
# Two pages of a state of which one is known as a copy and no more: what was said of them when it was judged.


@dataclass(frozen=True, slots=True)
class Remembered:
    """A copy and the page that it is compared with: its original, or ``other``, a second copy of that original."""

    copy: Record
    evidence: Evidence | None
    original: Record
    other: Record
    #: As they were asked for.
    names: tuple[str, str]

    @property
    def is_of_original(self) -> bool:
        """Whether the copy is compared with its original."""
        return self.other.id == self.original.id


def remembered(store: PageStore, a: str, b: str) -> Remembered | None:
    """What is known of two URLs where nothing is kept to compare one of them by; None where they can be compared.

    Also None where the copy has another original: nothing is known of the two, then.
    """
    one, two = store.find(a), store.find(b)
    if one is None or two is None or one.id == two.id:
        return None
    bare = [record for record in (two, one) if _is_bare(store, record)]  # the second is the one that is judged
    if not bare or one.original != two.original:
        return None
    copy, other = (two, one) if bare[0] is two else (one, two)
    original = store.record(copy.original)
    return None if original is None else Remembered(copy, store.evidence(copy.id), original, other, (a, b))


def _is_bare(store: PageStore, record: Record) -> bool:
    kept = store.evidence(record.id)
    return record.is_light and not (kept and kept.text)


def remembered_lines(known: Remembered) -> Iterator[str]:
    """The verdict of that time, with its evidence."""
    copy, evidence = known.copy, known.evidence
    yield sentence(known)
    for name, url in zip("AB", known.names, strict=True):
        title = f', "{line(evidence.title)}"' if evidence and evidence.title and url == copy.url else ""
        yield f"{name} is {line(url)}{title}"
    if not known.is_of_original:
        yield f"Both are copies of {line(known.original.url)}. Copies are compared with originals only."
    yield f"This verdict is from {iso(copy.first_seen)}, when the copy was first seen. Its text is not kept."
    if evidence and evidence.shared:
        yield from ("", "It shares with its original, among others:")
        yield from (f"  {line(one)}" for one in evidence.shared)
    yield ""
    yield (
        "For features and marked texts, name a file with the copy, or set this before the next crawl: "
        'NEARDUP_KEEP = "texts".'
    )


def remembered_data(known: Remembered) -> dict[str, Any]:
    """The same for JSON, under the names that two pages have which can be compared."""
    evidence = known.evidence
    return {
        "verdict": "duplicate",
        "kind": (evidence.likeness or None) if evidence else None,
        "reason": None,
        "sentence": sentence(known),
        "remembered": True,
        "original": known.original.url,
        "first_seen": iso(known.copy.first_seen),
        "similarity": round(known.copy.similarity, 4),
        "containment": round(evidence.containment, 4) if evidence else None,
        "shared": list(evidence.shared) if evidence else [],
        "features": None,
        "a": {"name": known.names[0], "text": None},
        "b": {"name": known.names[1], "text": None},
    }


def sentence(known: Remembered) -> str:
    """The verdict, as it is said first."""
    kind = f" ({known.evidence.likeness})" if known.evidence and known.evidence.likeness else ""
    copy, other = ("A", "B") if known.copy.url == known.names[0] else ("B", "A")
    similarity = f"similarity {known.copy.similarity:.2f}"
    if known.is_of_original:
        return f"duplicate{kind}: {copy} is a copy of {other}, {similarity}."
    return f"duplicate{kind}: {copy} and {other} are copies of one page; {copy} has {similarity} to it."


# ----------------------------------------------------------------------------------------------------------------------
# ``scrapy neardup compare``: why two pages are taken for copies, or are not.


NAME = "compare"
HELP = "Explain the verdict on two pages: features with weights, deciding rule, common text."
EXAMPLES = """\
pages:
  page.html             decoded and read as in a crawl; also .htm
  page.txt              text without a title
  crawl.jsonl#42        the document with id 42 in a file of JSON lines, or in a folder with docs.jsonl:
                        {"id": "42", "title": "…", "text": "…"} per line; also .gz, .bz2, .xz, .zst
  https://a.example/    a page of the state; its text is shown if the crawl kept it (NEARDUP_KEEP = "texts")

  Without NEARDUP_KEEP = "texts" the state keeps no text of a dropped copy. With its original, in either order, the
  command then shows the verdict recorded at crawl time.

  A is the earlier page; B is judged against it. Method, extractor and other settings come from the project, if the
  command runs in one.

the state:
  The command uses the state of a crawl here, if it exists and has the same settings, or the one of --store or --spider.
  Text that the state knows as boilerplate is left out, and its counts of the page's site decide too, as in a crawl.
  These are the present counts: an earlier crawl knew less. The output names the state. --no-state uses none. The state
  is only read, also during a crawl, and never made.

  The site of a page in a file comes from its record, or from --a-url and --b-url.

examples:
  scrapy neardup compare first.html second.html
  scrapy neardup compare corpora/news#a17 corpora/news#a93 --method simhash:distance=6
  scrapy neardup compare https://a.example/ferry second.html --b-url https://a.example/ferry-again
  scrapy neardup compare crawl.jsonl.gz#1 crawl.jsonl.gz#2 --store sqlite:///var/crawls/state.sqlite --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    kinds = "a file of HTML or text, FILE#ID, or a URL in the state"
    parser.add_argument("a", metavar="A", help=f"the earlier page: {kinds}")
    parser.add_argument("b", metavar="B", help="the page to judge")
    parser.add_argument(
        "--method",
        metavar="NAME[:PARAMETER=VALUE,…]",
        help=f"one of {', '.join(METHODS)} (default: the project's, else cascade)",
    )
    for side in "ab":
        parser.add_argument(
            f"--{side}-url", metavar="URL", help=f"the address of {side.upper()}, if it is a file; it shows the site"
        )
    add_store(parser)
    parser.add_argument("--no-state", action="store_true", help="use no state; compare only the two pages")
    add_strict(parser)
    parser.add_argument(
        "--limit", type=int, default=3000, metavar="N", help="characters to show of each text (default: 3000; 0: all)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Print the verdict with all that led to it; 0, whatever it is."""
    if arguments.limit < 0:
        raise SettingsError(f"--limit is {arguments.limit}. Give 0 (all) or more.")
    if arguments.no_state and (arguments.store or arguments.spider):
        raise SettingsError("--no-state excludes --store and --spider, which name a state. Leave one out.")
    config = config_of(arguments)
    method = make_method(*method_spec(arguments.method)) if arguments.method else config.make_method()
    names = arguments.a, arguments.b
    pages = [
        _of_site(read_page(name, config, or_url=bool(arguments.store)), url)
        for name, url in zip(names, (arguments.a_url, arguments.b_url), strict=True)
    ]
    with _state(arguments, method, config, needed=None in pages) as (store, why):
        if store and pages == [None, None] and (known := remembered(store, *names)):
            _tell_remembered(known, store, as_json_object=arguments.json)
            return 0
        method = method.with_hashes(store.hashes) if store else method
        a, b = (
            read_side(name, store) if page is None and store else Side(name, page)
            for name, page in zip(names, pages, strict=True)
        )
        outcome = judge(method, config, a, b, store)
        sites = dict.fromkeys(filter(None, (a.site, b.site)))
        used = UsedState(store.location, tuple(KnownSite.of(store, one) for one in sites)) if store else UsedState()
    used = replace(used, why=why)
    if arguments.json:
        write(as_json(as_data(method, a, b, outcome, used, arguments.limit)) + "\n")
    else:
        write("\n".join(as_lines(a, b, outcome, used, arguments.limit, coloured=is_coloured())) + "\n")
    return 0


def _of_site(page: Page | None, url: str | None) -> Page | None:
    """The page of a file as one of this address, if that is given."""
    return replace(page, site=site_of(url)) if page and url else page


def _tell_remembered(known: Remembered, store: PageStore, *, as_json_object: bool) -> None:
    if as_json_object:
        write(as_json({**remembered_data(known), "store": store.location}) + "\n")
    else:
        write("\n".join(remembered_lines(known)) + "\n")


@contextmanager
def _state(
    arguments: argparse.Namespace, method: Method, config: Config, *, needed: bool
) -> Iterator[tuple[PageStore | None, str]]:
    """The state, and why there is none; raises NearDupError if there is none where one is asked for or needed."""
    recipe = state_recipe(method, page_extractor(config))
    if arguments.no_state and needed:
        raise SettingsError("A URL names a page of a state, but --no-state is given. Leave it out, or name files.")
    if arguments.no_state:
        yield None, "--no-state is given."
    elif needed or arguments.spider:
        with looked(arguments.store, config, recipe) as store:
            yield store, ""
    else:
        with opened_if_there(arguments.store, config, recipe) as found:
            yield found
