"""JSON lines, JSON arrays and concatenated JSON."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files import entry
from scrapy_neardup.files.compression import open_packed
from scrapy_neardup.files.entry import BOM, Entry, InputRecord, Malformed, broken, decode_utf8, reading

#: Names of JSON values that are no objects.
_KINDS = {
    list: "a list",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


def parse_object(raw: bytes) -> dict[str, Any]:
    """Parse an object. Raises ValueError that names what it is instead.

    NaN and Infinity, which Python writes, are accepted. The encoding is never guessed.

    >>> parse_object(b'{"title": "Ferry"}')
    {'title': 'Ferry'}
    >>> parse_object(b'[1]')
    Traceback (most recent call last):
    ValueError: not an object but a list
    """
    try:
        found = json.loads(decode_utf8(raw))
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise ValueError("JSON with lists or objects nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError(f"not an object but {_KINDS[type(found)]}")
    return found


class Rejoined:
    """A stream of ``start`` and then ``rest``. It is read-only, cannot seek, and does not close ``rest``."""

    def __init__(self, start: bytes, rest: BinaryIO) -> None:
        self._start = io.BytesIO(start)
        self._rest = rest

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, perhaps fewer; none at the end."""
        return self._start.read(size) or self._rest.read(size)

    def readline(self, size: int) -> bytes:
        """Return a line with its end, or its first ``size`` bytes."""
        line = self._start.readline(size)
        if line.endswith(b"\n") or len(line) == size:
            return line
        return line + self._rest.readline(size - len(line))


class ByteLines(Protocol):
    """A stream of lines."""

    def readline(self, size: int, /) -> bytes:
        """Return a line with its end, or its first ``size`` bytes."""


def read_jsonl_file(path: Path) -> Iterator[InputRecord]:
    """Yield every line of a file, plain or compressed. Raises NearDupError where it cannot be read on."""
    with reading(str(path)), open_packed(path) as file:
        yield from read_jsonl(file, str(path))


def read_jsonl(file: ByteLines, source: str) -> Iterator[InputRecord]:
    """Yield every line, malformed ones too. Blank lines are skipped but counted."""
    number = 0
    while line := file.readline(entry.LARGEST):
        number += 1
        whole = line.endswith(b"\n") or len(line) < entry.LARGEST
        if number == 1:
            line = line.removeprefix(BOM)
        if not whole:
            yield Malformed(source, number, "line", _too_long(file, len(line)), line)
        elif text := line.strip():
            line = line.rstrip(b"\r\n")
            try:
                yield Entry(source, number, "line", parse_object(text), line)
            except ValueError as error:
                yield Malformed(source, number, "line", str(error), line)


def _too_long(file: ByteLines, kept: int) -> str:
    """Read a line that is too long to its end, and report it."""
    size = kept
    while rest := file.readline(1 << 16):
        size += len(rest)
        if rest.endswith(b"\n"):
            break
    return f"too long: {size:,} bytes with the line end; the first {kept:,} bytes are kept"


# An array is cut into elements by brackets and quotation marks, and each element is parsed by itself. Stream parsers
# (ijson 3.6) end at the first malformed element, lose half a surrogate pair, and need unbounded memory for nested
# lists. A crawl that ran twice into one file leaves two lists; both are read.


_CHUNK = 1 << 16
#: A string or a mark. A single quotation mark begins a string whose end is not read yet.
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|["{}\[\],]', re.DOTALL)
_QUOTE, _COMMA, _SQUARE, _CURLY = b'",[}'
_OPEN, _CLOSE = b"[{", b"]}"


def read_json(file: BinaryIO, source: str) -> Iterator[InputRecord]:
    """Yield every element. Raises NearDupError where elements cannot be told apart.

    If the first line is an object, the file is JSON lines under another name.
    """
    start, mark = _beginning(file)
    if mark not in (b"[", b"{", b""):
        raise NearDupError(
            f"{source} is no UTF-8 JSON: it starts neither with [ nor with {{. Convert the file, or name its format "
            "with --format."
        )
    if mark == b"{":
        start += file.readline(entry.LARGEST)
        if _is_object(start.removeprefix(BOM).lstrip().partition(b"\n")[0]):
            yield from read_jsonl(Rejoined(start, file), source)
            return
    cutter = _Cutter(Rejoined(start.removeprefix(BOM), file), source)
    for number, raw in enumerate(cutter.elements(), 1):
        yield _record(raw, source, number)


def _record(raw: bytes, source: str, number: int) -> InputRecord:
    try:
        return Entry(source, number, "item", parse_object(raw))
    except ValueError as error:
        return Malformed(source, number, "item", str(error) if raw else "nothing between two commas", raw)


def _beginning(file: BinaryIO) -> tuple[bytes, bytes]:
    """Return the file up to its first character that is no space, and that character."""
    start = bytearray(file.read(len(BOM)))
    mark = start.removeprefix(BOM).strip()
    while not mark and (more := file.read(1)):
        start += more
        mark = bytearray(more.strip())
    return bytes(start), bytes(mark[:1])


def _is_object(line: bytes) -> bool:
    try:
        parse_object(line)
    except ValueError:
        return False
    return True


class _Cutter:
    """Cuts a stream into elements. It holds one element and a chunk."""

    def __init__(self, file: Rejoined, source: str) -> None:
        self._file, self._source = file, source
        self._buffer = b""
        self._start = 0  # of what has not been cut off yet
        self._at = 0  # the end of the last token
        self._count = 0

    def elements(self) -> Iterator[bytes]:
        """Yield the bytes of each element, without surrounding space."""
        depth, listed, after_comma = 0, False, False
        while mark := self._mark():
            if mark in _OPEN:
                if depth == 0:
                    self._refuse(self._cut(self._at - 1).strip(b","))
                    listed, after_comma = mark == _SQUARE, False
                    self._start = self._at - (not listed)
                depth += 1
            elif depth == 1 and listed and mark == _COMMA:
                yield self._counted(self._cut(self._at - 1))
                after_comma = True
            elif depth and mark in _CLOSE and not (depth == 1 and listed and mark == _CURLY):
                depth -= 1
                if depth == 0 and ((last := self._cut(self._at - listed)) or after_comma):
                    yield self._counted(last)
        rest = self._cut(len(self._buffer))
        if not depth:
            self._refuse(rest)
            return
        if depth == 1 and listed and rest:
            yield self._counted(rest)
        raise self._broken("the file ends before its last bracket, as after a killed crawl")

    def _mark(self) -> int:
        """Return the next bracket, comma or quotation mark, which ends at ``_at``; 0 at the end."""
        while True:
            token = _TOKEN.search(self._buffer, self._at)
            if token is not None:
                mark = self._buffer[token.start()]
                if mark != _QUOTE or token.end() - token.start() > 1:
                    self._at = token.end()
                    return mark
            self._at = token.start() if token else len(self._buffer)
            if not self._more():
                return 0

    def _more(self) -> bool:
        """Read on, twice as much each time; return False at the end."""
        kept = self._buffer[self._start :]
        if len(kept) > entry.LARGEST:
            raise self._broken(f"an item has more than {entry.LARGEST:,} bytes; a quotation mark may be missing")
        more = self._file.read(max(_CHUNK, len(kept)))
        self._buffer = kept + more
        self._at -= self._start
        self._start = 0
        return bool(more)

    def _cut(self, end: int) -> bytes:
        """Return the bytes up to ``end``; the next element begins after the last token."""
        found = self._buffer[self._start : end].strip()
        self._start = self._at
        return found

    def _counted(self, element: bytes) -> bytes:
        self._count += 1
        return element

    def _refuse(self, outside: bytes) -> None:
        if outside:
            raise self._broken(f"{outside[:20].decode('utf-8', 'replace')!r} is outside the list of items")

    def _broken(self, why: str) -> NearDupError:
        return broken(self._source, "item", self._count, why)
