"""The pairs of pages that are worth a look: those nearest to the border, and then some of other sites."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from itertools import chain, islice, zip_longest

#: Pairs of a kind that are remembered as the nearest to the border, and pairs of sites of which one each is.
_NEAREST, _FLOWS = 64, 256


@dataclass(slots=True)
class _OfKind:
    """The pairs of a kind: a heap of the least similar (negated: the most similar of them is first), one by sites."""

    nearest: list[tuple[float, int]] = field(default_factory=list)
    by_sites: dict[tuple[int, int], tuple[float, int]] = field(default_factory=dict)


class PairCandidates:
    """Pairs by kind, few of them remembered; a pair is named by the id of its newer page."""

    def __init__(self) -> None:
        self._kinds: dict[str, _OfKind] = {}

    def add(self, kind: str, similarity: float, id: int, sites: tuple[int, int]) -> None:
        """Remember a pair if it is less similar than others of its kind, or the first of two sites."""
        found = self._kinds.setdefault(kind, _OfKind())
        entry = (-similarity, -id)
        if len(found.nearest) < _NEAREST:
            heappush(found.nearest, entry)
        else:
            heappushpop(found.nearest, entry)
        there = found.by_sites.get(sites)
        if (there is None and len(found.by_sites) < _FLOWS) or (there is not None and (similarity, id) < there):
            found.by_sites[sites] = (similarity, id)

    def best(self, count: int) -> dict[str, list[int]]:
        """Up to ``count`` ids of each kind: by turns one nearest to the border, and one of two sites not yet there.

        >>> candidates = PairCandidates()
        >>> for similarity, id, sites in ((0.5, 1, (1, 2)), (0.6, 2, (1, 2)), (0.9, 3, (3, 4))):
        ...     candidates.add("near", similarity, id, sites)
        >>> candidates.best(2)
        {'near': [1, 3]}
        """
        return {kind: list(islice(_by_turns(found), count)) for kind, found in self._kinds.items()}


def _by_turns(found: _OfKind) -> Iterator[int]:
    nearest = [-id for _, id in sorted(found.nearest, reverse=True)]
    spread = [id for _, id in sorted(found.by_sites.values())]
    # The least similar of all leads both lists.
    both = chain.from_iterable(zip_longest(nearest, spread[1:]))
    yield from dict.fromkeys(id for id in both if id is not None)


def quotas(there: Mapping[str, int], count: int) -> dict[str, int]:
    """How many of each kind are taken if there are so many and ``count`` in all: the same, what one lacks to others.

    >>> quotas({"near": 9, "excerpt": 1, "retitled": 9}, 8)
    {'near': 4, 'excerpt': 1, 'retitled': 3}
    """
    taken = dict.fromkeys(there, 0)
    while count > 0 and (open_ := [kind for kind, many in there.items() if taken[kind] < many]):
        for kind in open_[:count]:
            taken[kind] += 1
        count -= len(open_)
    return taken
