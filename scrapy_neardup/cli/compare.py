"""``scrapy neardup compare``: explain the verdict on two pages."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import chain
from textwrap import indent
from typing import Any

from scrapy_neardup.cli.comparison import (
    Compared,
    Outcome,
    RecordedVerdict,
    UsedState,
    find_recorded_verdict,
    judge,
)
from scrapy_neardup.cli.opening import add_store, snapshot_if_exists, snapshot_state
from scrapy_neardup.cli.options import add_json, add_method, add_strict, check_minimum, config_of, parse_method
from scrapy_neardup.cli.output import (
    BRACKETS,
    format_count,
    format_parts,
    format_table,
    format_time,
    is_coloured,
    to_line,
    write_result,
)
from scrapy_neardup.cli.pages import Side, find_side, read_page
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.inspect.lookup import KnownSite
from scrapy_neardup.judge.former import state_recipe
from scrapy_neardup.methods import Method, make_method
from scrapy_neardup.model import Explanation, Feature, Kind, Likeness
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.settings import DROP, TAG, Config
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.text.marking import Mark, Part, truncate

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

#: Before each line of a page, so that none looks like a line of the command.
_INDENT = "  | "
#: A state counts so many pages of a site at most.
_MOST_PAGES = 256
_ACTIONS = {DROP: "drops B", TAG: "lets B pass with a tag"}
_NO_COPY = {
    Likeness.EXCERPT: "B is no copy of A, but one contains most of the other and much more",
    Likeness.SAME_TITLE: "B is no copy of A, but has the same title",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    kinds = "a file of HTML or text, FILE#ID, or a URL in the state"
    parser.add_argument("a", metavar="A", help=f"the earlier page: {kinds}")
    parser.add_argument("b", metavar="B", help="the page to judge")
    add_method(parser)
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
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the verdict, with all that led to it."""
    check_minimum(arguments, "limit", 0)
    if arguments.no_state and (arguments.store or arguments.spider):
        raise SettingsError("--no-state excludes --store and --spider, which name a state. Leave one out.")
    config = config_of(arguments)
    method = make_method(*parse_method(arguments.method)) if arguments.method else config.make_method()
    sides = [
        _read_side(name, url, config, or_url=bool(arguments.store))
        for name, url in ((arguments.a, arguments.a_url), (arguments.b, arguments.b_url))
    ]
    in_state = [side.page is None for side in sides]
    with _open(arguments, method, config, needed=any(in_state)) as (store, why_none):
        if store and all(in_state) and (recorded := find_recorded_verdict(store, arguments.a, arguments.b)):
            data = {**_recorded_data(recorded), "store": store.location}
            write_result(arguments, data, _recorded_lines(recorded))
            return 0
        method = method.with_hashes(store.hashes) if store else method
        a, b = (find_side(side.name, store) if side.page is None and store else side for side in sides)
        outcome = judge(method, config, a, b, store)
        state = UsedState(why_none=why_none)
        if store:
            sites = dict.fromkeys(filter(None, (a.site, b.site)))
            state = UsedState(store.location, tuple(KnownSite.of(store, one) for one in sites))
    data = _data(method, a, b, outcome, state, arguments.limit)
    write_result(arguments, data, _lines(a, b, outcome, state, arguments.limit, coloured=is_coloured()))
    return 0


def _read_side(name: str, url: str | None, config: Config, *, or_url: bool) -> Side:
    """Read a page from a file, with its address if given; a page of the state is not read yet."""
    page = read_page(name, config, or_url=or_url)
    return Side(name, replace(page, site=site_of(url)) if page and url else page)


@contextmanager
def _open(
    arguments: argparse.Namespace, method: Method, config: Config, *, needed: bool
) -> Iterator[tuple[PageStore | None, str]]:
    """Open the state, or say why there is none; raises NearDupError if the user needs or names one."""
    recipe = state_recipe(method, config.make_extractor())
    if arguments.no_state and needed:
        raise SettingsError("A URL names a page of a state, but --no-state is given. Leave it out, or name files.")
    if arguments.no_state:
        yield None, "--no-state is given."
    elif needed or arguments.spider:
        with snapshot_state(arguments.store, config, recipe) as store:
            yield store, ""
    else:
        with snapshot_if_exists(arguments.store, config, recipe) as found:
            yield found


def _data(method: Method, a: Side, b: Side, outcome: Outcome, state: UsedState, limit: int) -> dict[str, Any]:
    verdict = outcome.verdict
    return {
        "verdict": verdict.kind.value,
        "kind": verdict.kind_of_likeness,
        "reason": verdict.reason or None,
        "sentence": _sentence(outcome),
        "action": outcome.action,
        "method": method.name,
        "parameters": method.parameters.as_data(),
        **(_compared_data(outcome.compared) if outcome.compared else {}),
        "a": _side_data(a, outcome.texts[0], limit),
        "b": _side_data(b, outcome.texts[1], limit),
        "store": state.location or None,
        "why_no_store": state.why_none or None,
        "sites": [asdict(one) for one in state.sites],
    }


def _compared_data(compared: Compared) -> dict[str, Any]:
    comparison, explanation = compared.comparison, compared.explanation
    return {
        "similarity": round(comparison.similarity, 4),
        "containment": round(comparison.containment, 4),
        "certain": comparison.certain,
        "features": [_feature_data(one) for one in explanation.features] if explanation else None,
        "score": round(explanation.score, 4) if explanation else None,
        "needed": explanation.needed if explanation else None,
        "decision": compared.decision,
        "keys": {"shared": compared.shared_keys, "of": compared.keys, "common": compared.common_keys},
        "compared_in_a_crawl": compared.found,
    }


def _feature_data(feature: Feature) -> dict[str, Any]:
    return {
        "name": feature.name,
        "value": round(feature.value, 4),
        "weight": feature.weight,
        "adds": round(_adds(feature), 4),
        "meaning": feature.meaning,
    }


def _side_data(side: Side, parts: list[Part] | None, limit: int) -> dict[str, Any]:
    shown = truncate(parts, limit) if parts and limit else parts
    return {
        "name": side.name,
        "title": side.page.title if side.page else None,
        "characters": _length(parts) if parts is not None else None,
        "cut": _length(parts) > _length(shown) if parts and shown else False,
        "text": None if shown is None else [{"text": one.text, "mark": one.mark.value or None} for one in shown],
    }


def _lines(a: Side, b: Side, outcome: Outcome, state: UsedState, limit: int, *, coloured: bool) -> Iterator[str]:
    """Yield verdict, features, rule and marked texts. ``limit``: characters of each text; 0: all."""
    yield _sentence(outcome)
    for name, side in (("A", a), ("B", b)):
        yield _name_line(name, side.name, side.page.title if side.page else "")
    if outcome.compared is not None:
        yield _describe_crawl(a, outcome.compared, outcome.action)
        yield ""
        yield from _evidence_lines(outcome.compared)
    yield ""
    yield _describe_state(state)
    yield from _note_lines(a, b, outcome, coloured=coloured)
    for name, parts in zip("AB", outcome.texts, strict=True):
        if parts is not None:
            yield f"\n{name}:\n"
            yield from _text_lines(parts, limit, coloured=coloured)


def _name_line(side: str, name: str, title: str) -> str:
    return f'{side} is {to_line(name)}, "{to_line(title)}"' if title else f"{side} is {to_line(name)}"


def _sentence(outcome: Outcome) -> str:
    verdict, match = outcome.verdict, outcome.verdict.match
    if match is None:
        unjudged = ", and ".join(outcome.unjudged)
        return f"{verdict.headline}: {unjudged}. An unjudged page is no copy and has no copies."
    relation = "B is a copy of A"
    if verdict.kind is not Kind.DUPLICATE:
        relation = (verdict.likeness and _NO_COPY.get(verdict.likeness)) or "B is no copy of A"
    figures = f"similarity {match.similarity:.2f}, containment {match.containment:.2f}"
    return f"{verdict.headline}: {relation}, {figures}."


def _describe_crawl(a: Side, compared: Compared, action: str) -> str:
    """Return whether a crawl compares the pages, and what it does with B."""
    shared, acts = compared.shared_keys, _ACTIONS.get(action, "lets B pass")
    ignored = f" ({compared.common_keys} keys of too many pages do not count)" if compared.common_keys else ""
    keys = f"{shared} of B's {compared.keys} keys are keys of A{ignored}"
    if compared.found:
        return f"A crawl compares them and {acts}: {keys if shared else 'B names A as its original'}."
    if a.record is not None and not a.record.is_original and shared:
        return f"A crawl {acts}: A is a copy itself, so only the similarity decides."
    return f"A crawl does not compare them and {acts}: {keys}."


def _evidence_lines(compared: Compared) -> Iterator[str]:
    if compared.explanation is not None:
        yield from _explanation_lines(compared.explanation)
    else:
        figures = {"similarity": compared.comparison.similarity, "containment": compared.comparison.containment}
        yield format_table(["feature", "value"], [(name, _format_value(value)) for name, value in figures.items()])
        yield ""
    yield f"Decision: {compared.decision}"


def _explanation_lines(explanation: Explanation) -> Iterator[str]:
    rows = []
    for one in explanation.features:
        weight = (f"{one.weight:g}", f"{_adds(one):.3f}") if one.weight else ("", "")
        rows.append((one.name, _format_value(one.value), *weight, one.meaning))
    yield format_table(["feature", "value", "weight", "adds", "meaning"], rows, remarks=1)
    yield ""
    yield f"Score {explanation.score:.3f}, needed {explanation.needed:g}."


def _adds(feature: Feature) -> float:
    return feature.value * feature.weight + 0.0  # + 0.0 turns -0 into 0


def _format_value(value: float) -> str:
    """Return a share with three digits, or a count."""
    return f"{value:.3f}" if value <= 1 else f"{value:,.0f}"


def _describe_state(state: UsedState) -> str:
    if not state.location:
        return f"No state is used, so no boilerplate and no templates are known: {to_line(state.why_none)}"
    known = "; ".join(
        f"it has counted {format_count(one.pages, 'page')}{' or more' * (one.pages >= _MOST_PAGES)} of "
        f"{to_line(one.name)}; {one.forms:.0%} of the last share a template"
        for one in state.sites
    )
    return f"By the counts of the state at {to_line(state.location)}: {known or 'it knows neither site'}."


def _note_lines(a: Side, b: Side, outcome: Outcome, *, coloured: bool) -> Iterator[str]:
    """Yield what the marks mean, and which texts are not kept."""
    without_text = [name for name, side in (("A", a), ("B", b)) if side.page is None]
    if len(without_text) == 2:
        yield "The state has the text of neither page, so there is nothing more to show."
        return
    for name in without_text:
        yield f"The state has no text of {name}. It recognises only some of its longest sentences."
    shared, boilerplate = ("between {} and {}".format(*BRACKETS[mark]) for mark in (Mark.SHARED, Mark.BOILERPLATE))
    if coloured:
        shared, boilerplate = "green", "grey"
    marks = {part.mark for part in chain.from_iterable(filter(None, outcome.texts))}
    if Mark.SHARED in marks:
        yield f"Common sentences: {shared}."
    else:
        yield f"No common sentence{' besides boilerplate' if Mark.BOILERPLATE in marks else ''} is known."
    if Mark.BOILERPLATE in marks:
        yield f"Boilerplate (on many pages): {boilerplate}."


def _text_lines(parts: list[Part], limit: int, *, coloured: bool) -> Iterator[str]:
    shown = truncate(parts, limit) if limit else parts
    text = format_parts(shown, coloured=coloured).rstrip()
    yield indent(text, _INDENT, lambda _: True) if text else "(no text)"
    length = _length(parts)
    if _length(shown) < length:
        rest = _shared(parts) - _shared(shown)
        hidden = f", and {rest} more common sentences" if rest else ""
        yield f"\n(cut after {limit:,} of {length:,} characters{hidden}; --limit 0 shows all)"


def _length(parts: list[Part]) -> int:
    return sum(len(part.text) for part in parts)


def _shared(parts: list[Part]) -> int:
    return sum(part.mark is Mark.SHARED for part in parts)


def _recorded_data(recorded: RecordedVerdict) -> dict[str, Any]:
    evidence = recorded.evidence
    return {
        "verdict": "duplicate",
        "kind": (evidence.likeness or None) if evidence else None,
        "reason": None,
        "sentence": _recorded_sentence(recorded),
        "remembered": True,
        "original": recorded.original.url,
        "first_seen": format_time(recorded.copy.first_seen),
        "similarity": round(recorded.copy.similarity, 4),
        "containment": round(evidence.containment, 4) if evidence else None,
        "shared": list(evidence.shared) if evidence else [],
        "features": None,
        "a": {"name": recorded.names[0], "text": None},
        "b": {"name": recorded.names[1], "text": None},
    }


def _recorded_lines(recorded: RecordedVerdict) -> Iterator[str]:
    copy, evidence = recorded.copy, recorded.evidence
    yield _recorded_sentence(recorded)
    for name, url in zip("AB", recorded.names, strict=True):
        yield _name_line(name, url, evidence.title if evidence and url == copy.url else "")
    if not recorded.is_of_original:
        yield f"Both are copies of {to_line(recorded.original.url)}. Copies are compared with originals only."
    yield f"This verdict is from {format_time(copy.first_seen)}, when the copy was first seen. Its text is not kept."
    if evidence and evidence.shared:
        yield from ("", "It shares with its original, among others:")
        yield from (f"  {to_line(one)}" for one in evidence.shared)
    yield ""
    yield (
        "For features and marked texts, name a file with the copy, or set this before the next crawl: "
        'NEARDUP_KEEP = "texts".'
    )


def _recorded_sentence(recorded: RecordedVerdict) -> str:
    kind = f" ({recorded.evidence.likeness})" if recorded.evidence and recorded.evidence.likeness else ""
    copy, other = ("A", "B") if recorded.copy.url == recorded.names[0] else ("B", "A")
    similarity = f"similarity {recorded.copy.similarity:.2f}"
    if recorded.is_of_original:
        return f"duplicate{kind}: {copy} is a copy of {other}, {similarity}."
    return f"duplicate{kind}: {copy} and {other} are copies of one page; {copy} has {similarity} to it."
