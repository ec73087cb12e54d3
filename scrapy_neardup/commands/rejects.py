"""Malformed records: counted, named by their place, and kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from scrapy_neardup.atomic import replacing
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.inputs import Malformed
from scrapy_neardup.oneline import one_line
from scrapy_neardup.outputs import as_json

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
            self._file = self._files.enter_context(self._files.enter_context(replacing(self.path)).open("wb"))
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
