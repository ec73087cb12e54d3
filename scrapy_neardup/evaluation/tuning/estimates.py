"""What each value of a threshold would have done to all pages, as far as the labels of a few pairs tell.

A value calls whole strata copies, so that is known; how many of a stratum are copies is estimated from those of its
pairs that were labelled: by their share, each weighted by the inverse of the probability with which it was drawn. (That
is the estimator of Horvitz and Thompson, with the strata's own sizes in place of the estimated ones.) Where the labels
were drawn for another method, or another value, the pairs of a stratum have different weights, and count for as many
as ``(sum w)**2 / sum w**2`` (Kish 1965, "Survey sampling").

The uncertainty is that of the shares: each has a beta distribution under the prior of Jeffreys (Brown, Cai and
DasGupta 2001, "Interval estimation for a binomial proportion", recommend it for few observations), and what was not
labelled is drawn from it, many times. An interval holds the middle 95 % of what comes out. A stratum of which nothing
was labelled may hold any number of copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from scrapy_neardup.evaluation.tuning.draw import Stratum

#: How often the shares are drawn, and what of the outcomes lies below and above an interval.
_DRAWS, _TAIL = 4_000, 0.025
_JEFFREYS = 0.5


@dataclass(frozen=True, slots=True)
class Answer:
    """What a reader said of a pair, and how many pairs of the feed it stands for."""

    copy: bool
    weight: float


@dataclass(frozen=True, slots=True)
class Figure:
    """An estimate, and the interval in which the true figure lies with a probability of 95 %."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one value would have done: of ``called`` pages that it calls copies, how many are none; and so on.

    ``best``: the probability that it costs the least of all values.
    """

    value: float
    called: int
    wrong: Figure
    missed: Figure
    precision: Figure
    recall: Figure
    best: float

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Outlook:
    """All values; the place of the ``chosen`` one, and how probable it is that it costs less than the present one."""

    estimates: tuple[Estimate, ...]
    chosen: int
    better: float


def estimated(
    of: Sequence[Stratum],
    answers: Mapping[str, Sequence[Answer]],
    values: Sequence[float],
    now: int,
    *,
    cost: float = 1.0,
    seed: int = 1,
) -> Outlook:
    """The estimates; ``answers`` by the name of the stratum.

    ``cost``: missed copies that are as bad as one page that is dropped wrongly. Chosen is the value that costs the
    least, of equal ones that which is nearest to the present one.
    """
    sizes = np.array([one.size for one in of], np.int64)
    given = [answers.get(one.name, ()) for one in of]
    shares = np.array([_share(found)[0] for found in given])
    copies = _drawn_copies(sizes, given, np.random.default_rng(seed))
    called = np.array([one.copy for one in of], np.bool_).reshape(len(of), len(values)).T
    wrong, missed = _outcomes(called, sizes, copies)
    sure_wrong, sure_missed = _outcomes(called, sizes, (sizes * shares)[:, None])
    costs = cost * wrong + missed
    least = costs == costs.min(axis=0)
    best = (least / least.sum(axis=0)).mean(axis=1)
    expected = cost * sure_wrong[:, 0] + sure_missed[:, 0]
    order = sorted(range(len(values)), key=lambda at: (round(float(expected[at]), 6), abs(at - now)))
    chosen = order[0] if len(of) else now
    numbers = called @ sizes
    estimates = tuple(
        Estimate(
            value,
            int(numbers[at]),
            _figure(sure_wrong[at, 0], wrong[at]),
            _figure(sure_missed[at, 0], missed[at]),
            _figure(*_ratio(numbers[at] - sure_wrong[at], numbers[at] - wrong[at], numbers[at])),
            _figure(*_recall(numbers[at], (sure_wrong[at], wrong[at]), (sure_missed[at], missed[at]))),
            float(best[at]),
        )
        for at, value in enumerate(values)
    )
    return Outlook(estimates, chosen, float((costs[chosen] < costs[now]).mean()))


_Floats = npt.NDArray[np.float64]


def _share(found: Sequence[Answer]) -> tuple[float, float]:
    """The weighted share of copies, and as how many equal answers these count; a half of nothing."""
    weights = np.array([one.weight for one in found])
    if not len(weights):
        return 0.5, 0.0
    share = float(weights @ np.array([one.copy for one in found], np.float64) / weights.sum())
    return share, float(weights.sum() ** 2 / (weights**2).sum())


def _drawn_copies(
    sizes: npt.NDArray[np.int64], given: Sequence[Sequence[Answer]], random: np.random.Generator
) -> _Floats:
    """Copies of each stratum, as often as they are drawn."""
    copies = np.zeros((len(sizes), _DRAWS))
    for at, found in enumerate(given):
        share, count = _share(found)
        drawn = random.beta(count * share + _JEFFREYS, count * (1 - share) + _JEFFREYS, _DRAWS)
        rest = max(0, int(sizes[at]) - len(found))
        copies[at] = sum(one.copy for one in found) + random.binomial(rest, drawn)
    return copies


def _outcomes(called: npt.NDArray[np.bool_], sizes: npt.NDArray[np.int64], copies: _Floats) -> tuple[_Floats, _Floats]:
    """For each value and each draw, how many are dropped wrongly and how many copies are missed."""
    return called @ (sizes[:, None] - copies), ~called @ copies


def _ratio(estimate: _Floats, drawn: _Floats, of: float) -> tuple[float, _Floats]:
    return (float(estimate[0] / of), drawn / of) if of else (1.0, np.ones(_DRAWS))


def _recall(called: float, wrong: tuple[_Floats, _Floats], missed: tuple[_Floats, _Floats]) -> tuple[float, _Floats]:
    """Copies that are called copies, of all copies; 1 where there are none."""
    shares = []
    for one, other in zip(wrong, missed, strict=True):
        found = called - one
        shares.append(np.divide(found, found + other, out=np.ones_like(found), where=found + other > 0))
    return float(shares[0][0]), shares[1]


def _figure(estimate: float, drawn: _Floats) -> Figure:
    low, high = np.quantile(drawn, (_TAIL, 1 - _TAIL))
    return Figure(float(estimate), float(low), float(high))
