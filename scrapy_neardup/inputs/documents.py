"""Files that are one document each: HTML and plain text."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import PurePath
from typing import BinaryIO

from scrapy_neardup.inputs import entry
from scrapy_neardup.inputs.entry import Entry, InputRecord, Malformed
from scrapy_neardup.inputs.utf8 import BOM, decode_utf8

HTML = (".html", ".htm", ".xhtml", ".shtml")
TEXT = (".txt",)


def read_html(file: BinaryIO, source: str) -> Iterator[InputRecord]:
    """The one page of a file, as bytes."""
    yield html_page(file, source, 1, readable(source))


def read_text(file: BinaryIO, source: str) -> Iterator[InputRecord]:
    """The one text of a file, in UTF-8."""
    yield text_page(file, source, 1, readable(source))


def html_page(file: BinaryIO, source: str, number: int, path: str) -> InputRecord:
    """A page with its bytes and, as its field ``path``, where it was found."""
    raw = file.read(entry.LARGEST + 1)
    if why := _wrong_size(raw):
        return Malformed(source, number, "", why)
    return Entry(source, number, "", {"path": path}, html=raw)


def text_page(file: BinaryIO, source: str, number: int, path: str) -> InputRecord:
    """A text as the field ``text``."""
    raw = file.read(entry.LARGEST + 1)
    if why := _wrong_size(raw):
        return Malformed(source, number, "", why)
    try:
        return Entry(source, number, "", {"path": path, "text": decode_utf8(raw.removeprefix(BOM))})
    except ValueError as error:
        return Malformed(source, number, "", str(error), raw)


def readable(path: str | PathLike[str]) -> str:
    """A path with slashes, in which bytes that are no UTF-8 are written as escapes.

    >>> readable("pages/caf\\udce9.html")
    'pages/caf\\\\xe9.html'
    """
    return PurePath(path).as_posix().encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _wrong_size(raw: bytes) -> str:
    if not raw:
        return "an empty file"
    return f"larger than {entry.LARGEST:,} bytes" if len(raw) > entry.LARGEST else ""
