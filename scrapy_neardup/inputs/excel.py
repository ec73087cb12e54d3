"""Sheets of Excel, with the names of the columns in the first row of each."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import IO, Any, BinaryIO
from zipfile import ZipFile

from scrapy_neardup.inputs import entry
from scrapy_neardup.inputs.entry import Entry, InputRecord, Malformed
from scrapy_neardup.inputs.guard import guarded, library_errors
from scrapy_neardup.inputs.header import column_names
from scrapy_neardup.inputs.optional import library
from scrapy_neardup.inputs.packed import seekable
from scrapy_neardup.inputs.plain import plain

#: Bytes that are looked at in one piece.
_PART = 2**20


def read_excel(file: BinaryIO, source: str) -> Iterator[InputRecord]:
    """Every row of every sheet by its number, the header's being 1; rows without any value are passed over.

    A formula counts with the value that it had when the book was saved. Dates are strings in ISO 8601, empty cells are
    None.
    All distinct strings of the book are in memory, as the format keeps them apart from the sheets. Raises NearDupError
    if the book is broken, a cell is too large, or two columns have the same name.
    """
    openpyxl = library("openpyxl", "files", f"{source}: an Excel workbook")
    with seekable(file) as whole:
        with library_errors(source, "sheet"):
            _check_cells(whole)
        with library_errors(source, "sheet"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what it cannot keep of styles and validations is of no use here
            book = openpyxl.load_workbook(whole, read_only=True, data_only=True, keep_links=False)
        with closing(book):
            for sheet in book.worksheets:
                # Some programs write wrong dimensions, by which cells would be left out.
                sheet.reset_dimensions()
                yield from _rows(sheet, f"{source}, sheet {sheet.title}")


def _check_cells(book: BinaryIO) -> None:
    """Raise ValueError for a cell that is too large: the library would have all of it in memory, several times."""
    with ZipFile(book) as members:
        for name in members.namelist():
            if name.startswith("xl/") and name.endswith(".xml"):
                with members.open(name) as member:
                    _check_runs(member, name)
    book.seek(0)


def _check_runs(member: IO[bytes], name: str) -> None:
    run = 0
    while part := member.read(_PART):
        first = part.find(b"<")
        run += len(part) if first < 0 else first
        if run > entry.LARGEST:
            raise ValueError(f"a cell in {name} has more than {entry.LARGEST:,} bytes")
        if first >= 0:
            run = len(part) - part.rindex(b"<")


def _rows(sheet: Any, source: str) -> Iterator[InputRecord]:
    names: list[str] = []
    rows: Iterator[Sequence[Any]] = guarded(sheet.iter_rows(values_only=True), source, "row")
    for number, row in enumerate(rows, 1):
        values = [plain(value) for value in row]
        while values and values[-1] in (None, ""):
            values.pop()
        if not values:
            continue
        if not names:
            names = column_names(values, source)
        elif len(values) > len(names):
            why = f"a value after column {len(names)}, the last column with a name"
            yield Malformed(source, number, "row", why, "\t".join(map(_text, values)).encode())
        else:
            values += [None] * (len(names) - len(values))
            yield Entry(source, number, "row", dict(zip(names, values, strict=True)))


def _text(value: Any) -> str:
    return "" if value is None else str(value)
