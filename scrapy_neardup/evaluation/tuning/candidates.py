"""Of each page the earlier page that it is most like, and what a method says of the two.

A page counts once, with one earlier page, as in a crawl it is dropped once: so figures over candidates are figures of
pages. That is the earlier page of the highest exact similarity, or where none is similar, the one for which the method
itself would have dropped it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from scrapy_neardup.errors import PageError
from scrapy_neardup.evaluation.exact import CONTAINMENT, Alike, alike_pairs, similarity
from scrapy_neardup.evaluation.grams import GramFile
from scrapy_neardup.evaluation.spool import Spool
from scrapy_neardup.evaluation.tuning.thresholds import Thresholds
from scrapy_neardup.judging.detector import Detector
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.states.reading import Watch, unwatched
from scrapy_neardup.stores import NO_SECRET, Store, close_store, open_store
from scrapy_neardup.text.prose import has_prose

#: The similarity from which two pages are candidates: below it nobody calls them copies.
LEAST = 0.3


@dataclass(frozen=True, slots=True)
class Candidate:
    """A page and the earlier one, with their exact similarities.

    ``same_site``: None where a site is not known. ``copy``: whether the method calls the page a copy, for each value.
    """

    alike: Alike
    same_site: bool | None
    copy: tuple[bool, ...]


def candidates(
    documents: Spool, sets: GramFile, tried: Thresholds, min_letters: int, watch: Watch = unwatched
) -> list[Candidate]:
    """All of them, in the order of the pages; ``sets`` is empty, and has the grams of all documents afterwards.

    Pages with fewer than ``min_letters`` are not judged, and no candidates. Raises PageError if the method cannot read
    most of the pages.
    """
    for place in range(len(documents)):
        text = documents[place].text
        sets.add(text if has_prose(text, min_letters) else "")
    found: dict[int, Alike] = {}
    pairs = alike_pairs(sets, LEAST, CONTAINMENT, watch=lambda places, total: watch(places, total, "pages compared"))
    for pair in pairs:
        known = found.get(pair.b)
        if known is None or _rank(pair) > _rank(known):
            found[pair.b] = pair
    with _judged_once(documents, tried.methods[0], min_letters, watch) as (store, copies):
        for page, original in copies.items():
            if page not in found:
                found[page] = similarity(original, page, sets)
        ordered = [found[place] for place in sorted(found)]
        said = zip(ordered, _said(documents, ordered, tried, store, watch), strict=True)
        return [Candidate(one, _same_site(documents, one), copy) for one, copy in said]


def verdicts(
    documents: Spool, pairs: Iterable[Alike], method: Method, store: Store | None, watch: Watch = unwatched
) -> list[bool]:
    """Whether the method calls the later page of each pair a copy of the earlier one; no, of pages that it cannot read.

    ``store`` knows what is boilerplate. Raises PageError if it cannot read most of the pages.
    """
    fingerprints = _Fingerprints(documents, method, store)
    said = []
    for pair in watch(list(pairs), what="pairs judged"):
        old, new = fingerprints.of(pair.a), fingerprints.of(pair.b)
        said.append(old is not None and new is not None and method.compare(new, old.sketch, frozenset()).duplicate)
    fingerprints.check()
    return said


def _rank(pair: Alike) -> tuple[float, float, int]:
    return pair.jaccard, pair.containment, -pair.a


def _said(
    documents: Spool, pairs: list[Alike], tried: Thresholds, store: Store, watch: Watch
) -> Iterator[tuple[bool, ...]]:
    """Of each pair what the method says under each value."""
    if not tried.share_sketches:
        columns = [verdicts(documents, pairs, method, store, watch) for method in tried.methods]
        yield from zip(*columns, strict=True)
        return
    fingerprints = _Fingerprints(documents, tried.methods[0], store)
    for pair in watch(pairs, len(pairs), "pairs judged"):
        old, new = fingerprints.of(pair.a), fingerprints.of(pair.b)
        yield tuple(
            old is not None and new is not None and method.compare(new, old.sketch, frozenset()).duplicate
            for method in tried.methods
        )


class _Fingerprints:
    """Fingerprints of pages by their places, each made once."""

    def __init__(self, documents: Spool, method: Method, store: Store | None) -> None:
        self._documents = documents
        self._method = method
        self._store = store
        self._made: dict[int, Fingerprint | None] = {}
        self._why: PageError | None = None

    def of(self, place: int) -> Fingerprint | None:
        """None for a page that the method cannot read."""
        if place not in self._made:
            try:
                self._made[place] = self._make(self._documents[place].page())
            except PageError as error:
                self._why = error
                self._made[place] = None
        return self._made[place]

    def check(self) -> None:
        """Raise what the method raised if it could not read most of the pages."""
        if self._why is not None and 2 * sum(one is None for one in self._made.values()) > len(self._made):
            raise self._why

    def _make(self, page: Page) -> Fingerprint:
        known = self._store.on_site(page.site) if self._store else None
        return self._method.for_state(page, known)


@contextmanager
def _judged_once(
    documents: Spool, method: Method, min_letters: int, watch: Watch
) -> Iterator[tuple[Store, dict[int, int]]]:
    """A state that has seen all pages and knows their boilerplate; and of those that were dropped the original."""
    store = open_store("memory:", method.recipe(), secret=NO_SECRET)
    try:
        detector = Detector(method, store, min_letters=min_letters, who="tune")
        yield store, dict(_copies(documents, detector, watch))
    finally:
        close_store(store)


def _copies(documents: Spool, detector: Detector, watch: Watch) -> Iterator[tuple[int, int]]:
    places: dict[str, int] = {}
    refused: PageError | None = None
    many = 0
    for place in watch(range(len(documents)), len(documents), "pages judged"):
        page = documents[place].page()
        places[page.url] = place
        try:
            verdict = detector.judge_now(page, sealed=True)
        except PageError as error:
            refused, many = error, many + 1
            continue
        if verdict.is_copy and verdict.match is not None and verdict.match.url in places:
            yield place, places[verdict.match.url]
    if refused is not None and 2 * many > len(documents):
        raise refused


def _same_site(documents: Spool, pair: Alike) -> bool | None:
    sites = [site_of(documents[place].url) for place in (pair.a, pair.b)]
    return sites[0] == sites[1] if all(sites) else None
