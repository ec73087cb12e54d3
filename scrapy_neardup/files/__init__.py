"""Records and pages from files: feeds, tables, folders of HTML, web archives.

Every reader yields one record at a time, malformed ones too. If the rest of a file is unreadable, an error names the
place. A new format is a reader and a line in ``FORMATS``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePath
from typing import BinaryIO

from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.files import entry
from scrapy_neardup.files.archives import read_warc
from scrapy_neardup.files.compression import FAILURES, PACKINGS, open_packed, strip_packing
from scrapy_neardup.files.entry import BOM, LARGEST, Entry, InputRecord, Malformed, Skipped, decode_utf8, file_errors
from scrapy_neardup.files.feeds import read_json, read_jsonl
from scrapy_neardup.files.tables import read_csv, read_parquet

__all__ = ["FORMATS", "LARGEST", "STDIN", "Entry", "InputRecord", "Malformed", "Skipped", "find_format", "read_input"]

#: The name of standard input.
STDIN = "-"
HTML = (".html", ".htm", ".xhtml", ".shtml")
TEXT = (".txt",)


def _reader_of(kind: tuple[str, ...]) -> Callable[[BinaryIO, str], Iterator[InputRecord]]:
    return lambda file, source: iter([_read_page(file, source, 1, format_path(source), kind)])


def _read_page(file: BinaryIO, source: str, number: int, path: str, kind: tuple[str, ...]) -> InputRecord:
    """Return the one page of a file, HTML or a text in UTF-8; its field ``path`` names the file."""
    raw = file.read(entry.LARGEST + 1)
    if not raw:
        return Malformed(source, number, "", "an empty file")
    if len(raw) > entry.LARGEST:
        return Malformed(source, number, "", f"larger than {entry.LARGEST:,} bytes")
    if kind is HTML:
        return Entry(source, number, "", {"path": path}, html=raw)
    try:
        return Entry(source, number, "", {"path": path, "text": decode_utf8(raw.removeprefix(BOM))})
    except ValueError as error:
        return Malformed(source, number, "", str(error), raw)


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its reader, the suffixes of its files, and its description."""

    read: Callable[[BinaryIO, str], Iterator[InputRecord]]
    suffixes: tuple[str, ...]
    description: str


FORMATS: dict[str, Format] = {
    "jsonl": Format(read_jsonl, (".jsonl", ".jl", ".ndjson", ".jsonlines"), "JSON lines: each line is a record."),
    "json": Format(read_json, (".json",), "JSON: each element of one array is a record."),
    "csv": Format(
        read_csv,
        (".csv", ".tsv"),
        "CSV, also with semicolons or tabs: each row is a record. The first row holds the names of the fields.",
    ),
    "parquet": Format(read_parquet, (".parquet",), "Parquet: each row is a record."),
    "html": Format(_reader_of(HTML), HTML, "HTML: each file is a page."),
    "text": Format(_reader_of(TEXT), TEXT, "Plain text in UTF-8: each file is a page."),
    "warc": Format(read_warc, (".warc",), "Web archives: each HTML response with status 200 is a page."),
}

#: Cures for files of other kinds that hold pages.
_CURES = {
    ".xlsx": 'Save it in the program as "CSV UTF-8", and name that file.',
    ".wacz": "Unpack it (unzip FILE -d FOLDER), and name the files FOLDER/archive/*.warc.gz.",
}


def read_input(name: str, is_wanted: Callable[[int], bool] = lambda record: True) -> Iterator[InputRecord]:
    """Yield the records of a file, a folder or standard input (``-``).

    ``is_wanted``: whether the caller needs a record, by its number from 0. Another line of JSON lines is not parsed,
    and comes as Skipped; other formats read all records.

    The suffix decides the format (``.csv`` of ``feed.csv.gz``). Standard input is JSON lines. Raises NearDupError if
    the file does not exist or its rest is unreadable.
    """
    if name != STDIN and Path(name).is_dir():
        yield from read_folder(name)
    elif name == STDIN:
        with file_errors("standard input"):
            yield from read_jsonl(sys.stdin.buffer, "standard input")
    else:
        with file_errors(name):
            Path(name).stat()  # reports a missing file before an unknown suffix
            read = FORMATS[find_format(name)].read
            with open_packed(name) as file:
                yield from read_jsonl(file, name, is_wanted) if read is read_jsonl else read(file, name)


def find_format(name: str) -> str:
    """Return the format of a file. Raises SettingsError if its suffix is unknown.

    >>> find_format("crawl/feed.JL.gz")
    'jsonl'
    """
    suffix = PurePath(strip_packing(name)).suffix.lower()
    for known, one in FORMATS.items():
        if suffix in one.suffixes:
            return known
    if suffix in _CURES:
        raise SettingsError(f"{name} cannot be read. {_CURES[suffix]}")
    raise SettingsError(
        f"The name {name} does not show its format. Use one of the suffixes "
        f"{', '.join(suffix for one in FORMATS.values() for suffix in one.suffixes)}, and for a compressed file "
        f"another one of {', '.join(PACKINGS)} behind it."
    )


def format_path(path: str | os.PathLike[str]) -> str:
    r"""Return a path with slashes; bytes that are no UTF-8 become escapes.

    >>> format_path("pages/caf\udce9.html")
    'pages/caf\\xe9.html'
    """
    return PurePath(path).as_posix().encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def read_folder(name: str) -> Iterator[InputRecord]:
    """Yield the pages of a folder, plain or compressed: all HTML files, or if there are none all texts.

    Unreadable files are malformed. Raises NearDupError if there is no page.
    """
    for kind in HTML, TEXT:
        pages = _read_pages(Path(name), kind)
        if (first := next(pages, None)) is not None:
            yield from chain([first], pages)
            return
    raise NearDupError(f"{name} contains no HTML or .txt files. Name another folder, or the files.")


def _read_pages(root: Path, kind: tuple[str, ...]) -> Iterator[InputRecord]:
    for number, (path, error) in enumerate(_walk(root, kind), 1):
        source = format_path(path)
        try:
            if error is not None:
                raise error
            with open_packed(path) as file:
                yield _read_page(file, source, number, format_path(path.relative_to(root)), kind)
        except FAILURES as why:
            reason = getattr(why, "strerror", None) or why
            yield Malformed(source, number, "", f"cannot be read: {reason}")


def _walk(root: Path, suffixes: tuple[str, ...]) -> Iterator[tuple[Path, Exception | None]]:
    """Yield the files with one of the suffixes by folder and name, and unreadable folders with their error.

    Only one folder's names are in memory. Links are followed, but no folder is read twice.
    """
    errors, seen = list[OSError](), set[tuple[int, int]]()
    for folder, folders, names in os.walk(root, onerror=errors.append, followlinks=True):
        yield from ((Path(error.filename), error) for error in errors)
        errors.clear()
        stat = Path(folder).stat()
        if (stat.st_dev, stat.st_ino) in seen:
            folders.clear()
            continue
        seen.add((stat.st_dev, stat.st_ino))
        folders.sort()
        for path in (Path(folder, name) for name in sorted(names)):
            # A dangling link is named later as unreadable; a pipe would block for ever.
            if PurePath(strip_packing(path.name)).suffix.lower() in suffixes and (path.is_file() or not path.exists()):
                yield path, None
    yield from ((Path(error.filename), error) for error in errors)
