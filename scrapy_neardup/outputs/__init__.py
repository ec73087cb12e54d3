"""Records to files. A new format is a writer and a line in ``WRITERS``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.inputs.packed import open_packed_for_writing, unpacked_name
from scrapy_neardup.outputs.feeds import CsvWriter, JsonWriter, TsvWriter, XmlWriter
from scrapy_neardup.outputs.tables import ExcelWriter, ParquetWriter
from scrapy_neardup.outputs.writer import JsonLinesWriter, Writer, as_json

WRITERS: dict[str, type[Writer]] = {
    "jsonl": JsonLinesWriter,
    "json": JsonWriter,
    "csv": CsvWriter,
    "tsv": TsvWriter,
    "xml": XmlWriter,
    "excel": ExcelWriter,
    "parquet": ParquetWriter,
}
_SUFFIXES = {
    **{f".{name}": name for name in WRITERS if name != "excel"},
    ".xlsx": "excel",
    ".jl": "jsonl",
    ".ndjson": "jsonl",
    ".jsonlines": "jsonl",
}


def output_format(name: str, given: str = "") -> str:
    """Return the format of an output: ``given``, or by its name; JSON lines for standard output.

    Raises NearDupError for an unknown name.
    """
    plain = unpacked_name(name)
    found = given or ("jsonl" if name == "-" else _SUFFIXES.get(Path(plain).suffix.lower(), ""))
    if found not in WRITERS:
        raise NearDupError(
            f"{given or name} names no output format. Use the suffix .{', .'.join(WRITERS).replace('excel', 'xlsx')}, "
            "or add --output-format."
        )
    return found


@contextmanager
def opened_output(name: str, format: str, tag_field: str, *, for_spreadsheet: bool = False) -> Iterator[Writer]:
    """Open a writer to a file, compressed by its suffix. The file appears once it is complete, and not after an error.

    ``-`` is standard output, which gets each record at once. ``for_spreadsheet``: see ``Writer``.
    """
    if name == "-":
        yield from _writing(sys.stdout.buffer, format, tag_field, for_spreadsheet)
        sys.stdout.buffer.flush()
        return
    with replace_file(Path(name)) as draft, open_packed_for_writing(draft) as file:
        yield from _writing(file, format, tag_field, for_spreadsheet)


def _writing(file: IO[bytes], format: str, tag_field: str, for_spreadsheet: bool) -> Iterator[Writer]:
    writer = WRITERS[format](file, tag_field)
    writer.for_spreadsheet = for_spreadsheet
    try:
        yield writer
        writer.close()
    except BaseException:
        writer.discard()
        raise


__all__ = ["WRITERS", "Writer", "as_json", "opened_output", "output_format"]
