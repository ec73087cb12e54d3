"""The effect of each threshold, estimated from labelled pairs.

A threshold calls whole strata copies. How many of a stratum are copies is estimated from its labelled pairs, each
weighted by the inverse of the probability of its draw: the estimator of Horvitz and Thompson (1952), with known sizes
of strata. The number of copies is also drawn many times, from beta distributions for the effective number of labels
``(sum w)**2 / sum w**2`` (Kish 1965, "Survey sampling"). Under the prior of Jeffreys, a threshold is the best one in as
many draws as it costs least. An interval reaches from the 2.5 % quantile under the prior that expects few to the
97.5 % quantile under the one that expects many (Clopper and Pearson 1934; Brown, Cai and DasGupta 2001, "Interval
estimation for a binomial proportion"). So a stratum without labels may hold anything.

A comparison needs ten labels among the pairs on which thresholds differ, or labels of all these pairs. Strata with
labels must hold half of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scrapy_neardup.lab.candidates import Candidate, Stratum, Thresholds
from scrapy_neardup.lab.documents import Document
from scrapy_neardup.lab.pairs import COPY, SKIP, Pair

_Floats = npt.NDArray[np.float64]

#: How often the copies of each stratum are drawn.
_DRAWS = 2_000
#: Priors of a share: copies and other pages that are assumed to be seen before. Nothing is a number near 0.
_FEW, _JEFFREYS, _MANY = (1e-9, 1.0), (0.5, 0.5), (1.0, 1e-9)
#: The ends of an interval.
_ENDS = (0.025, 0.975)
#: Labels that a comparison needs, and the share of pairs in labelled strata.
ENOUGH = 10
_KNOWN = 0.5


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
    """The effect of one threshold: of ``called`` pages that it calls copies, how many are none; copies that it misses.

    ``best``: the probability that it costs least.
    """

    value: float
    called: int
    wrong: Figure
    missed: Figure
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
    labels = [answers.get(one.name, ()) for one in strata]
    sizes = np.array([one.size for one in strata], np.float64)[:, None]
    called = np.array([one.copy for one in strata], np.bool_).reshape(len(strata), len(values)).T
    copies = sizes * np.array([_share_of_copies(one)[0] for one in labels]).reshape(-1, 1)
    random = np.random.default_rng(seed)
    few, likely, many = (_draw_copies(strata, labels, prior, random) for prior in (_FEW, _JEFFREYS, _MANY))
    wrong = _make_figures(called, sizes - copies, sizes - many, sizes - few)
    missed = _make_figures(~called, copies, few, many)
    expected = [round(cost * a.estimate + b.estimate, 6) for a, b in zip(wrong, missed, strict=True)]
    drawn = cost * (called @ (sizes - likely)) + ~called @ likely
    chosen = min(range(len(values)), key=lambda at: (expected[at], abs(at - now)))
    least = drawn == drawn.min(axis=0)
    best = (least / least.sum(axis=0)).mean(axis=1)
    deciding = [(one.size, len(own)) for one, own in zip(strata, labels, strict=True) if len(set(one.copy)) > 1]
    pages, labelled = (sum(column) for column in zip(*deciding, strict=True)) if deciding else (0, 0)
    return Outlook(
        tuple(map(Estimate, values, (called @ sizes)[:, 0].astype(int).tolist(), wrong, missed, best.tolist())),
        chosen,
        better=float((drawn[chosen] < drawn[now]).mean()),
        safe=float((drawn[chosen] <= drawn).mean(axis=1).min()),
        enough=labelled >= min(ENOUGH, pages) and sum(size for size, own in deciding if own) >= _KNOWN * pages,
        deciding=labelled,
    )


def _share_of_copies(answers: Sequence[Answer]) -> tuple[float, float]:
    """Return the estimated share of copies in a stratum, half without labels, and the effective number of labels."""
    if not answers:
        return 0.5, 0.0
    weights = [one.weight for one in answers]
    copies = sum(one.weight for one in answers if one.copy)
    return copies / sum(weights), sum(weights) ** 2 / sum(weight**2 for weight in weights)


def _draw_copies(
    strata: Sequence[Stratum],
    labels: Sequence[Sequence[Answer]],
    prior: tuple[float, float],
    random: np.random.Generator,
) -> _Floats:
    """Draw the number of copies in each stratum; shape (strata, draws)."""
    drawn = np.zeros((len(strata), _DRAWS))
    for at, (stratum, answers) in enumerate(zip(strata, labels, strict=True)):
        share, count = _share_of_copies(answers)
        shares = random.beta(count * share + prior[0], count * (1 - share) + prior[1], _DRAWS)
        drawn[at] = sum(one.copy for one in answers) + random.binomial(max(0, stratum.size - len(answers)), shares)
    return drawn


def _make_figures(chosen: npt.NDArray[np.bool_], estimate: _Floats, least: _Floats, most: _Floats) -> list[Figure]:
    """Return the sum over the chosen strata for each threshold."""
    estimates = (chosen @ estimate)[:, 0]
    low = np.minimum(np.quantile(chosen @ least, _ENDS[0], axis=1), estimates)
    high = np.maximum(np.quantile(chosen @ most, _ENDS[1], axis=1), estimates)
    return list(map(Figure, estimates.tolist(), low.tolist(), high.tolist()))


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
    outlook = estimate_thresholds(strata, answers, tried.values, tried.now, cost=cost)
    return Tuning(tried, strata, answers, outlook, sum((one.a, one.b) not in stratum_of for one in labels))


def group_answers(labels: Iterable[Pair], where: Mapping[tuple[str, str], str]) -> dict[str, Sequence[Answer]]:
    """Group certain answers by the current stratum of their pair, which ``where`` finds by ids.

    An answer represents its share of the pairs of the stratum that it was drawn from. Pairs that are no candidates any
    more are left out.
    """
    certain = [one for one in labels if one.answer != SKIP]
    drawn = Counter(one.stratum for one in certain)
    found: dict[str, list[Answer]] = defaultdict(list)
    for one in certain:
        if (stratum := where.get((one.a, one.b))) is not None:
            weight = max(1.0, (one.stratum_size or 1) / drawn[one.stratum])
            found[stratum].append(Answer(one.answer == COPY, weight))
    return dict(found)
