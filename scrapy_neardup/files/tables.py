"""Tables: CSV, TSV, Excel, Parquet."""

from __future__ import annotations

import csv
import io
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, BinaryIO
from zipfile import ZipFile

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files import entry
from scrapy_neardup.files.compression import seekable
from scrapy_neardup.files.entry import Entry, InputRecord, Malformed, guard_records, import_library, library_errors


def read_column_names(cells: Iterable[Any], place: str) -> list[str]:
    """Return the names in the first row, without empty cells at its end. Raises NearDupError for a repeated name.

    One column may lack a name: pandas writes its row numbers so.

    >>> read_column_names(["", "title", 2024, None], "book.xlsx")
    ['', 'title', '2024']
    """
    names = ["" if cell is None else str(cell).strip() for cell in cells]
    while names and not names[-1]:
        names.pop()
    _check_distinct(names, place)
    return names


def _check_distinct(names: Sequence[str], place: str) -> None:
    """Raise NearDupError if two columns share a name, or both lack one."""
    for name, times in Counter(names).items():
        if times > 1:
            which = f"named {name!r}" if name else "without a name"
            raise NearDupError(f"{place} has several columns {which}. Give each column its own name.")


def _why_extra(named: int) -> str:
    return f"a value after column {named}, the last column with a name"


#: Cell separators, the likeliest first. Spreadsheets write semicolons where a comma separates decimals.
_DELIMITERS = ",\t;"


def read_csv(file: BinaryIO, source: str, delimiter: str = "") -> Iterator[InputRecord]:
    """Yield every row as strings by name, numbered by its first line; the header is 1.

    Without ``delimiter`` the header decides. Cells may hold line ends; blank rows are skipped. Raises NearDupError for
    a wrong header.
    """
    csv.field_size_limit(entry.LARGEST)
    # Each byte that is no UTF-8 becomes a placeholder, so its row is known and its bytes are kept.
    text = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
    try:
        lines = _Lines(text, source)
        rows = csv.reader(lines, delimiter=delimiter or max(_DELIMITERS, key=lines.ahead.count))
        names: list[str] = []
        width = 0
        while True:
            start = lines.begin_row()
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                yield Malformed(source, start, "line", f"not CSV: {error}", lines.row())
                continue
            if not row:
                continue
            if not names:
                names, width = _read_header(row, lines, source), len(row)
            elif why := _why_malformed(row, width, len(names), lines):
                yield Malformed(source, start, "line", why, lines.row())
            else:
                yield Entry(source, start, "line", dict(zip(names, row, strict=False)))
    finally:
        text.detach()


def _read_header(row: list[str], lines: _Lines, source: str) -> list[str]:
    if not _is_utf8(row):
        raise NearDupError(
            f"{source}: the column names are not UTF-8. Convert the file, for Chinese for example with: "
            "iconv -f GB18030 -t UTF-8"
        )
    if lines.ended_within_row:
        raise NearDupError(f"{source}: the first row opens a quotation mark and never closes it. Close it.")
    return read_column_names(row, source) or [""]


def _why_malformed(row: list[str], width: int, named: int, lines: _Lines) -> str:
    """Say why a row is malformed; empty if it is not. Cells at the end of a header may be empty together."""
    if lines.ended_within_row:
        return "a quotation mark is never closed, so the rest of the file is one cell"
    if len(row) != width:
        return f"{len(row)} cells instead of {width}"
    if any(row[named:]):
        return _why_extra(named)
    return "" if _is_utf8(row) else "not UTF-8"


def _is_utf8(row: list[str]) -> bool:
    try:
        "".join(row).encode()
    except UnicodeEncodeError:
        return False
    return True


class _Lines:
    """Lines for the parser, kept until their row is complete. It reads one line ahead.

    ``ended_within_row``: the file ended within a row.
    """

    def __init__(self, text: io.TextIOWrapper, source: str) -> None:
        self._text, self._source = text, source
        self._taken: list[str] = []
        self._number = 0
        self.ended_within_row = False
        self.ahead = self._read()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self.ahead
        if not line:
            self.ended_within_row = bool(self._taken)
            raise StopIteration
        self._taken.append(line)
        self._number += 1
        self.ahead = self._read()
        return line

    def begin_row(self) -> int:
        """Forget the lines of the last row; return the number of the next line."""
        self._taken.clear()
        return self._number + 1

    def row(self) -> bytes:
        """Return the bytes of the row, without its line end."""
        return "".join(self._taken).encode("utf-8", "surrogateescape").rstrip(b"\r\n")

    def _read(self) -> str:
        line = self._text.readline(entry.LARGEST)
        if len(line) == entry.LARGEST:
            raise NearDupError(
                f"{self._source}, line {self._number + 1} is longer than {entry.LARGEST:,} characters, so this is no "
                "table of pages. Name its format with --format."
            )
        return line


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


def read_excel(file: BinaryIO, source: str) -> Iterator[InputRecord]:
    """Yield every row of every sheet by its number; the header is 1. Empty rows are skipped.

    A formula has the value it had when the book was saved. Dates are strings in ISO 8601, empty cells None. All
    distinct strings of the book are in memory. Raises NearDupError for a broken book, a cell that is too large, or a
    repeated name.
    """
    openpyxl = import_library("openpyxl", "files", f"{source}: an Excel workbook")
    with seekable(file) as whole:
        with library_errors(source, "sheet"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # styles and validations that it cannot keep are of no use here
            _check_cells(whole)
            book = openpyxl.load_workbook(whole, read_only=True, data_only=True, keep_links=False)
        with closing(book):
            for sheet in book.worksheets:
                # Some programs write wrong dimensions, which would cut cells off.
                sheet.reset_dimensions()
                yield from _read_sheet(sheet, f"{source}, sheet {sheet.title}")


def _check_cells(book: BinaryIO) -> None:
    """Raise ValueError for a cell that is too large; the library would hold it in memory several times."""
    with ZipFile(book) as members:
        for name in members.namelist():
            if name.startswith("xl/") and name.endswith(".xml"):
                run = 0  # bytes since the last tag
                with members.open(name) as member:
                    while part := member.read(1 << 20):
                        first = part.find(b"<")
                        run += len(part) if first < 0 else first
                        if run > entry.LARGEST:
                            raise ValueError(f"a cell in {name} has more than {entry.LARGEST:,} bytes")
                        if first >= 0:
                            run = len(part) - part.rindex(b"<")
    book.seek(0)


def _read_sheet(sheet: Any, source: str) -> Iterator[InputRecord]:
    names: list[str] = []
    rows: Iterator[Sequence[Any]] = guard_records(sheet.iter_rows(values_only=True), source, "row")
    for number, row in enumerate(rows, 1):
        values = [make_plain(value) for value in row]
        while values and values[-1] in (None, ""):
            values.pop()
        if not values:
            continue
        if not names:
            names = read_column_names(values, source)
        elif len(values) > len(names):
            raw = "\t".join("" if value is None else str(value) for value in values).encode()
            yield Malformed(source, number, "row", _why_extra(len(names)), raw)
        else:
            values += [None] * (len(names) - len(values))
            yield Entry(source, number, "row", dict(zip(names, values, strict=True)))


#: Rows, and bytes of a column, in memory at once.
_ROWS, _BYTES = 64, 1 << 20


def read_parquet(file: BinaryIO, source: str) -> Iterator[InputRecord]:
    """Yield every row by its number from 1. Raises NearDupError where the file is broken.

    Times are strings in ISO 8601 with microseconds. UTF-8 bytes are text, as some programs do not mark strings.
    """
    parquet = import_library("pyarrow.parquet", "parquet", f"{source}: Parquet")
    with seekable(file) as whole:
        with library_errors(source, "row"):
            table = parquet.ParquetFile(whole, buffer_size=_BYTES, pre_buffer=False)
        with table:
            _check_distinct(table.schema_arrow.names, source)
            for number, row in enumerate(guard_records(_read_row_groups(table), source, "row"), 1):
                yield Entry(source, number, "row", row)


def _read_row_groups(table: Any) -> Iterator[dict[str, Any]]:
    # By group, so that a broken group costs no rows of a sound one. Threads would read ahead into memory.
    for group in range(table.num_row_groups):
        for batch in table.iter_batches(_ROWS, row_groups=[group], use_threads=False):
            columns = [_coarsen_times(column).to_pylist() for column in batch.columns]
            for values in zip(*columns, strict=True):
                yield {name: make_plain(value) for name, value in zip(batch.schema.names, values, strict=True)}


def _coarsen_times(column: Any) -> Any:
    """Convert times to microseconds, Python's unit."""
    arrow = import_library("pyarrow", "parquet", "Parquet")
    kind = column.type
    if arrow.types.is_timestamp(kind) and kind.unit == "ns":
        return column.cast(arrow.timestamp("us", kind.tz), safe=False)
    return column
