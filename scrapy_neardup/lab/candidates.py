"""Which pairs a person should label to choose a threshold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import sqrt
from random import Random
from typing import Any

from scrapy_neardup.errors import PageError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.policy import Policy
from scrapy_neardup.lab.documents import Spool
from scrapy_neardup.lab.evaluate import threshold_of
from scrapy_neardup.lab.exact import CONTAINMENT, JACCARD, Alike, GramFile, alike_pairs, similarity
from scrapy_neardup.maintenance.scan import Watch, unwatched
from scrapy_neardup.methods import Method, make_method
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import NO_SECRET
from scrapy_neardup.text.prose import has_prose


@dataclass(frozen=True, slots=True)
class Thresholds:
    """A method under several thresholds, the most lenient first; ``now`` is the place of the present one."""

    name: str
    parameter: str
    values: tuple[float, ...]
    now: int
    methods: tuple[Method, ...]

    @property
    def value(self) -> float:
        """The present threshold."""
        return self.values[self.now]

    @property
    def share_sketches(self) -> bool:
        """Whether all thresholds share one sketch, because the parameter only decides."""
        return self.parameter in self.methods[0].decisions()


def thresholds(name: str, parameters: dict[str, Any]) -> Thresholds:
    """Return the thresholds that a method wants tried. Raises SettingsError if it names none."""
    method = make_method(name, parameters)
    parameter = threshold_of(method)
    own = getattr(method.parameters, parameter)
    descending = type(method).sweep[0] > type(method).sweep[-1]
    values = sorted({*type(method).sweep, own}, reverse=descending)
    methods = tuple(make_method(name, {**parameters, parameter: value}) for value in values)
    return Thresholds(name, parameter, tuple(values), values.index(own), methods)


@dataclass(frozen=True, slots=True)
class CopiesByMethod:
    """``called[i][j]``: of the pairs that method i calls copies, how many method j does too; of ``pairs`` in all.

    >>> agreement({"a": [True, True, False], "b": [True, False, False]}).called
    ((2, 1), (1, 1))
    """

    methods: tuple[str, ...]
    pairs: int
    called: tuple[tuple[int, ...], ...]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        called = {
            one: dict(zip(self.methods, row, strict=True)) for one, row in zip(self.methods, self.called, strict=True)
        }
        return {"pairs": self.pairs, "called": called}


def agreement(said: Mapping[str, Sequence[bool]], only: Iterable[int] | None = None) -> CopiesByMethod:
    """Compare verdicts of several methods on the same pairs; ``only``: the pairs that count."""
    methods = tuple(said)
    places = list(range(len(next(iter(said.values()), ())))) if only is None else list(only)
    called = tuple(
        tuple(sum(said[one][place] and said[other][place] for place in places) for other in methods) for one in methods
    )
    return CopiesByMethod(methods, len(places), called)


# A page counts once, with one earlier page, as a crawl drops it once: the page of the highest exact similarity, or else
# the page for which the method would drop it.


#: Below this similarity nobody calls two pages copies.
LEAST = 0.3


@dataclass(frozen=True, slots=True)
class Candidate:
    """A page and the earlier one, with their exact similarity.

    ``same_site``: None if a site is unknown. ``copy``: the verdict of the method for each threshold.
    """

    alike: Alike
    same_site: bool | None
    copy: tuple[bool, ...]


def candidates(
    documents: Spool, sets: GramFile, tried: Thresholds, min_letters: int, watch: Watch = unwatched
) -> list[Candidate]:
    """Return all candidates in order of pages, and fill ``sets`` with the grams of all documents.

    Pages with fewer than ``min_letters`` are no candidates. Raises PageError if the method cannot read most pages.
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
    documents: Spool, pairs: Iterable[Alike], method: Method, store: PageStore | None, watch: Watch = unwatched
) -> list[bool]:
    """Return whether the method calls the later page of each pair a copy; False for pages that it cannot read.

    ``store`` knows the boilerplate. Raises PageError if it cannot read most pages.
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
    documents: Spool, pairs: list[Alike], tried: Thresholds, store: PageStore, watch: Watch
) -> Iterator[tuple[bool, ...]]:
    """Return the verdict on each pair under each threshold."""
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
    """Fingerprints of pages by place, each made once."""

    def __init__(self, documents: Spool, method: Method, store: PageStore | None) -> None:
        self._documents = documents
        self._method = method
        self._store = store
        self._made: dict[int, Fingerprint | None] = {}
        self._why: PageError | None = None

    def of(self, place: int) -> Fingerprint | None:
        """Return the fingerprint; None if the method cannot read the page."""
        if place not in self._made:
            try:
                self._made[place] = self._make(self._documents[place].page())
            except PageError as error:
                self._why = error
                self._made[place] = None
        return self._made[place]

    def check(self) -> None:
        """Raise the method's error if it could not read most pages."""
        if self._why is not None and 2 * sum(one is None for one in self._made.values()) > len(self._made):
            raise self._why

    def _make(self, page: Page) -> Fingerprint:
        known = self._store.on_site(page.site) if self._store else None
        return self._method.for_state(page, known)


@contextmanager
def _judged_once(
    documents: Spool, method: Method, min_letters: int, watch: Watch
) -> Iterator[tuple[PageStore, dict[int, int]]]:
    """Return a state that has seen all pages, and the original of each dropped page."""
    store = open_store("memory:", method.recipe(), secret=NO_SECRET)
    try:
        detector = Detector(method, store, who="tune", policy=Policy(min_letters))
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


# A stratum holds pairs with the same verdict under every threshold, separately for one site and two. So the effect of a
# threshold on a stratum is known, and labels only have to say how many of it are copies. Pairs near the present
# threshold are drawn more often; every stratum gives some. Each pair carries the size of its stratum for the weights
# (Horvitz and Thompson 1952, "A generalization of sampling without replacement from a finite universe").


#: Pairs above this similarity are a stratum of their own.
_SAME = 0.95
#: The urgency of a stratum whose verdict no threshold changes.
_SURE = 0.2
_SITES = {True: ", same site", False: ", other site", None: ""}


@dataclass(frozen=True, slots=True)
class Stratum:
    """Pairs (places among the candidates) with the same verdicts ``copy``, one for each threshold."""

    name: str
    copy: tuple[bool, ...]
    pairs: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of pairs."""
        return len(self.pairs)


def strata(found: Sequence[Candidate], tried: Thresholds) -> list[Stratum]:
    """Return all candidates in strata, the least similar first."""
    held: dict[tuple[tuple[bool, ...], str], list[int]] = {}
    for place, one in enumerate(found):
        held.setdefault((one.copy, _name(one, tried)), []).append(place)
    ordered = sorted(held.items(), key=lambda item: (sum(item[0][0]), item[0][1]))
    return [Stratum(name, copy, tuple(pairs)) for (copy, name), pairs in ordered]


def drawn(of: Sequence[Stratum], tried: Thresholds, count: int, seed: int) -> list[tuple[int, Stratum]]:
    """Draw ``count`` pairs with their strata, in an order that reveals nothing."""
    random = Random(seed)  # noqa: S311  # a sample that can be drawn again
    many = quotas({one.name: one.size for one in of}, {one.name: urgency(one, tried) for one in of}, count)
    chosen = [(place, one) for one in of for place in random.sample(one.pairs, many[one.name])]
    random.shuffle(chosen)
    return chosen


def urgency(stratum: Stratum, tried: Thresholds) -> float:
    """Return how uncertain a verdict is: 1 if the next threshold changes it, less if only a farther one does."""
    now = tried.now
    far = [abs(at - now) for at, copy in enumerate(stratum.copy) if copy != stratum.copy[now]]
    return 1 / min(far) if far else _SURE


def quotas(sizes: Mapping[str, int], urgent: Mapping[str, float], count: int) -> dict[str, int]:
    """Share ``count`` among strata: one each, and the rest by the root of the size times urgency.

    >>> quotas({"sure": 900, "near": 25, "next": 1}, {"sure": 0.2, "near": 1.0, "next": 1.0}, 10)
    {'sure': 5, 'near': 4, 'next': 1}
    """
    weights = {name: sqrt(size) * urgent[name] for name, size in sizes.items()}
    taken = dict.fromkeys(sizes, 0)
    for _ in range(min(count, sum(sizes.values()))):
        # One of each first, then by the divisors 3, 5, 7, … (Sainte-Laguë).
        name = max(
            (one for one in sizes if taken[one] < sizes[one]),
            key=lambda one: (taken[one] == 0, weights[one] / (2 * taken[one] + 1)),
        )
        taken[name] += 1
    return taken


def _name(one: Candidate, tried: Thresholds) -> str:
    values = [f"{value:g}" for value in tried.values]
    yes = [value for value, copy in zip(values, one.copy, strict=True) if copy]
    if not yes:
        about = f"no copy at any {tried.parameter}, {_band(one)}"
    elif len(yes) == len(values):
        about = f"copy at every {tried.parameter}" + (", all but the same" if one.alike.jaccard >= _SAME else "")
    elif yes == values[: len(yes)]:
        about = f"copy up to {tried.parameter} {yes[-1]}"
    else:
        about = f"copy at {tried.parameter} {' '.join(yes)}"
    return about + _SITES[one.same_site]


def _band(one: Candidate) -> str:
    if one.alike.jaccard >= JACCARD:
        return "alike"
    return "one in the other" if one.alike.containment >= CONTAINMENT else "less alike"
