"""The same five records as files of every format."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scrapy.exporters import BaseItemExporter, CsvItemExporter, JsonItemExporter, JsonLinesItemExporter
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files import Entry, InputRecord, Malformed, Skipped, read_input
from scrapy_neardup.files.compression import zstd
from scrapy_neardup.files.writers import WRITERS

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd.compress,
}
RECORDS: list[dict[str, Any]] = [
    {"url": "https://a.example/1", "title": "渡口恢复通航", "text": "河水退了，\n渡船今早又开。"},
    {
        "url": "https://a.example/2",
        "title": 'The "Heron" is back',
        "text": "She said: 'No,\nnot today', and left; \\o/",
    },
    {
        "url": "https://b.example/3?a=1&b=<2>",
        "title": "灯塔 🚢 亮了",
        "text": '<p class="x">A lamp & a horn</p>\n\n,\t;',
    },
    {"url": "https://b.example/4", "title": "\u200fשלום\u200e and welcome", "text": 'ends in a quote"'},
    {"url": "https://c.example/5", "title": "", "text": " spaces around \u2028 and a rare line end "},
]
FORMATS = {"jsonl": "feed.jsonl", "json": "feed.json", "csv": "feed.csv", "parquet": "table.parquet"}


def packed(format: str, records: Sequence[Mapping[str, Any]] = RECORDS) -> bytes:
    """The bytes of a file of that format, not packed further."""
    file = io.BytesIO()
    if format in ("jsonl", "json", "csv"):
        export(EXPORTERS[format](file), records)
        return file.getvalue()
    writer = WRITERS[format](file, "")
    for record in records:
        writer.write(record, None)
    writer.close()
    return file.getvalue()


EXPORTERS: dict[str, Callable[[io.BytesIO], BaseItemExporter]] = {
    "jsonl": lambda file: JsonLinesItemExporter(file, encoding="utf-8"),
    "json": lambda file: JsonItemExporter(file, indent=0),
    "csv": CsvItemExporter,
}


def export(exporter: BaseItemExporter, records: Iterable[Mapping[str, Any]]) -> None:
    exporter.start_exporting()
    for record in records:
        exporter.export_item(dict(record))
    exporter.finish_exporting()


def page(record: Mapping[str, Any]) -> bytes:
    """A page of HTML that says what a record says."""
    return f"<html><title>{record['title']}</title><p>{record['text']}</p></html>".encode()


class Archive:
    """A WARC that is put together record by record."""

    def __init__(self, *, gzipped: bool = False) -> None:
        self.file = io.BytesIO()
        self.writer = WARCWriter(self.file, gzip=gzipped)

    def add(
        self,
        body: bytes,
        *,
        url: str = "https://a.example/",
        kind: str = "response",
        status: str = "200 OK",
        headers: Iterable[tuple[str, str]] = (("Content-Type", "text/html; charset=utf-8"),),
        **own: str,
    ) -> Archive:
        """A record more; ``own`` are headers of the record itself."""
        http = None
        if kind in ("response", "request", "revisit"):
            first, protocol = ("/ HTTP/1.1", "GET") if kind == "request" else (status, "HTTP/1.1")
            http = StatusAndHeaders(first, list(headers), protocol=protocol)
        record = self.writer.create_warc_record(
            url,
            kind,
            payload=io.BytesIO(body),
            length=len(body),
            http_headers=http,
            warc_content_type=own.pop("content_type", ""),
            warc_headers_dict={"WARC-Date": "2024-05-01T08:00:00Z", **own},
        )
        self.writer.write_record(record)
        return self

    def bytes(self) -> bytes:
        return self.file.getvalue()


def archive(*, gzipped: bool = False) -> bytes:
    """The five records as pages, with a request and an image among them."""
    made = Archive(gzipped=gzipped)
    for record in RECORDS:
        made.add(b"", url=record["url"], kind="request", headers=())
        made.add(page(record), url=record["url"])
    return made.add(b"\x89PNG", headers=[("Content-Type", "image/png")]).bytes()


def read(path: Path | str) -> list[InputRecord]:
    return list(read_input(str(path)))


def read_until_error(path: Path | str) -> tuple[list[InputRecord], str]:
    """Read until the error that must come; return the records before it, and its message."""
    found = []
    records = read_input(str(path))
    try:
        while True:
            found.append(next(records))
    except NearDupError as error:
        return found, str(error)


def fields(records: Iterable[InputRecord]) -> list[dict[str, Any]]:
    """The fields of the entries; all must be entries."""
    found = []
    for record in records:
        assert isinstance(record, Entry), record
        found.append(dict(record.fields))
    return found


def summaries(records: Iterable[InputRecord]) -> list[tuple[Any, ...]]:
    """The number and fields of entries, the number and reason of all others."""
    found: list[tuple[Any, ...]] = []
    for record in records:
        if isinstance(record, Entry):
            found.append((record.number, record.fields))
        elif isinstance(record, Malformed):
            found.append((record.number, "malformed", record.why, record.raw))
        else:
            assert isinstance(record, Skipped)
            found.append((record.number, "skipped", record.why))
    return found
