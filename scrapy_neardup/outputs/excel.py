"""A sheet of an Excel workbook."""

from __future__ import annotations

import re
from collections.abc import Mapping
from io import BytesIO
from typing import IO, Any

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.outputs.feeds import same_columns
from scrapy_neardup.outputs.writer import Tag, Writer, as_cells

_ROWS = 1_048_576
_CELL = 32_767
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class ExcelWriter(Writer):
    """A row a record; the first record gives the columns. Strings stay strings, also where they begin with ``=``."""

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
        """See ``Writer``; a column for each part of the verdict. Raises NearDupError for what no sheet can hold."""
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
        """Save it to nowhere: until then its rows lie in a temporary file."""
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
