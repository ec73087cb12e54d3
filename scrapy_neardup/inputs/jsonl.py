"""JSON lines: one object a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from scrapy_neardup.inputs import entry
from scrapy_neardup.inputs.entry import Entry, InputRecord, Malformed
from scrapy_neardup.inputs.guard import reading
from scrapy_neardup.inputs.objects import parse_object
from scrapy_neardup.inputs.packed import open_packed
from scrapy_neardup.inputs.utf8 import BOM


class ByteLines(Protocol):
    """What lines are read from."""

    def readline(self, size: int, /) -> bytes:
        """A line with its end, or its first ``size`` bytes."""


def read_jsonl_file(path: Path) -> Iterator[InputRecord]:
    """Every line of a file, plain or packed, whatever its name; raises NearDupError from where it cannot be read."""
    with reading(str(path)), open_packed(path) as file:
        yield from read_jsonl(file, str(path))


def read_jsonl(file: ByteLines, source: str) -> Iterator[InputRecord]:
    """Every line, the malformed ones too; blank lines are passed over, but numbered with the others."""
    number = 0
    while line := file.readline(entry.LARGEST):
        number += 1
        whole = line.endswith(b"\n") or len(line) < entry.LARGEST
        if number == 1:
            line = line.removeprefix(BOM)
        if not whole:
            yield Malformed(source, number, "line", _too_long(file, len(line)), line)
        elif text := line.strip():
            line = line.rstrip(b"\r\n")
            try:
                yield Entry(source, number, "line", parse_object(text), line)
            except ValueError as error:
                yield Malformed(source, number, "line", str(error), line)


def _too_long(file: ByteLines, kept: int) -> str:
    """What is said of a line that is too long, once it has been read to its end."""
    size = kept
    while rest := file.readline(1 << 16):
        size += len(rest)
        if rest.endswith(b"\n"):
            break
    return f"too long: {size:,} bytes with the line end; the first {kept:,} bytes are kept"
