"""Records to files. A new format is a writer and a line in ``WRITERS``."""

from __future__ import annotations

import csv
import json
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import IO, Any, cast
from xml.sax.saxutils import XMLGenerator
from xml.sax.xmlreader import AttributesImpl

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files.compression import open_packed_for_writing, strip_packing
from scrapy_neardup.files.entry import import_library

#: A verdict as plain data; see ``Verdict.as_tag``.
Tag = Mapping[str, Any]
#: Characters that XML and Excel forbid.
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class Writer(ABC):
    """Writes records. ``close`` completes the output but leaves the file open.

    ``for_spreadsheet``: write formulas as text, where the format cannot mark text; ``formulas`` counts them.
    """

    for_spreadsheet = False
    formulas = 0

    def __init__(self, file: IO[bytes], tag_field: str) -> None:
        """``tag_field``: the field for the verdict."""
        self._file = file
        self._tag_field = tag_field

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


_NO_ATTRIBUTES: AttributesImpl[str] = AttributesImpl({})
_XML_NAME = re.compile(r"[^\W\d][\w.-]*")


class XmlWriter(Writer):
    """One element a field, as in Scrapy's feeds. U+FFFD replaces forbidden characters."""

    def __init__(self, file: IO[bytes], tag_field: str) -> None:
        super().__init__(file, tag_field)
        self._xml = XMLGenerator(cast(BytesIO, file), "utf-8")
        self._xml.startDocument()
        self._xml.startElement("items", _NO_ATTRIBUTES)
        self._xml.characters("\n")

    def write(self, fields: Mapping[str, Any], tag: Tag | None, line: bytes = b"") -> None:
        self._write("item", json.loads(as_json(with_tag(fields, tag, self._tag_field))))
        self._xml.characters("\n")

    def close(self) -> None:
        self._xml.endElement("items")
        self._xml.endDocument()

    def _write(self, name: str, value: Any) -> None:
        if not _XML_NAME.fullmatch(name):
            raise NearDupError(f"{name!r} cannot be a field name in XML. Write JSON lines instead.")
        self._xml.startElement(name, _NO_ATTRIBUTES)
        if isinstance(value, dict):
            for own, inner in value.items():
                self._write(own, inner)
        elif isinstance(value, list):
            for inner in value:
                self._write("value", inner)
        else:
            self._xml.characters(_ILLEGAL.sub("\ufffd", str(value)))
        self._xml.endElement(name)


class TableWriter(Writer):
    """Writes a row a record. The first record gives the columns, and each part of the verdict has one."""

    _columns: dict[str, Any] | None = None

    def write(self, fields: Mapping[str, Any], tag: Tag | None, line: bytes = b"") -> None:
        cells = as_cells(fields, tag, self._tag_field)
        if self._columns is None:
            self._columns = dict.fromkeys(cells)
            self._write_row(list(cells))
        _check_columns(self._columns, cells)
        self._write_row([cells.get(name, "") for name in self._columns])

    @abstractmethod
    def _write_row(self, cells: list[Any]) -> None:
        """Write the cells, or the names of the columns."""


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


class CsvWriter(TableWriter):
    """A row a record; the first record gives the columns."""

    delimiter = ","

    def __init__(self, file: IO[bytes], tag_field: str) -> None:
        super().__init__(file, tag_field)
        self._text = TextIOWrapper(
            cast(BytesIO, file), "utf-8", errors="backslashreplace", newline="", write_through=True
        )
        self._rows = csv.writer(self._text, delimiter=self.delimiter)

    def close(self) -> None:
        self._text.detach()  # or it would close the file

    discard = close

    def _write_row(self, cells: list[Any]) -> None:
        self.formulas += sum(map(is_formula, cells))
        if self.for_spreadsheet:
            cells = [f"'{cell}" if is_formula(cell) else cell for cell in cells]
        self._rows.writerow(cells)


class TsvWriter(CsvWriter):
    """CSV with tabs."""

    delimiter = "\t"


_MOST_ROWS = 1_048_576
_MOST_CHARACTERS = 32_767


class ExcelWriter(TableWriter):
    """A row a record; the first record gives the columns. Strings stay strings, even if they begin with ``=``."""

    def __init__(self, file: IO[bytes], tag_field: str) -> None:
        super().__init__(file, tag_field)
        self._library = import_library("openpyxl", "files", "An Excel workbook")
        self._book = self._library.Workbook(write_only=True)
        self._sheet = self._book.create_sheet("articles")
        self._written = 0

    def close(self) -> None:
        self._book.save(self._file)

    def discard(self) -> None:
        """Remove its temporary file."""
        self._book.save(BytesIO())

    def _write_row(self, cells: list[Any]) -> None:
        self._written += 1
        if self._written > _MOST_ROWS:
            raise NearDupError(f"An Excel sheet holds at most {_MOST_ROWS:,} rows. Write JSON lines instead.")
        self._sheet.append([self._make_cell(cell) for cell in cells])

    def _make_cell(self, value: Any) -> Any:
        if isinstance(value, (bool, int, float)):
            return value
        text = _ILLEGAL.sub("\ufffd", str(value))
        if len(text) > _MOST_CHARACTERS:
            raise NearDupError(
                f"An Excel cell holds at most {_MOST_CHARACTERS:,} characters. Write JSON lines instead."
            )
        cell = self._library.cell.WriteOnlyCell(self._sheet, text)
        cell.data_type = "s"  # a text that begins with = would be run as a formula
        return cell


#: Records per batch. The first batch gives the columns and their types.
_BATCH = 1000


class ParquetWriter(Writer):
    """Columns with the types of the first thousand records; the verdict is a column of structs."""

    def __init__(self, file: IO[bytes], tag_field: str) -> None:
        super().__init__(file, tag_field)
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


def find_output_format(name: str, given: str = "") -> str:
    """Return the format of an output: ``given``, or by its name; JSON lines for standard output.

    Raises NearDupError for an unknown name.
    """
    found = given or ("jsonl" if name == "-" else _SUFFIXES.get(Path(strip_packing(name)).suffix.lower(), ""))
    if found not in WRITERS:
        raise NearDupError(
            f"{given or name} names no output format. Use the suffix .{', .'.join(WRITERS).replace('excel', 'xlsx')}, "
            "or add --output-format."
        )
    return found


@contextmanager
def open_output(name: str, format: str, tag_field: str, *, for_spreadsheet: bool = False) -> Iterator[Writer]:
    """Open a writer to a file, compressed by its suffix. The file appears once it is complete, and not after an error.

    ``-`` is standard output, which gets each record at once. ``for_spreadsheet``: see ``Writer``.
    """
    if name == "-":
        yield from _open_writer(sys.stdout.buffer, format, tag_field, for_spreadsheet)
        sys.stdout.buffer.flush()
        return
    with replace_file(Path(name)) as draft, open_packed_for_writing(draft) as file:
        yield from _open_writer(file, format, tag_field, for_spreadsheet)


def _open_writer(file: IO[bytes], format: str, tag_field: str, for_spreadsheet: bool) -> Iterator[Writer]:
    writer = WRITERS[format](file, tag_field)
    writer.for_spreadsheet = for_spreadsheet
    try:
        yield writer
        writer.close()
    except BaseException:
        writer.discard()
        raise
