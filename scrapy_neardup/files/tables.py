"""Tables: CSV and Parquet."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from functools import partial
from importlib import import_module
from itertools import chain
from typing import Any, BinaryIO

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files import entry
from scrapy_neardup.files.entry import Entry, InputRecord, Malformed, guard_records, import_library

#: Cell separators, the likeliest first. Spreadsheets write semicolons where a comma separates decimals.
_DELIMITERS = ",\t;"


def read_csv(file: BinaryIO, source: str) -> Iterator[InputRecord]:
    """Yield every row as strings by name, numbered by its first line; the header is 1.

    The header shows what separates cells. Cells may hold line ends; blank rows are skipped. Raises NearDupError for a
    wrong header.
    """
    csv.field_size_limit(entry.LARGEST)
    # Each byte that is no UTF-8 becomes a placeholder, so its row is known and its bytes are kept.
    text = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
    try:
        first = text.readline(entry.LARGEST)
        row_lines: list[str] = []
        lines = _note_lines(chain([first], iter(partial(text.readline, entry.LARGEST), "")), row_lines, source)
        rows = csv.reader(lines, delimiter=max(_DELIMITERS, key=first.count))
        names, width = list[str](), 0
        while True:
            row_lines.clear()
            start = rows.line_num + 1
            try:
                row, why = next(rows), ""
            except StopIteration:
                return
            except csv.Error as error:
                row, why = [], f"not CSV: {error}"
            if not row and not why:
                continue
            if not names and not why:
                names, width = _read_header(row, row_lines, source), len(row)
            elif why := why or _why_malformed(row, width, len(names), row_lines):
                raw = "".join(row_lines).encode("utf-8", "surrogateescape").rstrip(b"\r\n")
                yield Malformed(source, start, "line", why, raw)
            else:
                yield Entry(source, start, "line", dict(zip(names, row, strict=False)))
    finally:
        text.detach()


def _note_lines(lines: Iterator[str], row_lines: list[str], source: str) -> Iterator[str]:
    """Yield lines for the parser, and note the lines of its row. The last is empty if the file ends within that row."""
    for number, line in enumerate(lines, 1):
        if len(line) == entry.LARGEST:
            raise NearDupError(
                f"{source}, line {number} is longer than {entry.LARGEST:,} characters, so this is no table of pages. "
                "Give it the suffix of its format."
            )
        if line:
            row_lines.append(line)
            yield line
    row_lines.append("")


def _read_header(row: list[str], row_lines: list[str], source: str) -> list[str]:
    """Return the names of the columns, without empty ones at the end. pandas writes row numbers without a name."""
    if not _is_utf8(row):
        raise NearDupError(
            f"{source}: the column names are not UTF-8. Convert the file, for Chinese for example with: "
            "iconv -f GB18030 -t UTF-8"
        )
    if not row_lines[-1]:
        raise NearDupError(f"{source}: the first row opens a quotation mark and never closes it. Close it.")
    names = [cell.strip() for cell in row]
    while len(names) > 1 and not names[-1]:
        names.pop()
    _check_distinct(names, source)
    return names


def _check_distinct(names: list[str], place: str) -> None:
    """Raise NearDupError if two columns share a name, or both lack one."""
    for name, times in Counter(names).items():
        if times > 1:
            which = f"named {name!r}" if name else "without a name"
            raise NearDupError(f"{place} has several columns {which}. Give each column its own name.")


def _why_malformed(row: list[str], width: int, named: int, row_lines: list[str]) -> str:
    """Say why a row is malformed; empty if it is not. Cells at the end of a header may be empty together."""
    if not row_lines[-1]:
        return "a quotation mark is never closed, so the rest of the file is one cell"
    if len(row) != width:
        return f"{len(row)} cells instead of {width}"
    if any(row[named:]):
        return f"a value after column {named}, the last column with a name"
    return "" if _is_utf8(row) else "not UTF-8"


def _is_utf8(row: list[str]) -> bool:
    try:
        "".join(row).encode()
    except UnicodeEncodeError:
        return False
    return True


#: Rows, and bytes of a column, in memory at once.
_ROWS, _BYTES = 64, 1 << 20


def read_parquet(file: BinaryIO, source: str) -> Iterator[InputRecord]:
    """Yield every row by its number from 1. Raises NearDupError where the file is broken.

    Times are strings in ISO 8601 with microseconds. UTF-8 bytes are text, as some programs do not mark strings.
    """
    import_library("pyarrow.parquet", "parquet", f"{source}: Parquet")
    for number, row in enumerate(guard_records(_read_rows(file, source), source, "row"), 1):
        yield Entry(source, number, "row", row)


def _read_rows(file: BinaryIO, source: str) -> Iterator[dict[str, Any]]:
    # A broken group must not cost the rows of a sound one. Threads would read ahead into memory.
    parquet = import_module("pyarrow.parquet")
    with parquet.ParquetFile(file, buffer_size=_BYTES, pre_buffer=False) as table:
        _check_distinct(table.schema_arrow.names, source)
        for group in range(table.num_row_groups):
            for batch in table.iter_batches(_ROWS, row_groups=[group], use_threads=False):
                columns = [_coarsen_times(column).to_pylist() for column in batch.columns]
                for values in zip(*columns, strict=True):
                    yield {name: make_plain(value) for name, value in zip(batch.schema.names, values, strict=True)}


def _coarsen_times(column: Any) -> Any:
    """Convert times to microseconds, Python's unit."""
    arrow = import_module("pyarrow")
    kind = column.type
    if arrow.types.is_timestamp(kind) and kind.unit == "ns":
        return column.cast(arrow.timestamp("us", kind.tz), safe=False)
    return column


def make_plain(value: Any) -> Any:
    """Convert a value of a table to JSON's types: times to ISO 8601, durations and decimals to numbers, UTF-8 to text.

    >>> make_plain({"on": date(2024, 5, 1), "for": timedelta(minutes=2), "tags": [b"ferry"]})
    {'on': '2024-05-01', 'for': 120.0, 'tags': ['ferry']}
    """
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    if isinstance(value, (list, tuple)):
        return [make_plain(one) for one in value]
    if isinstance(value, dict):
        return {name: make_plain(one) for name, one in value.items()}
    return value
