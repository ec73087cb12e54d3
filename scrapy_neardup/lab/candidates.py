"""Which pairs a person should label to choose a threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from math import sqrt
from random import Random
from typing import Any

from scrapy_neardup.errors import PageError
from scrapy_neardup.lab.documents import Document
from scrapy_neardup.lab.evaluate import find_threshold, make_judge, open_empty_store, replay
from scrapy_neardup.lab.exact import CONTAINMENT, JACCARD, Alike, GramFile, find_similar_pairs, measure_similarity
from scrapy_neardup.maintenance.scan import Watch, unwatched
from scrapy_neardup.methods import Method, make_method
from scrapy_neardup.model import Fingerprint
from scrapy_neardup.state.pages import PageStore
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


def make_thresholds(name: str, parameters: dict[str, Any]) -> Thresholds:
    """Return the thresholds that a method wants tried. Raises SettingsError if it names none."""
    method = make_method(name, parameters)
    parameter = find_threshold(method)
    own = getattr(method.parameters, parameter)
    descending = type(method).sweep[0] > type(method).sweep[-1]
    values = sorted({*type(method).sweep, own}, reverse=descending)
    methods = tuple(make_method(name, {**parameters, parameter: value}) for value in values)
    return Thresholds(name, parameter, tuple(values), values.index(own), methods)


# A crawl drops a page once, so a page is a candidate once: with the earlier page of the highest exact similarity. If no
# page is similar enough, it is the page that the method calls its original.

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


def find_candidates(
    documents: Sequence[Document], sets: GramFile, tried: Thresholds, min_letters: int, watch: Watch = unwatched
) -> list[Candidate]:
    """Return all candidates in order of pages, and fill ``sets`` with the grams of all documents.

    Pages with fewer than ``min_letters`` are no candidates. Raises PageError if the method cannot read most pages.
    """
    for document in watch(documents, len(documents), "texts cut"):
        sets.add(document.page.text if has_prose(document.page.text, min_letters) else "")
    found: dict[int, Alike] = {}
    for pair in find_similar_pairs(sets, LEAST, CONTAINMENT, watch=watch):
        known = found.get(pair.b)
        if known is None or _rank(pair) > _rank(known):
            found[pair.b] = pair
    method = tried.methods[0]
    with open_empty_store(method) as store:
        places: dict[str, int] = {}
        judged = replay(watch(documents, len(documents), "pages judged"), make_judge(method, store, min_letters))
        for place, (document, verdict) in enumerate(judged):
            places[document.id] = place
            if place not in found and verdict.is_copy and verdict.match is not None and verdict.match.url in places:
                found[place] = measure_similarity(places[verdict.match.url], place, sets)
        ordered = [found[place] for place in sorted(found)]
        batches = [tried.methods] if tried.share_sketches else [[method] for method in tried.methods]
        columns = [_judge_pairs(documents, ordered, methods, store, watch) for methods in batches]
        copies = [tuple(chain.from_iterable(row)) for row in zip(*columns, strict=True)]
    candidates = []
    for pair, copy in zip(ordered, copies, strict=True):
        sites = [documents[place].page.site for place in (pair.a, pair.b)]
        candidates.append(Candidate(pair, sites[0] == sites[1] if all(sites) else None, copy))
    return candidates


def _rank(pair: Alike) -> tuple[float, float, int]:
    return pair.jaccard, pair.containment, -pair.a


def _judge_pairs(
    documents: Sequence[Document], pairs: list[Alike], methods: Sequence[Method], store: PageStore, watch: Watch
) -> list[tuple[bool, ...]]:
    """Return for each pair whether each method calls the later page a copy; no for pages that it cannot read.

    The methods share the sketches of the first one. ``store`` knows boilerplate.
    """

    @cache
    def fingerprint(place: int) -> Fingerprint | None:
        page = documents[place].page
        try:
            return methods[0].for_state(page, store.on_site(page.site))
        except PageError:
            return None

    copies = []
    for pair in watch(pairs, len(pairs), "pairs judged"):
        old, new = fingerprint(pair.a), fingerprint(pair.b)
        if old is None or new is None:
            copies.append((False,) * len(methods))
        else:
            copies.append(tuple(method.compare(new, old.sketch, frozenset()).duplicate for method in methods))
    return copies


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


def make_strata(found: Sequence[Candidate], tried: Thresholds) -> list[Stratum]:
    """Return all candidates in strata, the least similar first."""
    places: dict[tuple[tuple[bool, ...], str], list[int]] = {}
    for place, one in enumerate(found):
        places.setdefault((one.copy, _name(one, tried)), []).append(place)
    ordered = sorted(places.items(), key=lambda item: (sum(item[0][0]), item[0][1]))
    return [Stratum(name, copy, tuple(pairs)) for (copy, name), pairs in ordered]


def draw_pairs(strata: Sequence[Stratum], tried: Thresholds, count: int, seed: int) -> list[tuple[int, Stratum]]:
    """Draw ``count`` pairs with their strata, in an order that reveals nothing."""
    random = Random(seed)  # noqa: S311  # a sample that can be drawn again
    urgency = {one.name: measure_urgency(one, tried) for one in strata}
    counts = share_pairs({one.name: one.size for one in strata}, urgency, count)
    drawn = [(place, one) for one in strata for place in random.sample(one.pairs, counts[one.name])]
    random.shuffle(drawn)
    return drawn


def measure_urgency(stratum: Stratum, tried: Thresholds) -> float:
    """Return how uncertain a verdict is: 1 if the next threshold changes it, less if only a farther one does."""
    distances = [abs(at - tried.now) for at, copy in enumerate(stratum.copy) if copy != stratum.copy[tried.now]]
    return 1 / min(distances) if distances else _SURE


def share_pairs(sizes: Mapping[str, int], urgency: Mapping[str, float], count: int) -> dict[str, int]:
    """Share ``count`` among strata: one each, and the rest by the root of the size times urgency.

    >>> share_pairs({"sure": 900, "near": 25, "next": 1}, {"sure": 0.2, "near": 1.0, "next": 1.0}, 10)
    {'sure': 5, 'near': 4, 'next': 1}
    """
    weights = {name: sqrt(size) * urgency[name] for name, size in sizes.items()}
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
