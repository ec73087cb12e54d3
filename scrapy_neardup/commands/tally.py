"""What was read from files, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from scrapy_neardup.model import Kind, Verdict
from scrapy_neardup.oneline import one_line
from scrapy_neardup.report.words import Words


@dataclass(slots=True)
class Tally:
    """Records by verdict, by kind of likeness, by the reason for which they were not judged.

    ``skipped``: records of archives that are no pages, by what they are. ``first``: the fields of the first record.
    """

    verdicts: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    written: int = 0
    first: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        """How many were judged, or tried to be."""
        return self.verdicts.total()

    @property
    def without_content(self) -> bool:
        """Whether there were records and none had text or HTML: a field has another name, then."""
        return 0 < self.records == self.reasons["no_content"]

    def add(self, verdict: Verdict, fields: Mapping[str, Any]) -> None:
        """Count a record."""
        self.first = self.first or tuple(fields)
        self.verdicts[verdict.kind.value] += 1
        if verdict.likeness is not None:
            self.kinds[verdict.likeness.value] += 1
        if verdict.reason:
            self.reasons[verdict.reason] += 1

    def as_data(self) -> dict[str, Any]:
        """The numbers for a program."""
        return {
            "records": self.records,
            "verdicts": {kind.value: self.verdicts[kind.value] for kind in Kind},
            "kinds": dict(self.kinds),
            "unjudged": dict(self.reasons),
            "skipped": dict(self.skipped),
            "written": self.written,
        }

    def as_lines(self, place: str, words: Words) -> Iterator[str]:
        """The numbers for people; ``place`` is where records were written to."""
        kinds = (kind.value for kind in Kind if kind is not Kind.BETTER or self.verdicts[kind.value])
        verdicts = words("comma").join(words(f"verdict.{kind}", self.verdicts[kind]) for kind in kinds)
        yield words("closing.dedup", self.records, verdicts=verdicts, written=f"{self.written:,}", place=place)
        for what, counts in (("kinds", self.kinds), ("unjudged", self.reasons), ("skipped", self.skipped)):
            if counts:
                named = words("closing.named", what=words(f"closing.{what}"))
                yield f"  {named}{', '.join(f'{count:,} {one_line(name)}' for name, count in counts.most_common())}"
