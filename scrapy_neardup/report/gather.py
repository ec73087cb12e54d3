"""A state to the data of a report."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.maintenance.scan import Watch, unwatched, with_evidence
from scrapy_neardup.maintenance.tables import Crawl, crawls, verdict_counts
from scrapy_neardup.model import ROW
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.report.clean import SENTENCE, SITE, TITLE, URL, clean_line, clean_text
from scrapy_neardup.report.data import (
    ORIGINAL,
    CopyLine,
    Count,
    CrawlLine,
    Group,
    MarkedText,
    PageLine,
    PagePair,
    Report,
    Similarities,
    Threshold,
)
from scrapy_neardup.report.figures import NO_SITE, Figures, kind_of, quotas
from scrapy_neardup.report.words import ENGLISH
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.history import decisions_of
from scrapy_neardup.state.pages import PageStore, leader, stands_for
from scrapy_neardup.state.record import Record
from scrapy_neardup.text.marking import Mark, mark_sentences, own_letters, sentence_letters, truncate
from scrapy_neardup.text.normalize import converter_name

#: Show this many crawls, the last ones.
_SHOWN = 50
_UNJUDGED = "unjudged/"


def crawl_lines(found: Sequence[Crawl]) -> tuple[CrawlLine, ...]:
    """Return lines of the last crawls, newest first; ``found`` is oldest first."""
    return tuple(_line(crawl) for crawl in reversed(found[-_SHOWN:]))


def reasons(found: Sequence[Crawl]) -> tuple[Count, ...]:
    """Count unjudged pages by reason, the most frequent first, without rows of listings.

    >>> reasons([Crawl(1, "a", 2, {"unjudged/no_text": 1}), Crawl(3, "a", 4, {"unjudged/no_text": 2, "pages": 9})])
    (Count(name='no_text', pages=3),)
    """
    counted: Counter[str] = Counter()
    for crawl in found:
        for name, count in crawl.counts.items():
            if name.startswith(_UNJUDGED) and name != _UNJUDGED + ROW:
                counted[clean_line(name.removeprefix(_UNJUDGED), SITE)] += int(count)
    return tuple(Count(*one) for one in sorted(counted.items(), key=lambda one: (-one[1], one[0])) if one[1])


def _line(crawl: Crawl) -> CrawlLine:
    verdicts = verdict_counts(crawl.counts)
    del verdicts["better"]
    return CrawlLine(
        clean_line(crawl.who, SITE),
        int(crawl.begun),
        crawl.ended,
        int(crawl.counts.get("pages", 0)),
        **verdicts,
        lost=int(crawl.counts.get("rolled_back", 0)),
    )


#: Title and text of pages from outside the state, by URL.
GivenTexts = Mapping[str, tuple[str, str]]
#: Looks up title and text of pages outside the state.
Lookup = Callable[[Collection[str]], GivenTexts]


class PageLines:
    """Makes lines of pages; ``wanted`` collects URLs whose title or text the state lacks."""

    def __init__(self, store: PageStore, given: GivenTexts) -> None:
        self.store = store
        self.wanted: set[str] = set()
        self._given = given

    def page(self, record: Record, evidence: Evidence | None, *, wanted: bool = False) -> PageLine:
        """Return the line of a page; ``wanted``: look its title up elsewhere if needed."""
        copy = record.original != record.id
        title = evidence.title if evidence else ""
        if not title and wanted:
            title = self._look_up(record.url)[0]
        return PageLine(
            clean_line(record.url, URL),
            clean_line(site_of(record.url) or NO_SITE, SITE),
            int(record.first_seen),
            kind_of(evidence) if copy else ORIGINAL,
            round(record.similarity, 4),
            evidence.letters if evidence else 0,
            clean_line(title, TITLE),
        )

    def text(self, record: Record, evidence: Evidence | None) -> str:
        """Return the text that was kept or given; empty if unknown."""
        return (evidence.text if evidence else "") or self._look_up(record.url)[1]

    def _look_up(self, url: str) -> tuple[str, str]:
        if url not in self._given:
            self.wanted.add(url)
        return self._given.get(url, ("", ""))


#: Show this many characters of a text; read this many to find shared sentences.
SHOWN, _READ = 4_000, 100_000
_ORDER = {
    kind: place for place, kind in enumerate(("retitled", "near", "excerpt", "same_title", "unknown", "identical"))
}
#: Limits of the table: characters of texts, characters of sentences, copies whose texts are looked up.
_LETTERS_OF_TEXTS, _LETTERS_OF_SENTENCES, _WITH_TEXTS = 200_000, 120_000, 200
#: Shared sentences to show of a pair without texts.
_SENTENCES = 12


def chosen(
    candidates: Mapping[str, Sequence[int]], lines: PageLines, count: int, *, simplified: bool
) -> tuple[PagePair, ...]:
    """Choose ``count`` candidates, equally many of each kind; pairs with texts come first.

    Pairs of a kind stay together, the least similar first; kinds that need a look most come first.
    """
    ordered = sorted(candidates, key=lambda kind: (_ORDER.get(kind.split()[0], len(_ORDER)), kind))
    found = {kind: [pair for id in candidates[kind] if (pair := _Draft.read(id, lines))] for kind in ordered}
    pairs: list[PagePair] = []
    for kind, many in quotas({kind: len(drafts) for kind, drafts in found.items()}, count).items():
        drafts = sorted(found[kind], key=_Draft.lacking)[:many]  # stable: otherwise in the order of the candidates
        pairs += [draft.pair(lines, simplified=simplified) for draft in sorted(drafts, key=_Draft.similarity)]
    return tuple(pairs)


def compared(lines: PageLines, ids: Iterable[int], *, simplified: bool) -> Iterator[CopyLine]:
    """Return these copies with their texts or shared sentences, as far as a report has room."""
    texts, sentences = _LETTERS_OF_TEXTS, _LETTERS_OF_SENTENCES
    for number, id in enumerate(ids):
        page, evidence = lines.store.record(id), lines.store.evidence(id)
        if page is None:
            continue
        similar_id = f"{page.original:016x}"
        # For a page that became the best of its group: the page that came first.
        original = lines.store.record(page.original) if page.leads else stands_for(lines.store, page, besides=page.url)
        if original is None:
            yield CopyLine(lines.page(page, evidence), None, similar_id)
            continue
        line = CopyLine(
            lines.page(page, evidence),
            lines.page(original, lines.store.evidence(original.id)),
            similar_id,
            evidence.containment if evidence else 0.0,
        )
        if number < _WITH_TEXTS and texts > 0 and (draft := _Draft(page, evidence, original, lines)).lacking() == 0:
            pair = draft.pair(lines, simplified=simplified)
            texts -= sum(len(part.text) for text in pair.texts if text for part in text.parts)
            line = replace(line, texts=pair.texts)
        elif sentences > 0:
            shared = _shared(evidence)
            sentences -= sum(map(len, shared))
            line = replace(line, shared=shared)
        else:
            line = replace(line, shared=None)
        yield line


class _Draft:
    """A pair with its whole texts."""

    def __init__(self, page: Record, evidence: Evidence | None, original: Record, lines: PageLines) -> None:
        self.page, self.evidence, self.original = page, evidence, original
        self.evidence_of_original = lines.store.evidence(original.id)
        texts = lines.text(original, self.evidence_of_original), lines.text(page, evidence)
        self.texts = texts[0][:_READ], texts[1][:_READ]
        self._unread = len(texts[0][_READ:]), len(texts[1][_READ:])

    @classmethod
    def read(cls, id: int, lines: PageLines) -> _Draft | None:
        """Return the pair of a page; None if either page is gone."""
        page, evidence = lines.store.record(id), lines.store.evidence(id)
        if page is None:
            return None
        original = lines.store.record(page.original if page.original != id else evidence.like if evidence else 0)
        return None if original is None else cls(page, evidence, original, lines)

    def lacking(self) -> int:
        """How many of the two texts are missing."""
        return self.texts.count("")

    def similarity(self) -> tuple[float, int]:
        """The order of pairs of a kind."""
        return self._similarity, self.page.id

    @property
    def _similarity(self) -> float:
        copy = self.page.original != self.page.id
        return self.page.similarity if copy else self.evidence.similarity if self.evidence else 0.0

    def pair(self, lines: PageLines, *, simplified: bool) -> PagePair:
        """Return the pair as it is shown."""
        old, new = map(clean_text, self.texts)
        evidence = self.evidence
        shared = _shared(evidence)
        known = (
            frozenset(own_letters(clean_text(one), simplified=simplified) for one in evidence.shared)
            if evidence
            else frozenset()
        )
        in_old, in_new = (sentence_letters(text, simplified=simplified) if text else known for text in (old, new))
        copy = self.page.original != self.page.id
        return PagePair(
            kind_of(evidence) if copy or evidence is None else evidence.likeness,
            copy,
            lines.page(self.page, evidence, wanted=True),
            lines.page(self.original, self.evidence_of_original, wanted=True),
            round(self._similarity, 4),
            evidence.containment if evidence else 0.0,
            shared,
            (
                _marked(old, in_new, self._unread[0], simplified=simplified),
                _marked(new, in_old, self._unread[1], simplified=simplified),
            ),
        )


def _shared(evidence: Evidence | None) -> tuple[str, ...]:
    return tuple(clean_line(one, SENTENCE) for one in (evidence.shared if evidence else ())[:_SENTENCES])


def _marked(text: str, shared: Set[str], unread: int, *, simplified: bool) -> MarkedText | None:
    """Return the beginning of a text with its ``shared`` sentences marked; None for no text.

    ``unread``: characters that follow and were not compared.
    """
    if not text:
        return None
    parts = mark_sentences(text, lambda own: Mark.SHARED if own in shared else Mark.NONE, simplified=simplified)
    few = truncate(parts, SHOWN)
    hidden = sum(part.mark is Mark.SHARED for part in parts[len(few) :])
    return MarkedText(tuple(few), len(text) + unread, hidden)


#: Groups to show, copies of each, and pairs in all.
GROUPS, PAGES_OF_GROUP, PAIRS = 100, 20, 24
#: Kinds of copies that share the title of their original.
_SAME_TITLE = ("identical", "near", "same_title")
#: Parameters of methods that are similarities. The words of the report explain them.
_THRESHOLDS = ("certain", "base", "least", "similarity", "threshold")


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
    """Return the ids of the first copies of each original."""
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
    """Return the parameters and other parts of the recipe."""
    given = {**recipe, **_own(recipe)}
    return tuple(
        (clean_line(str(name), SENTENCE), clean_line(value if isinstance(value, str) else json.dumps(value), SENTENCE))
        for name, value in given.items()
        if name not in ("method", "parameters", "samples")
    )


def _own(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a recipe from any version."""
    own = recipe.get("parameters")
    return dict(own) if isinstance(own, dict) else {}


def _thresholds(given: Mapping[str, Any]) -> tuple[Threshold, ...]:
    """Return the deciding parameters that are similarities."""
    return tuple(
        Threshold(name, float(given[name]), ENGLISH(f"threshold.{name}"))
        for name in _THRESHOLDS
        if isinstance(given.get(name), (int, float)) and 0 < given[name] < 1
    )


def _is_simplified(recipe: Mapping[str, Any]) -> bool:
    """Whether sentences in traditional and simplified characters count as equal."""
    if not _own(recipe).get("simplified"):
        return False
    try:
        converter_name()
    except SettingsError:
        return False
    return True
