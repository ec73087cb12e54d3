"""Records and pages from files: feeds, tables, folders of HTML, web archives.

Every reader yields one record at a time, malformed ones too. If the rest of a file is unreadable, an error names the
place. A new format is a reader and a line in ``FORMATS``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import BinaryIO

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.files.archives import read_wacz, read_warc
from scrapy_neardup.files.compression import PACKINGS, detect_packing, open_packed, strip_packing, unpack
from scrapy_neardup.files.entry import LARGEST, Entry, InputRecord, Malformed, Skipped, file_errors
from scrapy_neardup.files.feeds import read_json, read_jsonl, read_xml
from scrapy_neardup.files.folders import HTML, TEXT, read_folder, read_html, read_text
from scrapy_neardup.files.tables import read_csv, read_excel, read_parquet

__all__ = ["FORMATS", "LARGEST", "STDIN", "Entry", "InputRecord", "Malformed", "Skipped", "find_format", "read_input"]

#: The name of standard input.
STDIN = "-"


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its reader, the suffixes of its files, and what a record is called."""

    read: Callable[[BinaryIO, str], Iterator[InputRecord]]
    suffixes: tuple[str, ...]
    description: str


FORMATS: dict[str, Format] = {
    "jsonl": Format(read_jsonl, (".jsonl", ".jl", ".ndjson", ".jsonlines"), "JSON lines: each line is a record."),
    "json": Format(read_json, (".json",), "JSON: each element of one array is a record."),
    "csv": Format(read_csv, (".csv",), "CSV: each row is a record. The first row holds the names of the fields."),
    "tsv": Format(partial(read_csv, delimiter="\t"), (".tsv",), "TSV: the same with tabs."),
    "xml": Format(read_xml, (".xml",), "XML in the form of Scrapy's feeds: each child of the root is a record."),
    "excel": Format(
        read_excel,
        (".xlsx", ".xlsm"),
        "Excel: each row of each sheet is a record. The first row of a sheet holds the names of the fields.",
    ),
    "parquet": Format(read_parquet, (".parquet",), "Parquet: each row is a record."),
    "html": Format(read_html, HTML, "HTML: each file is a page."),
    "text": Format(read_text, TEXT, "Plain text in UTF-8: each file is a page."),
    "warc": Format(read_warc, (".warc",), "Web archives: each HTML response with status 200 is a page."),
    "wacz": Format(read_wacz, (".wacz",), "Packed web archives: the pages of every archive inside."),
}


def read_input(name: str, format: str = "") -> Iterator[InputRecord]:
    """Yield the records of a file, a folder or standard input (``-``).

    ``format`` is one of ``FORMATS``. By default the suffix decides (``.csv`` of ``feed.csv.gz``), and standard input is
    JSON lines. Raises NearDupError if the file does not exist or its rest is unreadable.
    """
    if name != STDIN and Path(name).is_dir():
        yield from read_folder(name, format)
    elif name == STDIN:
        raw, source = sys.stdin.buffer, "standard input"
        with file_errors(source), unpack(raw, detect_packing(raw)) as file:
            yield from FORMATS[find_format(name, format)].read(file, source)
    else:
        with file_errors(name):
            Path(name).stat()  # reports a missing file before an unknown suffix
            read = FORMATS[find_format(name, format)].read
            with open_packed(name) as file:
                yield from read(file, name)


def find_format(name: str, format: str = "") -> str:
    """Return the format of a file. Raises SettingsError.

    >>> find_format("crawl/feed.JL.gz"), find_format("-")
    ('jsonl', 'jsonl')
    """
    valid = ", ".join(FORMATS)
    if format:
        if format not in FORMATS:
            raise SettingsError(f"There is no format {format!r}. Use one of: {valid}.")
        return format
    if name == STDIN:
        return "jsonl"
    suffix = PurePath(strip_packing(name)).suffix.lower()
    for known, one in FORMATS.items():
        if suffix in one.suffixes:
            return known
    raise SettingsError(
        f"The name {name} does not show its format. Add --format with one of: {valid}. (Names that end in "
        f"{', '.join(PACKINGS)} are unpacked first.)"
    )
