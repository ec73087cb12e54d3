"""Records of ``dedup``: counts, malformed records, superseded records."""

from __future__ import annotations

import pickle
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import IO, Any, NamedTuple

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.inputs import Entry, Malformed
from scrapy_neardup.judge.records import Judged
from scrapy_neardup.model import Kind, Verdict
from scrapy_neardup.oneline import one_line
from scrapy_neardup.outputs import as_json
from scrapy_neardup.report.words import Words

# ----------------------------------------------------------------------------------------------------------------------
# What was read from files, and what became of it.


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


# ----------------------------------------------------------------------------------------------------------------------
# Malformed records: counted, named by their place, and kept.


#: So many are named by what is printed; the file has them all.
_NAMED = 10


class Rejects:
    """A file of JSON lines, ``{"place": …, "why": …, "record": …}``, made when the first record goes there.

    Of a record's bytes those that are no UTF-8 are written as escapes.
    """

    def __init__(self, path: Path | None, files: ExitStack) -> None:
        self.path = path
        self.count = 0
        self._files = files
        self._file: IO[bytes] | None = None
        self._named: list[str] = []

    def take(self, malformed: Malformed) -> None:
        """Keep a record; raises NearDupError where there is no place for it."""
        if self.path is None:
            raise NearDupError(
                f"{malformed.place}: {malformed.why}. To skip such records, name a file for them with --rejects."
            )
        if self._file is None:
            self._file = self._files.enter_context(self._files.enter_context(replace_file(self.path)).open("wb"))
        record = malformed.raw.decode("utf-8", "backslashreplace")
        self._file.write(as_json({"place": malformed.place, "why": malformed.why, "record": record}) + b"\n")
        self.count += 1
        if self.count <= _NAMED:
            self._named.append(f"{one_line(malformed.place)}: {one_line(malformed.why)}")

    def as_data(self) -> dict[str, Any]:
        """How many there are, and where, for a program."""
        return {"malformed": self.count, "rejects": str(self.path) if self.count else None}

    def as_lines(self) -> Iterator[str]:
        """How many there are, and the first of them; nothing if there are none."""
        if self.count:
            yield f"{self.count:,} malformed record{'s' if self.count > 1 else ''} written to {self.path}:"
            yield from (f"  {line}" for line in self._named)
            if self.count > _NAMED:
                yield f"  and {self.count - _NAMED:,} more"


@contextmanager
def opened_rejects(asked: str | None, output: str) -> Iterator[Rejects]:
    """Rejects in the file that was asked for, else beside the output; with neither, the first one is an error."""
    path = Path(asked) if asked else None if output == "-" else Path(f"{output}.rejects.jsonl")
    with ExitStack() as files:
        yield Rejects(path, files)


# ----------------------------------------------------------------------------------------------------------------------
# Records that pass wait until all are judged, where a later one may be better: only the best of a group is written.


class Waiting(NamedTuple):
    """A record that passes, as it stands in its input."""

    judged: Judged
    line: bytes
    place: str


class Superseded:
    """Holds records in a temporary file, and gives back those that no later one superseded, in their order.

    In memory are 16 bytes a record. What a group was led by before this run is no record of it, and not its concern.
    """

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115  # closed by __exit__
        self._ids, self._numbers = array("Q"), array("Q")
        self._count = 0
        self._gone: set[int] = set()
        #: Group -> ids of the records that stand for it; where there is nothing, the one that gave it its name.
        self._standing: dict[int, list[int]] = {}

    def __enter__(self) -> Superseded:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def add(self, judged: Judged, entry: Entry) -> None:
        """Take the next record that passes; one that is better than another puts that out."""
        pickle.dump(Waiting(judged, entry.line, entry.place), self._file)
        verdict = judged.verdict
        if verdict.id:  # each is larger than those before
            self._ids.append(verdict.id)
            self._numbers.append(self._count)
        self._count += 1
        if verdict.group:
            standing = self._standing.setdefault(verdict.group, [verdict.group])
            if verdict.kind is Kind.BETTER:
                self._gone.update(number for id in standing if (number := self._number(id)) is not None)
                standing.clear()
            standing.append(verdict.id)

    def __iter__(self) -> Iterator[Waiting]:
        self._file.seek(0)
        for number in range(self._count):
            waiting: Waiting = pickle.load(self._file)  # noqa: S301  # written above, to a file without a name
            if number not in self._gone:
                yield waiting

    def _number(self, id: int) -> int | None:
        at = bisect_left(self._ids, id)
        return self._numbers[at] if at < len(self._ids) and self._ids[at] == id else None
