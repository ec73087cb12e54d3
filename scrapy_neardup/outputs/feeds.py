"""JSON, CSV and XML, as Scrapy's feeds write them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from io import BytesIO
from typing import IO, Any, cast

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.outputs.writer import Tag, Writer, as_cells, as_json, with_tag

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


def as_text(cell: Any) -> Any:
    """Return the cell, with an apostrophe in front of a formula.

    >>> as_text("=HYPERLINK(A1)"), as_text(7)
    ("'=HYPERLINK(A1)", 7)
    """
    return f"'{cell}" if is_formula(cell) else cell


#: Characters that XML forbids.
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_XML_NAME = re.compile(r"[^\W\d][\w.-]*")


class JsonWriter(Writer):
    """One array, a record a line."""

    def __init__(self, file: IO[bytes], tag_field: str) -> None:
        super().__init__(file, tag_field)
        self._before = b"[\n"

    def write(self, fields: Mapping[str, Any], tag: Tag | None, line: bytes = b"") -> None:
        """See ``Writer``."""
        self._file.write(self._before + as_json(with_tag(fields, tag, self._tag_field)))
        self._before = b",\n"

    def close(self) -> None:
        """End the array."""
        self._file.write(self._before.strip(b",\n") + b"\n]\n")


class XmlWriter(Writer):
    """One element a field, as in Scrapy's feeds. U+FFFD replaces forbidden characters."""

    def __init__(self, file: IO[bytes], tag_field: str) -> None:
        from scrapy.exporters import XmlItemExporter  # it loads the libraries of all kinds of items

        super().__init__(file, tag_field)
        self._exporter = XmlItemExporter(cast(BytesIO, file), indent=0)
        self._exporter.start_exporting()

    def write(self, fields: Mapping[str, Any], tag: Tag | None, line: bytes = b"") -> None:
        """See ``Writer``. Raises NearDupError for a field whose name no element can have."""
        for name in fields:
            if not _XML_NAME.fullmatch(name):
                raise NearDupError(f"{name!r} cannot be a field name in XML. Write JSON lines instead.")
        self._exporter.export_item(_legal(json.loads(as_json(with_tag(fields, tag, self._tag_field)))))

    def close(self) -> None:
        """End the document."""
        self._exporter.finish_exporting()


class CsvWriter(Writer):
    """A row a record; the first record gives the columns."""

    def __init__(self, file: IO[bytes], tag_field: str, **options: Any) -> None:
        from scrapy.exporters import CsvItemExporter

        super().__init__(file, tag_field)
        self._exporter = CsvItemExporter(cast(BytesIO, file), errors="backslashreplace", **options)
        self._columns: set[str] | None = None

    def write(self, fields: Mapping[str, Any], tag: Tag | None, line: bytes = b"") -> None:
        """See ``Writer``. Each part of the verdict has a column."""
        cells = as_cells(fields, tag, self._tag_field)
        self.formulas += sum(map(is_formula, [*(() if self._columns else cells), *cells.values()]))
        self._columns = same_columns(self._columns, cells)
        if self.for_spreadsheet:
            cells = {as_text(name): as_text(cell) for name, cell in cells.items()}
        self._exporter.export_item(cells)

    def close(self) -> None:
        """Close the text layer."""
        self._exporter.finish_exporting()


class TsvWriter(CsvWriter):
    """CSV with tabs."""

    def __init__(self, file: IO[bytes], tag_field: str) -> None:
        super().__init__(file, tag_field, delimiter="\t")


def same_columns(columns: set[str] | None, cells: Mapping[str, Any]) -> set[str]:
    """Return the columns of the first row. Raises NearDupError for a row that has others."""
    if columns is None:
        return set(cells)
    if more := sorted(set(cells) - columns):
        raise NearDupError(
            f"A record has fields that the first record lacks: {', '.join(more)}. A table would lose them. "
            "Write JSON lines instead."
        )
    return columns


def _legal(value: Any) -> Any:
    if isinstance(value, str):
        return _ILLEGAL.sub("\ufffd", value)
    if isinstance(value, dict):
        return {name: _legal(one) for name, one in value.items()}
    return [_legal(one) for one in value] if isinstance(value, list) else value
