"""Which pairs a reader is asked about: a stratified sample, most of it where the verdict is least certain.

Strata are pairs of which the method says the same under every value of its threshold, apart by whether they are of one
site. So what a value does to a stratum it does to all of it, and is known; what has to be asked is how many of it are
copies. Pairs whose verdict another value near the present one would change are drawn with a higher probability; some
are drawn from every stratum, the sure ones too. Each pair carries the size of its stratum, by which ``estimates``
weights it (Horvitz and Thompson 1952, "A generalization of sampling without replacement from a finite universe").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from random import Random

from scrapy_neardup.evaluation.exact import CONTAINMENT, JACCARD
from scrapy_neardup.evaluation.tuning.candidates import Candidate
from scrapy_neardup.evaluation.tuning.thresholds import Thresholds

#: Of pairs that are copies under every value, those that are all but the same are a stratum of their own.
_SAME = 0.95
#: How much less a stratum is asked about whose verdict no value changes.
_SURE = 0.2
_SITES = {True: ", same site", False: ", other site", None: ""}


@dataclass(frozen=True, slots=True)
class Stratum:
    """Pairs (places among the candidates) of which the method says the same; ``copy``: what, for each value."""

    name: str
    copy: tuple[bool, ...]
    pairs: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many pairs there are."""
        return len(self.pairs)


def strata(found: Sequence[Candidate], tried: Thresholds) -> list[Stratum]:
    """All candidates in strata, the least like a copy first."""
    held: dict[tuple[tuple[bool, ...], str], list[int]] = {}
    for place, one in enumerate(found):
        held.setdefault((one.copy, _name(one, tried)), []).append(place)
    ordered = sorted(held.items(), key=lambda item: (sum(item[0][0]), item[0][1]))
    return [Stratum(name, copy, tuple(pairs)) for (copy, name), pairs in ordered]


def drawn(of: Sequence[Stratum], tried: Thresholds, count: int, seed: int) -> list[tuple[int, Stratum]]:
    """``count`` pairs with their strata, or all if there are not so many, in an order that tells nothing of them."""
    random = Random(seed)  # noqa: S311  # a sample that can be drawn again
    many = quotas({one.name: one.size for one in of}, {one.name: urgency(one, tried) for one in of}, count)
    chosen = [(place, one) for one in of for place in random.sample(one.pairs, many[one.name])]
    random.shuffle(chosen)
    return chosen


def urgency(stratum: Stratum, tried: Thresholds) -> float:
    """How uncertain the verdict is: 1 if the next value changes it, less the farther off the first one is that does."""
    now = tried.now
    far = [abs(at - now) for at, copy in enumerate(stratum.copy) if copy != stratum.copy[now]]
    return 1 / min(far) if far else _SURE


def quotas(sizes: Mapping[str, int], urgent: Mapping[str, float], count: int) -> dict[str, int]:
    """How many are taken of each: one, and of the rest as many as the root of its size times its urgency says.

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
