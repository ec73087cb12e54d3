"""Records to files. A new format is a writer and a line in ``WRITERS``."""

from __future__ import annotations

import csv
import json
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files.compression import open_packed_for_writing, strip_packing
from scrapy_neardup.files.entry import BOM, import_library

#: A verdict as plain data; see ``Verdict.as_tag``.
Tag = Mapping[str, Any]


class Writer(ABC):
    """Writes records. ``close`` completes the output but leaves the file open.

    ``formulas``: how many cells a spreadsheet would run.
    """

    formulas = 0

    def __init__(self, file: IO[bytes], tag_field: str, *, for_spreadsheet: bool = False) -> None:
        """``tag_field``: the field for the verdict. ``for_spreadsheet``: write a table for such a program."""
        self._file = file
        self._tag_field = tag_field
        self._for_spreadsheet = for_spreadsheet

    @abstractmethod
    def write(self, fields: Mapping[str, Any], tag: Tag | None, line: bytes = b"") -> None:
        """Write a record, with its verdict if there is a ``tag``; ``line`` is the JSON line that it came from.

        Raises NearDupError for a record that the format cannot hold.
        """

    def close(self) -> None:  # noqa: B027  # some formats have no end
        """Write the end."""

    def discard(self) -> None:  # noqa: B027  # most hold nothing but the file
        """Release everything after an error."""


def as_json(value: Any) -> bytes:
    """Return JSON in UTF-8, or in ASCII for half a surrogate pair. Dates and the like become strings."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        return json.dumps(value, default=str).encode()


def with_tag(fields: Mapping[str, Any], tag: Tag | None, tag_field: str) -> dict[str, Any]:
    """Return the record with its verdict."""
    return dict(fields) if tag is None else {**fields, tag_field: dict(tag)}


def as_cells(fields: Mapping[str, Any], tag: Tag | None, tag_field: str) -> dict[str, Any]:
    """Return a record as one row: a column for each part of its verdict, and JSON for lists.

    >>> as_cells({"id": 7, "tags": ["a"]}, {"verdict": "unique", "shared": []}, "neardup")
    {'id': 7, 'tags': '["a"]', 'neardup.verdict': 'unique', 'neardup.shared': '[]'}
    """
    columns = {**fields, **{f"{tag_field}.{name}": value for name, value in (tag or {}).items()}}
    return {name: _cell(value) for name, value in columns.items()}


def _cell(value: Any) -> Any:
    if isinstance(value, (Mapping, list, tuple)):
        return as_json(value).decode()
    return "" if value is None else value


class JsonLinesWriter(Writer):
    """One JSON object a line."""

    def write(self, fields: Mapping[str, Any], tag: Tag | None, line: bytes = b"") -> None:
        """Keep numbers, escapes and the order of fields of a line; the verdict follows the last field."""
        if not line or (tag is not None and self._tag_field in fields):
            line = as_json(with_tag(fields, tag, self._tag_field))
        elif tag is not None:
            added = as_json({self._tag_field: dict(tag)})[1:]
            line = line.rstrip().removesuffix(b"}") + (b", " if fields else b"") + added
        self._file.write(line + b"\n")


class JsonWriter(Writer):
    """One array, a record a line."""

    _before = b"[\n"

    def write(self, fields: Mapping[str, Any], tag: Tag | None, line: bytes = b"") -> None:
        self._file.write(self._before + as_json(with_tag(fields, tag, self._tag_field)))
        self._before = b",\n"

    def close(self) -> None:
        self._file.write(self._before.strip(b",\n") + b"\n]\n")


def _check_columns(columns: Mapping[str, Any], cells: Mapping[str, Any]) -> None:
    """Raise NearDupError for a row that has other columns than the first row."""
    if more := sorted(set(cells) - set(columns)):
        raise NearDupError(
            f"A record has fields that the first record lacks: {', '.join(more)}. A table would lose them. "
            "Write JSON lines instead."
        )


# Excel, LibreOffice and others run a cell of a CSV file as a formula if it begins like one, quoted or not. Such a
# formula can leak other cells or start a program, and pages fill these cells. OWASP ("CSV Injection") puts an
# apostrophe in front. That changes the value for other programs, so a user must ask for it.

#: The beginning of a formula, full-width characters too; a tab or line end before it may be skipped.
_FORMULA = re.compile("[=+\\-@\\t\\r\\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)*([eE][+-]?\d+)?")


def is_formula(cell: Any) -> bool:
    """Whether a spreadsheet may run the cell.

    >>> [is_formula(cell) for cell in ("=1+1", "@sum", "-1+2", "-12.5", -12.5, "渡口")]
    [True, True, True, False, False, False]
    """
    return isinstance(cell, str) and _FORMULA.match(cell) is not None and _NUMBER.fullmatch(cell) is None


class CsvWriter(Writer):
    """A row a record; the first record gives the columns.

    Each part of a verdict has a column. For spreadsheets, formulas become text, and a byte order mark comes first:
    Excel takes UTF-8 without it for another charset.
    """

    _columns: dict[str, Any] | None = None

    def write(self, fields: Mapping[str, Any], tag: Tag | None, line: bytes = b"") -> None:
        cells = as_cells(fields, tag, self._tag_field)
        if self._columns is None:
            self._columns = dict.fromkeys(cells)
            self._file.write(BOM if self._for_spreadsheet else b"")
            self._write_row(list(cells))
        _check_columns(self._columns, cells)
        self._write_row([cells.get(name, "") for name in self._columns])

    def _write_row(self, cells: list[Any]) -> None:
        self.formulas += sum(map(is_formula, cells))
        if self._for_spreadsheet:
            cells = [f"'{cell}" if is_formula(cell) else cell for cell in cells]
        csv.writer(SimpleNamespace(write=self._write_text)).writerow(cells)

    def _write_text(self, text: str) -> None:
        self._file.write(text.encode("utf-8", "backslashreplace"))


#: Records per batch. The first batch gives the columns and their types.
_BATCH = 1000


class ParquetWriter(Writer):
    """Columns with the types of the first thousand records; the verdict is a column of structs."""

    def __init__(self, file: IO[bytes], tag_field: str, *, for_spreadsheet: bool = False) -> None:
        super().__init__(file, tag_field, for_spreadsheet=for_spreadsheet)
        self._parquet = import_library("pyarrow.parquet", "parquet", "Parquet")
        self._arrow = import_library("pyarrow", "parquet", "Parquet")
        self._rows: list[dict[str, Any]] = []
        self._schema: Any = None
        self._writer: Any = None

    def write(self, fields: Mapping[str, Any], tag: Tag | None, line: bytes = b"") -> None:
        self._rows.append(with_tag(fields, tag, self._tag_field))
        if len(self._rows) >= _BATCH:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def discard(self) -> None:
        """Close the writer, which would otherwise write when the file is closed."""
        if self._writer is not None:
            self._writer.close()

    def _flush(self) -> None:
        if self._writer is None:
            self._schema = self._make_schema()
            self._writer = self._parquet.ParquetWriter(self._file, self._schema)
        columns = dict.fromkeys(self._schema.names)
        for row in self._rows:
            _check_columns(columns, row)
        try:
            self._writer.write_table(self._arrow.Table.from_pylist(self._rows, self._schema))
        except (self._arrow.ArrowException, TypeError, ValueError) as error:
            raise NearDupError(
                f"A record does not fit the columns of the first {_BATCH:,} records: {error}. Write JSON lines instead."
            ) from None
        self._rows.clear()

    def _make_schema(self) -> Any:
        arrow = self._arrow
        text = arrow.string()
        of_tag = {"similarity": arrow.float64(), "containment": arrow.float64(), "shared": arrow.list_(text)}
        types = {}
        for name in dict.fromkeys(name for row in self._rows for name in row):
            try:
                found = arrow.infer_type([row.get(name) for row in self._rows])
            except (arrow.ArrowException, TypeError, ValueError) as error:
                raise NearDupError(f"The records do not form a table: {error}. Write JSON lines instead.") from None
            types[name] = text if arrow.types.is_null(found) else found
        tags = [row[self._tag_field] for row in self._rows if isinstance(row.get(self._tag_field), dict)]
        if tags and "verdict" in tags[0]:
            types[self._tag_field] = arrow.struct([(name, of_tag.get(name, text)) for name in tags[0]])
        return arrow.schema(list(types.items()))


WRITERS: dict[str, type[Writer]] = {
    "jsonl": JsonLinesWriter,
    "json": JsonWriter,
    "csv": CsvWriter,
    "parquet": ParquetWriter,
}
_SUFFIXES = {**{f".{name}": name for name in WRITERS}, **dict.fromkeys((".jl", ".ndjson", ".jsonlines"), "jsonl")}


def find_output_format(name: str) -> str:
    """Return the format of an output by its name; JSON lines for standard output. Raises NearDupError."""
    found = "jsonl" if name == "-" else _SUFFIXES.get(Path(strip_packing(name)).suffix.lower())
    if found is None:
        raise NearDupError(f"{name} names no output format. Use one of the suffixes .{', .'.join(WRITERS)}.")
    return found


@contextmanager
def open_output(name: str, format: str, tag_field: str, *, for_spreadsheet: bool = False) -> Iterator[Writer]:
    """Open a writer to a file, compressed by its suffix. The file appears once it is complete, and not after an error.

    ``-`` is standard output, which gets each record at once. ``for_spreadsheet``: see ``CsvWriter``.
    """
    with ExitStack() as opened:
        file: IO[bytes] = sys.stdout.buffer
        if name != "-":
            file = opened.enter_context(open_packed_for_writing(opened.enter_context(replace_file(Path(name)))))
        writer = WRITERS[format](file, tag_field, for_spreadsheet=for_spreadsheet)
        try:
            yield writer
            writer.close()
        except BaseException:
            writer.discard()
            raise
        file.flush()
