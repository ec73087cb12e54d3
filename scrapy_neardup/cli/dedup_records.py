"""Records of ``dedup``: counts, malformed records, superseded records."""

from __future__ import annotations

import argparse
import pickle
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.cli.output import as_json, format_count
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files import Malformed, writers
from scrapy_neardup.judge.records import Judged
from scrapy_neardup.model import Kind, Verdict
from scrapy_neardup.report.words import Words
from scrapy_neardup.untrusted import one_line

#: Malformed records that are printed; the file has them all.
_SHOWN = 10


@dataclass(slots=True)
class Tally:
    """Counts records by verdict, by kind of likeness, by reason if unjudged.

    ``skipped``: records of archives that are no pages. ``first``: the fields of the first record.
    """

    verdicts: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    written: int = 0
    first: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        """The number of records, without malformed and skipped ones."""
        return self.verdicts.total()

    def add(self, verdict: Verdict, fields: Iterable[str] = ()) -> None:
        """Count a record with these fields."""
        self.first = self.first or tuple(fields)
        self.verdicts[verdict.kind.value] += 1
        if verdict.likeness is not None:
            self.kinds[verdict.likeness.value] += 1
        if verdict.reason:
            self.reasons[verdict.reason] += 1

    def as_data(self) -> dict[str, Any]:
        """Return the counts for JSON."""
        return {
            "records": self.records,
            "verdicts": {kind.value: self.verdicts[kind.value] for kind in Kind},
            "kinds": dict(self.kinds),
            "unjudged": dict(self.reasons),
            "skipped": dict(self.skipped),
            "written": self.written,
        }

    def as_lines(self, place: str, words: Words) -> Iterator[str]:
        """Yield the counts as text; ``place`` is the output."""
        rare = (Kind.MINOR_UPDATE, Kind.BETTER)
        kinds = (kind.value for kind in Kind if kind not in rare or self.verdicts[kind.value])
        verdicts = words("comma").join(words(f"verdict.{kind}", self.verdicts[kind]) for kind in kinds)
        yield words("closing.dedup", self.records, verdicts=verdicts, written=f"{self.written:,}", place=place)
        for what, counts in (("kinds", self.kinds), ("unjudged", self.reasons), ("skipped", self.skipped)):
            if counts:
                named = words("closing.named", what=words(f"closing.{what}"))
                yield f"  {named}{', '.join(f'{count:,} {one_line(name)}' for name, count in counts.most_common())}"


class Rejects(ExitStack):
    """Malformed records in a file of JSON lines, ``{"place": …, "why": …, "record": …}``.

    The first one makes the file: the one that the user named, else one next to the output. Bytes that are not UTF-8
    become escapes.
    """

    def __init__(self, asked: str | None, output: str) -> None:
        super().__init__()
        self.path = Path(asked) if asked else None if output == "-" else Path(f"{output}.rejects.jsonl")
        self.count = 0
        self._file: IO[bytes] | None = None
        self._shown: list[str] = []

    def add(self, malformed: Malformed) -> None:
        """Write a record; raises NearDupError if there is no file for it."""
        if self.path is None:
            raise NearDupError(
                f"{malformed.place}: {malformed.why}. To skip such records, name a file for them with --rejects."
            )
        if self._file is None:
            self._file = self.enter_context(self.enter_context(replace_file(self.path)).open("wb"))
        record = malformed.raw.decode("utf-8", "backslashreplace")
        self._file.write(writers.as_json({"place": malformed.place, "why": malformed.why, "record": record}) + b"\n")
        self.count += 1
        if self.count <= _SHOWN:
            self._shown.append(f"{one_line(malformed.place)}: {one_line(malformed.why)}")

    def as_data(self) -> dict[str, Any]:
        """Return number and file for JSON."""
        return {"malformed": self.count, "rejects": str(self.path) if self.count else None}

    def as_lines(self) -> Iterator[str]:
        """Yield the number and the first records as text; nothing if there are none."""
        if self.count:
            yield f"{format_count(self.count, 'malformed record')} written to {self.path}:"
            yield from (f"  {line}" for line in self._shown)
            if self.count > _SHOWN:
                yield f"  and {self.count - _SHOWN:,} more"


def describe_outcome(tally: Tally, rejects: Rejects, place: str, arguments: argparse.Namespace, words: Words) -> str:
    """Return all counts as text, or with ``--json`` as one object; ``place`` is the output."""
    if arguments.json:
        return as_json({**tally.as_data(), **rejects.as_data()}, indent=None)
    return "\n".join([*tally.as_lines(place, words), *rejects.as_lines()])


class PassedRecord(NamedTuple):
    """A record that passes, with its line and its place in the input."""

    judged: Judged
    line: bytes
    place: str


def leave_out_superseded(passed: Iterable[PassedRecord]) -> Iterator[PassedRecord]:
    """Yield the records that no later one supersedes, in order.

    They wait in a temporary file until all are judged, with 16 bytes of each in memory. Pages of earlier runs stay.
    """
    ids, numbers = array("Q"), array("Q")  # ids ascend
    superseded: set[int] = set()
    #: Group -> ids of the records that stand for it. A group without an entry has the record that named it.
    standing: dict[int, list[int]] = {}
    count = 0
    with TemporaryFile() as file:
        for record in passed:
            pickle.dump(record, file)
            verdict = record.judged.verdict
            if verdict.id:
                ids.append(verdict.id)
                numbers.append(count)
            count += 1
            if not verdict.group:
                continue
            stand = standing.setdefault(verdict.group, [verdict.group])
            if verdict.kind is Kind.BETTER:
                for id in stand:
                    at = bisect_left(ids, id)
                    if at < len(ids) and ids[at] == id:
                        superseded.add(numbers[at])
                stand.clear()
            stand.append(verdict.id)
        file.seek(0)
        for number in range(count):
            waiting: PassedRecord = pickle.load(file)  # noqa: S301  # written above, to a file without a name
            if number not in superseded:
                yield waiting
