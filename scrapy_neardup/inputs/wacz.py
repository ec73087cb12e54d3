"""Archives of pages in WACZ: a zip with archives in WARC."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO
from zipfile import ZipFile

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.inputs.entry import InputRecord
from scrapy_neardup.inputs.guard import library_errors
from scrapy_neardup.inputs.packed import packing, seekable, unpacked, unpacked_name
from scrapy_neardup.inputs.warc import read_warc


def read_wacz(file: BinaryIO, source: str) -> Iterator[InputRecord]:
    """The records of every archive in it, numbered in each; raises NearDupError if zip or archive is broken."""
    with seekable(file) as whole:
        with library_errors(source, "archive"):
            book = ZipFile(whole)
        with book:
            names = [name for name in book.namelist() if name.startswith("archive/") and _is_warc(name)]
            if not names:
                raise NearDupError(
                    f"{source} is no WACZ: it contains no archive/….warc.gz. Name its format with --format."
                )
            for number, name in enumerate(names):
                with library_errors(source, "archive", number):
                    member = book.open(name)
                with member, unpacked(member, packing(name)) as archive:  # type: ignore[arg-type]
                    yield from read_warc(archive, f"{source}, {name}")


def _is_warc(name: str) -> bool:
    return unpacked_name(name).lower().endswith(".warc")
