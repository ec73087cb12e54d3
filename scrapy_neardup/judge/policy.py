"""The settings that decide verdicts beside the method."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Any

from scrapy_neardup.model import Likeness, Verdict
from scrapy_neardup.state.record import Keep

#: The values of NEARDUP_KEEP_POLICY beside a list of hosts.
FIRST, LONGEST, CANONICAL = POLICIES = ("first", "longest", "canonical")
#: A value of that setting.
KeepPolicy = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings that decide verdicts beside the method, and how much the state keeps of a page."""

    #: Letters and digits that a text needs to be judged.
    min_letters: int = 40
    #: Kinds that count as duplicates though the method does not call them so.
    also_copies: Set[Likeness] = frozenset()
    #: Whether the item of a page with this verdict passes. By default no copy does.
    passes: Callable[[Verdict], bool] = lambda verdict: not verdict.is_copy
    #: How much the state keeps for later questions.
    keep: Keep = Keep.NOTHING
    #: Which copies take the place of the first page of their group: see ``groups.is_better``.
    keep_policy: KeepPolicy = FIRST

    @property
    def prefers_first(self) -> bool:
        """Whether no copy takes the place of an earlier page."""
        return self.keep_policy == FIRST

    def rules(self) -> dict[str, Any]:
        """The values on which the verdict on a known text depends, as plain data.

        States keep digests of it: pages judged by other rules are read and compared once more. The order matters.
        """
        return {"min_letters": self.min_letters, "also_copies": sorted(self.also_copies)}
