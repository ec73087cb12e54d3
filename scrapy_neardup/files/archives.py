"""Web archives: WARC (ISO 28500)."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, BinaryIO

from scrapy_neardup.files import entry
from scrapy_neardup.files.compression import FAILURES, NO_ZSTD, zstd
from scrapy_neardup.files.entry import Entry, InputRecord, Malformed, Skipped, guard_records, import_library

#: Bytes that text in an 8- or 16-bit encoding lacks, and that compressed data has nearly everywhere.
_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


class _Broken(Exception):
    """A body cannot be decoded."""


_FAILURES: tuple[type[Exception], ...] = (_Broken, *FAILURES)


def unpack_body(body: bytes, encoding: str) -> bytes:
    """Decode a body by its header Content-Encoding (RFC 9110, section 8.4). Raises _Broken with the reason.

    A body of text is not decoded, because some archives decode a page and keep its header. The result has at most
    ``entry.LARGEST`` bytes.
    """
    for name in reversed([one.strip().lower() for one in encoding.split(",")]):
        if name in ("", "identity"):
            continue
        try:
            if name not in _UNPACK:
                raise _Broken("this encoding is not supported")
            body = _UNPACK[name](body)
        except _FAILURES as error:
            if not _NO_TEXT.search(body[:1000]):
                return body
            raise _Broken(f"packed as {name}: {error}") from None
        if len(body) > entry.LARGEST:
            raise _Broken(f"larger than {entry.LARGEST:,} bytes")
    return body


def _unpack_stream(body: bytes, unpacker: Any) -> bytes:
    """Decode one stream, and ignore what follows, unless it is another stream of gzip."""
    found: bytes = unpacker.decompress(body, entry.LARGEST + 1)
    if len(found) <= entry.LARGEST:
        if not unpacker.eof:
            raise _Broken("the data ends too early")
        if unpacker.unused_data.startswith(b"\x1f\x8b"):
            raise _Broken("there are several streams")
    return found


def _gzip(body: bytes) -> bytes:
    return _unpack_stream(body, zlib.decompressobj(32 + zlib.MAX_WBITS))


def _deflate(body: bytes) -> bytes:
    """Decode with the header of zlib, or without, as some servers send it."""
    try:
        return _unpack_stream(body, zlib.decompressobj())
    except zlib.error:
        return _unpack_stream(body, zlib.decompressobj(-zlib.MAX_WBITS))


def _zstd(body: bytes) -> bytes:
    if not zstd:
        raise _Broken(NO_ZSTD)
    return _unpack_stream(body, zstd.ZstdDecompressor())


def _brotli(body: bytes) -> bytes:
    try:
        brotli = import_module("brotli")
    except ImportError:
        raise _Broken("this needs brotli; run: pip install 'scrapy-neardup[files]'") from None
    unpacker = brotli.Decompressor()
    try:
        found: bytes = unpacker.process(body, output_buffer_limit=entry.LARGEST + 1)
    except brotli.error as error:
        raise _Broken(error) from None
    if len(found) <= entry.LARGEST and not unpacker.is_finished():
        raise _Broken("the data ends too early")
    return found


_UNPACK = {"gzip": _gzip, "x-gzip": _gzip, "deflate": _deflate, "br": _brotli, "zstd": _zstd}

_HTML = ("text/html", "application/xhtml+xml")
_BREAKS_OFF = "the file ends within the next record"


def read_warc(file: BinaryIO, source: str) -> Iterator[InputRecord]:
    """Yield every record: a page (HTML with status 200), Skipped, or Malformed.

    ``file`` is uncompressed already. Raises NearDupError where the archive is broken.
    """
    library = import_library("warcio.archiveiterator", "files", f"{source}: WARC")
    archive = library.WARCIterator(_Stream(file), no_record_parse=True)
    archive.INC_RECORD = ""  # the library would write it to standard error; here it is an error
    yield from guard_records(_records(archive, source), source, "record")


def _records(archive: Any, source: str) -> Iterator[InputRecord]:
    for number, record in enumerate(archive, 1):
        length = record.rec_headers.get_header("Content-Length") or ""
        if not length.isdigit():  # the library would read nothing, or all the rest
            raise ValueError("the next record has no Content-Length")
        found = _read_record(record, source, number)
        archive.read_to_end()
        if record.raw_stream.limit:
            raise EOFError(_BREAKS_OFF)
        if archive.err_count:  # the reader only counts this, and reads on somewhere
            raise ValueError("no record follows the next one; the Content-Length of that one may be wrong")
        yield found


def _read_record(record: Any, source: str, number: int) -> InputRecord:
    place = source, number, "record"
    head = record.rec_headers
    content_type = head.get_header("Content-Type") or ""
    if record.rec_type not in ("response", "resource"):
        return Skipped(*place, f"a {record.rec_type}" if record.rec_type else "a record without a type")
    if record.rec_type == "response":
        if (mime := _mime(content_type)) not in ("application/http", ""):
            return Skipped(*place, mime)
        if not record.length:
            return Skipped(*place, "an empty response")
        parser = import_library("warcio.statusandheaders", "files", "WARC").StatusAndHeadersParser([], verify=False)
        try:
            record.http_headers = http = parser.parse(record.raw_stream)
        except EOFError:
            raise EOFError(_BREAKS_OFF) from None
        status = http.get_statuscode()
        if not status.isdigit():
            return Malformed(*place, "no HTTP response")
        if status != "200":
            return Skipped(*place, f"status {status}")
        content_type = http.get_header("Content-Type") or ""
    if (mime := _mime(content_type)) not in (*_HTML, ""):
        return Skipped(*place, mime)
    try:
        body = _read_body(record)
    except _Broken as error:
        return Malformed(*place, str(error))
    if not body:
        return Skipped(*place, "an empty page")
    known = {"url": head.get_header("WARC-Target-URI"), "date": head.get_header("WARC-Date")}
    return Entry(*place, {name: value for name, value in known.items() if value}, html=body, content_type=content_type)


def _read_body(record: Any) -> bytes:
    """Return the decoded page. Raises _Broken with the reason."""
    if record.length > entry.LARGEST:
        raise _Broken(f"larger than {entry.LARGEST:,} bytes")
    http = record.http_headers
    if http is None:
        whole: bytes = record.raw_stream.read()
        return whole
    stream = record.raw_stream
    if (http.get_header("Transfer-Encoding") or "").strip().lower() == "chunked":
        stream = import_library("warcio.bufferedreaders", "files", "WARC").ChunkedDataReader(stream)
    # The library's own reader lacks today's brotli, and takes a broken stream for the end.
    return unpack_body(stream.read(), http.get_header("Content-Encoding") or "")


def _mime(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


class _Stream:
    """A file that raises an error where its compression breaks off. The WARC reader would take that for the end."""

    def __init__(self, file: BinaryIO) -> None:
        # read1 returns the bytes that it has decoded before it raises.
        self._read: Callable[[int], bytes] = getattr(file, "read1", file.read)

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes. Raises OSError where EOFError would mean the end."""
        try:
            return self._read(size)
        except EOFError as error:
            raise OSError(str(error)) from None
