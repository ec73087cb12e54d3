"""Excel and Parquet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from io import BytesIO
from typing import IO, Any

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.outputs.feeds import same_columns
from scrapy_neardup.outputs.writer import Tag, Writer, as_cells, with_tag

_ROWS = 1_048_576
_CELL = 32_767
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class ExcelWriter(Writer):
    """A row a record; the first record gives the columns. Strings stay strings, even if they begin with ``=``."""

    def __init__(self, file: IO[bytes], tag_field: str) -> None:
        super().__init__(file, tag_field)
        try:
            from openpyxl import Workbook
        except ImportError:
            raise NearDupError("Excel files need openpyxl. Run: pip install 'scrapy-neardup[files]'") from None
        self._book = Workbook(write_only=True)
        self._sheet = self._book.create_sheet("articles")
        self._columns: dict[str, Any] | None = None
        self._written = 0

    def write(self, fields: Mapping[str, Any], tag: Tag | None, line: bytes = b"") -> None:
        """See ``Writer``. Each part of the verdict has a column. Raises NearDupError for what no sheet can hold."""
        cells = as_cells(fields, tag, self._tag_field)
        if self._columns is None:
            self._columns = dict.fromkeys(cells)
            self._append(list(cells))
        same_columns(set(self._columns), cells)
        self._append([cells.get(name, "") for name in self._columns])

    def close(self) -> None:
        """Write the workbook."""
        self._book.save(self._file)

    def discard(self) -> None:
        """Remove its temporary file."""
        self._book.save(BytesIO())

    def _append(self, values: list[Any]) -> None:
        from openpyxl.cell import WriteOnlyCell

        self._written += 1
        if self._written > _ROWS:
            raise NearDupError(f"An Excel sheet holds at most {_ROWS:,} rows. Write JSON lines instead.")
        row = []
        for value in values:
            known = isinstance(value, (str, bool, int, float))
            cell = WriteOnlyCell(self._sheet, _ILLEGAL.sub("\ufffd", value if isinstance(value, str) else str(value)))
            if known and not isinstance(value, str):
                cell.value = value
            else:
                cell.data_type = "s"  # a text that begins with = would be run as a formula
                if len(str(cell.value)) > _CELL:
                    raise NearDupError(f"An Excel cell holds at most {_CELL:,} characters. Write JSON lines instead.")
            row.append(cell)
        self._sheet.append(row)


#: Records per batch. The first batch gives the columns and their types.
_BATCH = 1000


class ParquetWriter(Writer):
    """Columns with the types of the first thousand records; the verdict is a column of structs."""

    def __init__(self, file: IO[bytes], tag_field: str) -> None:
        super().__init__(file, tag_field)
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise NearDupError("Parquet files need pyarrow. Run: pip install 'scrapy-neardup[parquet]'") from None
        self._arrow, self._parquet = pa, pq
        self._rows: list[dict[str, Any]] = []
        self._columns: set[str] | None = None
        self._schema: Any = None
        self._writer: Any = None

    def write(self, fields: Mapping[str, Any], tag: Tag | None, line: bytes = b"") -> None:
        """See ``Writer``."""
        self._rows.append(with_tag(fields, tag, self._tag_field))
        if len(self._rows) >= _BATCH:
            self._flush()

    def close(self) -> None:
        """Write the rest and the footer."""
        self._flush()
        self._writer.close()

    def discard(self) -> None:
        """Close the writer, which would otherwise write when the file is closed."""
        if self._writer is not None:
            self._writer.close()

    def _flush(self) -> None:
        if self._writer is None:
            self._schema = self._schema_of(self._rows)
            self._columns = set(self._schema.names)
            self._writer = self._parquet.ParquetWriter(self._file, self._schema)
        for row in self._rows:
            same_columns(self._columns, row)
        try:
            self._writer.write_table(self._arrow.Table.from_pylist(self._rows, self._schema))
        except (self._arrow.ArrowException, TypeError, ValueError) as error:
            raise NearDupError(
                f"A record does not fit the columns of the first {_BATCH:,} records: {error}. Write JSON lines instead."
            ) from None
        self._rows.clear()

    def _schema_of(self, rows: list[dict[str, Any]]) -> Any:
        arrow = self._arrow
        text, number = arrow.string(), arrow.float64()
        verdict = {"similarity": number, "containment": number, "shared": arrow.list_(text)}
        names = dict.fromkeys(name for row in rows for name in row)
        try:
            fields = [(name, arrow.infer_type([row.get(name) for row in rows])) for name in names]
        except (arrow.ArrowException, TypeError, ValueError) as error:
            raise NearDupError(f"The records do not form a table: {error}. Write JSON lines instead.") from None
        known = [(name, text if arrow.types.is_null(type_) else type_) for name, type_ in fields]
        tags = [row[self._tag_field] for row in rows if isinstance(row.get(self._tag_field), dict)]
        if tags and "verdict" in tags[0]:
            struct = arrow.struct([(name, verdict.get(name, text)) for name in tags[0]])
            known = [(name, struct if name == self._tag_field else type_) for name, type_ in known]
        return arrow.schema(known)
