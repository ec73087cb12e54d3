"""A state to the data of a report."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.judge.recipes import decisions_of
from scrapy_neardup.maintenance.scan import Watch, unwatched, with_evidence
from scrapy_neardup.maintenance.tables import CRAWLS, Crawl, count_verdicts
from scrapy_neardup.model import ROW
from scrapy_neardup.report.data import Count, CrawlLine, Group, Report, Similarities, Threshold
from scrapy_neardup.report.figures import Figures
from scrapy_neardup.report.pairs import GivenTexts, PageReader, choose_pairs, copy_lines
from scrapy_neardup.report.words import ENGLISH
from scrapy_neardup.state.pages import PageStore, newest_replacement
from scrapy_neardup.state.record import Record
from scrapy_neardup.text.normalize import converter_name
from scrapy_neardup.untrusted import SENTENCE, SITE, TITLE, clean_line, clean_text

#: Groups to show, copies of each, and pairs in all; crawls to show, the last ones.
GROUPS, PAGES_OF_GROUP, PAIRS, _LAST_CRAWLS = 100, 20, 24, 50
#: Kinds of copies that share the title of their original.
_SAME_TITLE = ("identical", "near", "same_title")
#: Parameters of methods that are similarities. The words of the report explain them.
_THRESHOLDS = ("certain", "base", "least", "similarity", "threshold")
_UNJUDGED = "unjudged/"

#: Looks up title and text of pages outside the state.
Lookup = Callable[[Collection[str]], GivenTexts]


def gather(
    store: PageStore,
    *,
    rows: int = 2000,
    texts: Lookup | None = None,
    watch: Watch = unwatched,
) -> Report:
    """Read the data of a report from a state, in two passes. It changes nothing.

    ``rows``: how many of the newest copies to list. ``texts`` is called at most once, with the URLs of pages whose
    title or text the state lacks. ``watch`` shows progress. Raises StoreError.
    """
    figures = Figures(store, rows)
    for record, evidence in with_evidence(store, watch):
        figures.add(record, evidence)
    largest = figures.largest(GROUPS)
    members = _members(watch(store.records(), store.pages), largest)
    candidates = figures.candidates.best(2 * PAIRS)
    remembered = list(CRAWLS.read(store))
    own = _parameters(store.recipe)
    decided = {**own, **decisions_of(store)}

    def compose(reader: PageReader) -> Report:
        return Report(
            location=clean_text(store.location),
            method=clean_line(str(store.recipe.get("method", "")), SENTENCE),
            parameters=_recipe_lines({**store.recipe, **decided, **own}),
            totals=figures.totals(),
            kinds=figures.by_kind(),
            passed=figures.by_passed(),
            flow=figures.flow(),
            times=figures.timeline.times(),
            similarities=Similarities(
                tuple(figures.similar_copies), tuple(figures.similar_passed), _thresholds(decided)
            ),
            groups=tuple(_group(reader, id, largest[id], members[id]) for id in largest),
            pairs=choose_pairs(candidates, reader, PAIRS),
            copies=tuple(copy_lines(reader, reversed(figures.newest))),
            unjudged=count_reasons(remembered),
            crawls=tuple(map(_crawl_line, reversed(remembered[-_LAST_CRAWLS:]))),
            remembered=len(remembered),
            language=figures.language(),
        )

    simplified = bool(own.get("simplified")) and _has_converter()
    reader = PageReader(store, {}, simplified=simplified)
    report = compose(reader)
    if texts is not None and reader.wanted:
        report = compose(PageReader(store, texts(reader.wanted), simplified=simplified))
    return report


def count_reasons(crawls: Sequence[Crawl]) -> tuple[Count, ...]:
    """Count unjudged pages by reason, the most frequent first, without rows of listings.

    >>> count_reasons([Crawl(1, "a", 2, {"unjudged/no_text": 1}), Crawl(3, "a", 4, {"unjudged/no_text": 2})])
    (Count(name='no_text', pages=3),)
    """
    counted: Counter[str] = Counter()
    for crawl in crawls:
        for name, count in crawl.counts.items():
            if name.startswith(_UNJUDGED) and name != _UNJUDGED + ROW:
                counted[clean_line(name.removeprefix(_UNJUDGED), SITE)] += int(count)
    return tuple(Count(*one) for one in sorted(counted.items(), key=lambda one: (-one[1], one[0])) if one[1])


def _crawl_line(crawl: Crawl) -> CrawlLine:
    verdicts = count_verdicts(crawl.counts)
    del verdicts["better"]
    pages, lost = (int(crawl.counts.get(name, 0)) for name in ("pages", "rolled_back"))
    return CrawlLine(clean_line(crawl.who, SITE), int(crawl.begun), crawl.ended, pages, **verdicts, lost=lost)


def _members(records: Iterable[Record], largest: Collection[int]) -> dict[int, list[int]]:
    """Return the ids of the first copies of each original."""
    members: dict[int, list[int]] = {id: [] for id in largest}
    for record in records:
        found = members.get(record.original)
        if found is not None and record.original != record.id and len(found) < PAGES_OF_GROUP:
            found.append(record.id)
    return members


def _group(reader: PageReader, id: int, copies: int, members: Iterable[int]) -> Group:
    better = newest_replacement(reader.store, id)
    if better is not None:  # the page that came first is one of those that it stands for
        members = [id, *(one for one in members if one != better.id)][:PAGES_OF_GROUP]
    pages = tuple(reader.line(page, wanted=True) for one in members if (page := reader.find(one)))
    original = reader.known(better) if better else reader.find(id)
    evidence = original.evidence if original else reader.store.evidence(id)
    title = evidence.title if evidence else ""
    title = title or next((page.title for page in pages if page.title and page.kind in _SAME_TITLE), "")
    line = reader.line(original, wanted=not title) if original else None
    named = line or (pages[0] if pages else None)
    title = title or (named.title or named.url if named else "")
    return Group(f"{id:016x}", clean_line(title, TITLE), line, copies, pages)


def _parameters(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a recipe, if they are parameters."""
    found = recipe.get("parameters")
    return dict(found) if isinstance(found, dict) else {}


def _recipe_lines(recipe: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (clean_line(str(name), SENTENCE), clean_line(value if isinstance(value, str) else json.dumps(value), SENTENCE))
        for name, value in recipe.items()
        if name not in ("method", "parameters", "samples")
    )


def _thresholds(given: Mapping[str, Any]) -> tuple[Threshold, ...]:
    """Return the deciding parameters that are similarities."""
    return tuple(
        Threshold(name, float(given[name]), ENGLISH(f"threshold.{name}"))
        for name in _THRESHOLDS
        if isinstance(given.get(name), (int, float)) and 0 < given[name] < 1
    )


def _has_converter() -> bool:
    """Whether traditional characters can be converted here."""
    try:
        converter_name()
    except SettingsError:
        return False
    return True
