"""What a check of a state found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

#: Problems that are named; the others are counted.
NAMED = 20


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is not as it must be: its kind, by which such are counted, and what it is."""

    kind: str
    what: str


@dataclass(slots=True)
class Findings:
    """What was looked at, and what is wrong.

    ``lost``: copies whose original is gone, which is no problem: an original that was updated leaves its place.
    ``shared``: pages whose URL has the hash of another one's, which is none either. ``pages``, ``keys``, ``urls``,
    ``evidence``, ``blocks``, ``judgements``: rows of each sort.
    """

    pages: int = 0
    keys: int = 0
    urls: int = 0
    evidence: int = 0
    blocks: int = 0
    judgements: int = 0
    lost: int = 0
    shared: int = 0
    problems: list[Problem] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def sound(self) -> bool:
        """Whether all is as it must be."""
        return not self.counts

    def add(self, kind: str, what: str, many: int = 1) -> None:
        """Note a problem; the first few are kept by what they are, all are counted."""
        self.counts[kind] += many
        if len(self.problems) < NAMED:
            self.problems.append(Problem(kind, what))
