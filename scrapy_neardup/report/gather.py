"""A state to a ``Report``: two passes over all records, the first to count, the second for the largest groups."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.report.clean import SENTENCE, TITLE, clean_line, clean_text
from scrapy_neardup.report.crawled import crawl_lines, reasons
from scrapy_neardup.report.data import Group, PageLine, Report, Similarities, Threshold
from scrapy_neardup.report.figures import Figures
from scrapy_neardup.report.lines import GivenTexts, Lookup, PageLines
from scrapy_neardup.report.pairs import chosen, compared
from scrapy_neardup.report.words import ENGLISH
from scrapy_neardup.states.crawls import crawls
from scrapy_neardup.states.reading import Watch, unwatched, with_evidence
from scrapy_neardup.stores import Record, Store, leader
from scrapy_neardup.stores.decisions import decisions_of
from scrapy_neardup.text.script import converter_name

#: Groups that are shown, the copies of each, and pairs in all.
GROUPS, PAGES_OF_GROUP, PAIRS = 100, 20, 24
#: Kinds of copies that have the title of their original.
_SAME_TITLE = ("identical", "near", "same_title")
#: Parameters of methods that are similarities; what they decide, the words of the report say.
_THRESHOLDS = ("certain", "base", "least", "similarity", "threshold")


def gather(
    store: Store,
    *,
    rows: int = 2000,
    texts: Lookup | None = None,
    watch: Watch = unwatched,
) -> Report:
    """Read all that is to be told of a state; changes nothing in it.

    ``rows``: how many copies are listed, the newest. ``texts`` is called at most once, with the URLs of pages of which
    the state keeps no title or no text. ``watch`` sees the records go by, in two passes. Raises StoreError.
    """
    figures = Figures(store, rows)
    for record, evidence in with_evidence(store, watch):
        figures.add(record, evidence)
    largest = figures.largest(GROUPS)
    members = _members(watch(store.records(), store.pages), largest)
    candidates = figures.candidates.best(2 * PAIRS)
    remembered = list(crawls(store))
    simplified, decided = _is_simplified(store.recipe), {**_own(store.recipe), **decisions_of(store)}

    def composed(given: GivenTexts) -> tuple[PageLines, Report]:
        lines = PageLines(store, given)
        report = Report(
            clean_text(store.location),
            clean_line(str(store.recipe.get("method", "")), SENTENCE),
            _parameters({**store.recipe, **decided}),
            figures.totals(),
            figures.by_kind(),
            figures.by_passed(),
            figures.flow(),
            figures.times.times(),
            Similarities(tuple(figures.similar_copies), tuple(figures.similar_passed), _thresholds(decided)),
            tuple(_group(lines, id, largest[id], members[id]) for id in largest),
            chosen(candidates, lines, PAIRS, simplified=simplified),
            tuple(compared(lines, reversed(figures.newest), simplified=simplified)),
            reasons(remembered),
            crawl_lines(remembered),
            len(remembered),
            figures.language(),
        )
        return lines, report

    lines, report = composed({})
    if texts is not None and lines.wanted:
        _, report = composed(texts(lines.wanted))
    return report


def _members(records: Iterable[Record], largest: Collection[int]) -> dict[int, list[int]]:
    """The ids of the first copies of each of these originals."""
    members: dict[int, list[int]] = {id: [] for id in largest}
    for record in records:
        found = members.get(record.original)
        if found is not None and record.original != record.id and len(found) < PAGES_OF_GROUP:
            found.append(record.id)
    return members


def _group(lines: PageLines, id: int, copies: int, members: Iterable[int]) -> Group:
    better = leader(lines.store, id)
    record = better or lines.store.record(id)
    evidence = lines.store.evidence(record.id if record else id)
    if better is not None:  # the page that came first is one of those that it stands for
        members = [id, *(one for one in members if one != better.id)][:PAGES_OF_GROUP]
    pages = tuple(_lines(lines, members))
    title = evidence.title if evidence else ""
    title = title or next((page.title for page in pages if page.title and page.kind in _SAME_TITLE), "")
    original = lines.page(record, evidence, wanted=not title) if record else None
    title = title or (original.title if original else "")
    named = original or (pages[0] if pages else None)
    title = title or (named.title or named.url if named else "")
    return Group(f"{id:016x}", clean_line(title, TITLE), original, copies, pages)


def _lines(lines: PageLines, ids: Iterable[int]) -> Iterable[PageLine]:
    for id in ids:
        record = lines.store.record(id)
        if record is not None:
            yield lines.page(record, lines.store.evidence(id), wanted=True)


def _parameters(recipe: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The recipe's parameters, and what else belongs to it."""
    given = {**recipe, **_own(recipe)}
    return tuple(
        (clean_line(str(name), SENTENCE), clean_line(value if isinstance(value, str) else json.dumps(value), SENTENCE))
        for name, value in given.items()
        if name not in ("method", "parameters", "samples")
    )


def _own(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters in a recipe, whatever wrote it."""
    own = recipe.get("parameters")
    return dict(own) if isinstance(own, dict) else {}


def _thresholds(given: Mapping[str, Any]) -> tuple[Threshold, ...]:
    """Those of the last crawl's decisions that are known to be similarities; a distance is none."""
    return tuple(
        Threshold(name, float(given[name]), ENGLISH(f"threshold.{name}"))
        for name in _THRESHOLDS
        if isinstance(given.get(name), (int, float)) and 0 < given[name] < 1
    )


def _is_simplified(recipe: Mapping[str, Any]) -> bool:
    """Whether sentences in traditional and simplified characters are one; no if there is no converter here."""
    if not _own(recipe).get("simplified"):
        return False
    try:
        converter_name()
    except SettingsError:
        return False
    return True
