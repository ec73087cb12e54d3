"""The effect of each threshold, estimated from labelled pairs.

A threshold calls whole strata copies. How many of a stratum are copies is estimated from its labelled pairs, each
weighted by the inverse of the probability of its draw: the estimator of Horvitz and Thompson (1952), with known sizes
of strata. Intervals are Wilson's (1927) at 95 %, for the effective number of labels ``(sum w)**2 / sum w**2`` (Kish
1965, "Survey sampling"; Dean and Pagano 2015, "Evaluating confidence interval methods for binomial proportions in
clustered surveys"). They are rather too wide where strata are homogeneous. Two thresholds differ only in the strata
between them. We draw shares of these many times from beta distributions under the prior of Jeffreys (Brown, Cai and
DasGupta 2001, "Interval estimation for a binomial proportion"), and count how often a threshold costs least. A
comparison needs ten labels among the pairs on which thresholds differ, or labels of all these pairs. Strata with labels
must hold half of them. Ten labels that agree leave an interval of 28 %.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import numpy.typing as npt

from scrapy_neardup.lab.candidates import Candidate, Stratum, Thresholds
from scrapy_neardup.lab.documents import Document
from scrapy_neardup.lab.pairs import COPY, SKIP, Pair

_Floats = npt.NDArray[np.float64]

#: How often shares are drawn.
_DRAWS = 2_000
_JEFFREYS = 0.5
#: Labels that a comparison needs, and the share of pairs in labelled strata.
ENOUGH = 10
_KNOWN = 0.5
#: The 97.5 % quantile of the normal distribution.
_Z = 1.959964


@dataclass(frozen=True, slots=True)
class Answer:
    """A label, and the number of pairs that it represents."""

    copy: bool
    weight: float


@dataclass(frozen=True, slots=True)
class Figure:
    """An estimate with its 95 % interval."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """The effect of one threshold: of ``called`` pages that it calls copies, how many are none; and so on.

    ``best``: the probability that it costs least.
    """

    value: float
    called: int
    wrong: Figure
    missed: Figure
    precision: Figure
    recall: Figure
    best: float


@dataclass(frozen=True, slots=True)
class Outlook:
    """All thresholds; the place of the ``chosen`` one, and the probability that it costs less than the present one.

    ``safe``: a lower bound for the probability that it costs no more than any other. ``enough``: there are enough
    labels; ``deciding``: labels of pairs on which thresholds differ.
    """

    estimates: tuple[Estimate, ...]
    chosen: int
    better: float
    safe: float
    enough: bool
    deciding: int


def estimate_thresholds(
    strata: Sequence[Stratum],
    answers: Mapping[str, Sequence[Answer]],
    values: Sequence[float],
    now: int,
    *,
    cost: float = 1.0,
    seed: int = 1,
) -> Outlook:
    """Estimate every threshold; ``answers`` by stratum.

    ``cost``: how many missed copies are as bad as one wrong drop. The threshold with the least cost is chosen; of
    equals the nearest to the present one.
    """
    parts = [_Part.of(one, answers.get(one.name, ())) for one in strata]
    called = np.array([one.copy for one in strata], np.bool_).reshape(len(strata), len(values)).T
    estimates = [_estimate(value, parts, called[at]) for at, value in enumerate(values)]
    costs = _draw_costs(parts, called, cost, seed)
    least = costs == costs.min(axis=0)
    best = (least / least.sum(axis=0)).mean(axis=1)
    expected = [round(cost * one.wrong.estimate + one.missed.estimate, 6) for one in estimates]
    chosen = min(range(len(values)), key=lambda at: (expected[at], abs(at - now)))
    deciding = [part for one, part in zip(strata, parts, strict=True) if len(set(one.copy)) > 1]
    pages, labels = sum(part.size for part in deciding), sum(part.labels for part in deciding)
    known = sum(part.size for part in deciding if part.labels)
    return Outlook(
        tuple(replace(one, best=float(share)) for one, share in zip(estimates, best, strict=True)),
        chosen,
        float((costs[chosen] < costs[now]).mean()),
        float((costs[chosen] <= costs).mean(axis=1).min()),
        labels >= min(ENOUGH, pages) and known >= _KNOWN * pages,
        labels,
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """A stratum with its labels: weights of ``copies`` and of ``others``.

    All weights add up to the size of the stratum, unless nothing was labelled.
    """

    size: int
    copies: tuple[float, ...]
    others: tuple[float, ...]

    @classmethod
    def of(cls, stratum: Stratum, found: Sequence[Answer]) -> _Part:
        """Return the labels of a stratum."""
        scale = stratum.size / sum(one.weight for one in found) if found else 0.0
        weights = [[one.weight * scale for one in found if one.copy is copy] for copy in (True, False)]
        return cls(stratum.size, tuple(weights[0]), tuple(weights[1]))

    @property
    def labels(self) -> int:
        """How many there are."""
        return len(self.copies) + len(self.others)


def _estimate(value: float, parts: Sequence[_Part], called: npt.NDArray[np.bool_]) -> Estimate:
    yes = [part for part, is_called in zip(parts, called, strict=True) if is_called]
    no = [part for part, is_called in zip(parts, called, strict=True) if not is_called]
    size = sum(part.size for part in yes)
    wrong = _estimate_total([(part.size, part.others, part.copies) for part in yes])
    missed = _estimate_total([(part.size, part.copies, part.others) for part in no])
    precision = Figure(1 - wrong.estimate / size, 1 - wrong.high / size, 1 - wrong.low / size) if size else _CERTAIN
    return Estimate(value, size, wrong, missed, precision, _estimate_recall(yes, no), 0.0)


_CERTAIN = Figure(1.0, 1.0, 1.0)


def _estimate_total(strata: Sequence[tuple[int, Sequence[float], Sequence[float]]]) -> Figure:
    """Estimate how many pairs are of a kind."""
    known = sum(len(kind) for size, kind, others in strata if len(kind) + len(others) >= size)
    unknown = sum(size for size, kind, others in strata if not (kind or others))
    rest = [one for one in strata if 0 < len(one[1]) + len(one[2]) < one[0]]
    pages = sum(size for size, _, _ in rest)
    estimate = sum(sum(kind) for _, kind, _ in rest)
    squares = sum(weight**2 for _, kind, others in rest for weight in (*kind, *others))
    low, high = wilson_interval(estimate / pages, pages**2 / squares) if rest else (0.0, 0.0)
    seen = sum(len(kind) for _, kind, _ in rest)
    return Figure(
        known + estimate + unknown / 2, known + max(seen, pages * low), known + max(seen, pages * high) + unknown
    )


def _estimate_recall(yes: Sequence[_Part], no: Sequence[_Part]) -> Figure:
    """Estimate the share of copies that are called copies."""
    found, missed = (sum(sum(part.copies) for part in parts) for parts in (yes, no))
    weights = [weight for part in (*yes, *no) for weight in part.copies]
    all = found + missed
    low, high = wilson_interval(found / all, all**2 / sum(weight**2 for weight in weights)) if all else (0.0, 1.0)
    more_found, more_missed = (sum(part.size for part in parts if not part.labels) for parts in (yes, no))
    least = low * all / (all + more_missed) if all else 0.0
    most = (high * all + more_found) / (all + more_found) if all else 1.0
    expected = all + (more_found + more_missed) / 2
    return Figure((found + more_found / 2) / expected if expected else 1.0, least, most)


def wilson_interval(share: float, count: float) -> tuple[float, float]:
    """Return the 95 % interval of a share.

    >>> [round(end, 3) for end in wilson_interval(0.0, 10)], [round(end, 3) for end in wilson_interval(0.5, 10)]
    ([0.0, 0.278], [0.237, 0.763])
    """
    squared = _Z * _Z
    middle = (share + squared / (2 * count)) / (1 + squared / count)
    half = _Z * sqrt(share * (1 - share) / count + squared / (4 * count * count)) / (1 + squared / count)
    return max(0.0, middle - half), min(1.0, middle + half)


def _draw_costs(parts: Sequence[_Part], called: npt.NDArray[np.bool_], cost: float, seed: int) -> _Floats:
    """Return the cost of each threshold, for each draw of the shares."""
    random = np.random.default_rng(seed)
    sizes = np.array([part.size for part in parts], np.float64)[:, None]
    copies = np.zeros((len(parts), _DRAWS))
    for at, part in enumerate(parts):
        rest = max(0, part.size - part.labels)
        weights = (*part.copies, *part.others)
        count = sum(weights) ** 2 / sum(weight**2 for weight in weights) if weights else 0.0
        share = sum(part.copies) / part.size
        drawn = random.beta(count * share + _JEFFREYS, count * (1 - share) + _JEFFREYS, _DRAWS)
        copies[at] = len(part.copies) + random.binomial(rest, drawn)
    found: _Floats = cost * (called @ (sizes - copies)) + ~called @ copies
    return found


@dataclass(frozen=True, slots=True)
class Tuning:
    """The effect of all thresholds by the labels. ``lost``: labels of pairs that are no candidates now."""

    tried: Thresholds
    strata: Sequence[Stratum]
    answers: Mapping[str, Sequence[Answer]]
    outlook: Outlook
    lost: int

    @property
    def labels(self) -> int:
        """The number of labels that count."""
        return sum(map(len, self.answers.values()))


def tune(
    documents: Sequence[Document],
    found: Sequence[Candidate],
    strata: Sequence[Stratum],
    tried: Thresholds,
    labels: Sequence[Pair],
    cost: float,
) -> Tuning:
    """Estimate from labels what each threshold would do."""
    stratum_of = {}
    for stratum in strata:
        for place in stratum.pairs:
            pair = found[place].alike
            stratum_of[documents[pair.a].id, documents[pair.b].id] = stratum.name
    answers = group_answers(labels, stratum_of)
    lost = sum((one.a, one.b) not in stratum_of for one in labels)
    return Tuning(
        tried, strata, answers, estimate_thresholds(strata, answers, tried.values, tried.now, cost=cost), lost
    )


def weigh_answers(labels: Iterable[Pair]) -> list[tuple[Pair, Answer]]:
    """Return the pairs with a certain answer, each with the number of pairs that it represents."""
    certain = [one for one in labels if one.answer != SKIP]
    drawn = Counter(one.stratum for one in certain)
    return [
        (one, Answer(one.answer == COPY, max(1.0, (one.stratum_size or 1) / drawn[one.stratum]))) for one in certain
    ]


def group_answers(labels: Iterable[Pair], where: Mapping[tuple[str, str], str]) -> dict[str, Sequence[Answer]]:
    """Group answers by the current stratum of their pair; ``where`` finds it by ids.

    Pairs that are no candidates any more are left out.
    """
    found: dict[str, list[Answer]] = defaultdict(list)
    for label, answer in weigh_answers(labels):
        stratum = where.get((label.a, label.b))
        if stratum is not None:
            found[stratum].append(answer)
    return dict(found)
