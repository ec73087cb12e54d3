"""Archives of pages in WARC (ISO 28500): the pages are responses with the status 200 that are HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from scrapy_neardup.inputs import entry
from scrapy_neardup.inputs.content import unpack_body
from scrapy_neardup.inputs.entry import Entry, InputRecord, Malformed, Skipped
from scrapy_neardup.inputs.guard import guarded
from scrapy_neardup.inputs.optional import library

_HTML = ("text/html", "application/xhtml+xml")
_BREAKS_OFF = "the file ends within the next record"


def read_warc(file: BinaryIO, source: str) -> Iterator[InputRecord]:
    """Every record: a page, one that is none (skipped), or a page that cannot be unpacked (malformed).

    ``file`` is unpacked already: whether each record was packed by itself does not matter then. Raises NearDupError
    after the last record before a place where the archive is broken.
    """
    archive = library("warcio.archiveiterator", "files", f"{source}: WARC").WARCIterator(
        _Stream(file), no_record_parse=True
    )
    archive.INC_RECORD = ""  # is said on standard error otherwise; here it is an error
    yield from guarded(_records(archive, source), source, "record")


def _records(archive: Any, source: str) -> Iterator[InputRecord]:
    for number, record in enumerate(archive, 1):
        if not (record.rec_headers.get_header("Content-Length") or "").isdigit():  # taken for 0, or for all the rest
            raise ValueError("the next record has no Content-Length")
        found = _found(record, source, number)
        archive.read_to_end()
        if record.raw_stream.limit:
            raise EOFError(_BREAKS_OFF)
        if archive.err_count:  # the reader only counts this, and reads on somewhere
            raise ValueError("no record follows the next one; the Content-Length of that one may be wrong")
        yield found


def _found(record: Any, source: str, number: int) -> InputRecord:
    place = source, number, "record"
    head = record.rec_headers
    content_type = head.get_header("Content-Type") or ""
    if record.rec_type not in ("response", "resource"):
        return Skipped(*place, f"a {record.rec_type}" if record.rec_type else "a record without a type")
    if record.rec_type == "response":
        if _mime(content_type) not in ("application/http", ""):
            return Skipped(*place, _mime(content_type))
        if not record.length:
            return Skipped(*place, "an empty response")
        record.http_headers = http = _http(record.raw_stream)
        status = http.get_statuscode()
        if not status.isdigit():
            return Malformed(*place, "no HTTP response")
        if status != "200":
            return Skipped(*place, f"status {status}")
        content_type = http.get_header("Content-Type") or ""
    if _mime(content_type) not in (*_HTML, ""):
        return Skipped(*place, _mime(content_type))
    body, why = _body(record)
    if why:
        return Malformed(*place, why, body)
    if not body:
        return Skipped(*place, "an empty page")
    known = {"url": head.get_header("WARC-Target-URI"), "date": head.get_header("WARC-Date")}
    return Entry(*place, {name: value for name, value in known.items() if value}, html=body, content_type=content_type)


def _http(stream: Any) -> Any:
    """The head of a response, which is read from the stream."""
    parser = library("warcio.statusandheaders", "files", "WARC").StatusAndHeadersParser([], verify=False)
    try:
        return parser.parse(stream)
    except EOFError:
        raise EOFError(_BREAKS_OFF) from None


def _body(record: Any) -> tuple[bytes, str]:
    """The page without the encodings of HTTP, and why it is none, if so."""
    if record.length > entry.LARGEST:
        return b"", f"larger than {entry.LARGEST:,} bytes"
    http = record.http_headers
    if http is None:
        return record.raw_stream.read(), ""
    stream = record.raw_stream
    if (http.get_header("Transfer-Encoding") or "").strip().lower() == "chunked":
        stream = library("warcio.bufferedreaders", "files", "WARC").ChunkedDataReader(stream)
    # The reader of the library cannot use today's brotli, and takes what is broken for the end.
    return unpack_body(stream.read(), http.get_header("Content-Encoding") or "")


def _mime(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


class _Stream:
    """A file of which the reader does not take the end of a packing that breaks off for that of the archive."""

    def __init__(self, file: BinaryIO) -> None:
        # What is unpacked already is given before the error that comes next.
        self._read: Callable[[int], bytes] = getattr(file, "read1", file.read)

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes; raises OSError where EOFError would be taken for the end."""
        try:
            return self._read(size)
        except EOFError as error:
            raise OSError(str(error)) from None
