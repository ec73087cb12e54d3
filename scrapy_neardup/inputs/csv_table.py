"""Tables of CSV and TSV, with the names of the columns in their first row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import BinaryIO

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.inputs import entry
from scrapy_neardup.inputs.entry import Entry, InputRecord, Malformed
from scrapy_neardup.inputs.header import column_names

#: What separates cells, the likeliest first; where a comma separates decimals, spreadsheets write semicolons.
_DELIMITERS = ",\t;"


def read_csv(file: BinaryIO, source: str, delimiter: str = "") -> Iterator[InputRecord]:
    """Every row as strings by name; a row is numbered by the line on which it begins, the header's being 1.

    Without a ``delimiter``, it is what separates the names. Cells may hold line ends; rows that are blank are passed
    over. Raises NearDupError if the header is no header.
    """
    csv.field_size_limit(entry.LARGEST)
    # A stand-in for each byte that is no UTF-8, so that the row with it is known and its bytes are kept.
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
                names, width = _header(row, lines, source), len(row)
            elif why := _what_is_wrong(row, width, len(names), lines):
                yield Malformed(source, start, "line", why, lines.row())
            else:
                yield Entry(source, start, "line", dict(zip(names, row, strict=False)))
    finally:
        text.detach()


def _header(row: list[str], lines: _Lines, source: str) -> list[str]:
    if not _is_utf8(row):
        raise NearDupError(
            f"{source}: the column names are not UTF-8. Convert the file, for Chinese for example with: "
            "iconv -f GB18030 -t UTF-8"
        )
    if lines.ended_within_row:
        raise NearDupError(f"{source}: the first row opens a quotation mark and never closes it. Close it.")
    return column_names(row, source) or [""]


def _what_is_wrong(row: list[str], width: int, named: int, lines: _Lines) -> str:
    """Why a row is none; empty if nothing is wrong with it. The last cells of a header may be empty, if others are."""
    if lines.ended_within_row:
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


class _Lines:
    """The lines of a file for the parser, which are kept until the row that they make is done.

    One line is read ahead. ``ended_within_row``: the parser asked for more where there was nothing more.
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
        """Forget the lines of the last row; gives the number of the next line."""
        self._taken.clear()
        return self._number + 1

    def row(self) -> bytes:
        """The bytes of the row as they stand, without its line end."""
        return "".join(self._taken).encode("utf-8", "surrogateescape").rstrip(b"\r\n")

    def _read(self) -> str:
        line = self._text.readline(entry.LARGEST)
        if len(line) == entry.LARGEST:
            raise NearDupError(
                f"{self._source}, line {self._number + 1} is longer than {entry.LARGEST:,} characters, so this is no "
                "table of pages. Name its format with --format."
            )
        return line
