"""How often methods disagree: of the pairs that one calls copies, how many the others do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


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
        """Everything as plain data."""
        called = {
            one: dict(zip(self.methods, row, strict=True)) for one, row in zip(self.methods, self.called, strict=True)
        }
        return {"pairs": self.pairs, "called": called}


def agreement(said: Mapping[str, Sequence[bool]], only: Iterable[int] | None = None) -> CopiesByMethod:
    """From what each method says of the same pairs, in their order; ``only``: the places of those that count."""
    methods = tuple(said)
    places = list(range(len(next(iter(said.values()), ())))) if only is None else list(only)
    called = tuple(
        tuple(sum(said[one][place] and said[other][place] for place in places) for other in methods) for one in methods
    )
    return CopiesByMethod(methods, len(places), called)
