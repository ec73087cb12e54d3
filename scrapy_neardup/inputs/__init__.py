"""Records and pages from what people have on disk: feeds, tables, folders of HTML, archives of the web.

Everything is read as a stream, one record at a time. What cannot be read is never left out in silence: a record that is
malformed is named among the others, and where nothing can be read any more an error names the place. A new format is a
file beside this one and a line in ``FORMATS``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import BinaryIO

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.inputs.csv_table import read_csv
from scrapy_neardup.inputs.documents import HTML, TEXT, read_html, read_text
from scrapy_neardup.inputs.entry import LARGEST, Entry, InputRecord, Malformed, Skipped
from scrapy_neardup.inputs.excel import read_excel
from scrapy_neardup.inputs.folder import read_folder
from scrapy_neardup.inputs.guard import reading
from scrapy_neardup.inputs.json_array import read_json
from scrapy_neardup.inputs.jsonl import read_jsonl
from scrapy_neardup.inputs.packed import PACKINGS, open_packed, packing_of, unpacked, unpacked_name
from scrapy_neardup.inputs.parquet import read_parquet
from scrapy_neardup.inputs.wacz import read_wacz
from scrapy_neardup.inputs.warc import read_warc
from scrapy_neardup.inputs.xml_items import read_xml

__all__ = ["FORMATS", "LARGEST", "STDIN", "Entry", "InputRecord", "Malformed", "Skipped", "format_of", "read_input"]

#: The name of standard input.
STDIN = "-"


@dataclass(frozen=True, slots=True)
class Format:
    """What reads a format from an unpacked file, which stays open, and the suffixes of such files."""

    read: Callable[[BinaryIO, str], Iterator[InputRecord]]
    suffixes: tuple[str, ...]


FORMATS: dict[str, Format] = {
    "jsonl": Format(read_jsonl, (".jsonl", ".jl", ".ndjson", ".jsonlines")),
    "json": Format(read_json, (".json",)),
    "csv": Format(read_csv, (".csv",)),
    "tsv": Format(partial(read_csv, delimiter="\t"), (".tsv",)),
    "xml": Format(read_xml, (".xml",)),
    "excel": Format(read_excel, (".xlsx", ".xlsm")),
    "parquet": Format(read_parquet, (".parquet",)),
    "html": Format(read_html, HTML),
    "text": Format(read_text, TEXT),
    "warc": Format(read_warc, (".warc",)),
    "wacz": Format(read_wacz, (".wacz",)),
}


def read_input(name: str, format: str = "") -> Iterator[InputRecord]:
    """The records of a file or folder, or of standard input (``-``), in their order, one at a time.

    ``format`` is one of ``FORMATS``; empty, it is known by the suffix of the name, before that of a packing, and
    standard input is JSON lines. Raises NearDupError if there is no such file, or from where on it cannot be read.
    """
    if name != STDIN and Path(name).is_dir():
        yield from read_folder(name, format)
    elif name == STDIN:
        raw, source = sys.stdin.buffer, "standard input"
        with reading(source), unpacked(raw, packing_of(raw)) as file:
            yield from FORMATS[format_of(name, format)].read(file, source)
    else:
        with reading(name):
            Path(name).stat()  # that it is not there is worse than that its suffix says nothing
            read = FORMATS[format_of(name, format)].read
            with open_packed(name) as file:
                yield from read(file, name)


def format_of(name: str, format: str = "") -> str:
    """The format of a file, by its name unless it is given; raises SettingsError if that is none.

    >>> format_of("crawl/feed.JL.gz"), format_of("-")
    ('jsonl', 'jsonl')
    """
    valid = ", ".join(FORMATS)
    if format:
        if format not in FORMATS:
            raise SettingsError(f"There is no format {format!r}; the formats are {valid}.")
        return format
    if name == STDIN:
        return "jsonl"
    suffix = PurePath(unpacked_name(name)).suffix.lower()
    for known, one in FORMATS.items():
        if suffix in one.suffixes:
            return known
    raise SettingsError(
        f"What {name} holds is not known by its name; say it with --format, one of {valid} ({', '.join(PACKINGS)} is "
        "unpacked by the name)."
    )
