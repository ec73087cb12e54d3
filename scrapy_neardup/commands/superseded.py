"""Records that pass wait until all are judged, where a later one may be better: only the best of a group is written."""

from __future__ import annotations

import pickle
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from tempfile import TemporaryFile
from types import TracebackType
from typing import NamedTuple

from scrapy_neardup.inputs import Entry
from scrapy_neardup.judging.records import Judged
from scrapy_neardup.model import Kind


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
