"""Feeds as Scrapy writes them: JSON lines and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files import entry
from scrapy_neardup.files.entry import BOM, Entry, InputRecord, Malformed, Skipped, decode_utf8

#: How to make JSON lines of a list. jq loses a list that has no end, as a killed crawl leaves it.
_LINES = (
    "JSON lines have no limit. A feed of Scrapy, even an unfinished one: grep '^{' FILE | sed 's/,$//' > FILE.jsonl. "
    "Another list: jq -c '.[]' FILE > FILE.jsonl"
)
#: Names of JSON values that are no objects.
_KINDS = {list: "a list", str: "a string", int: "a number", float: "a number", bool: "true or false"}


def _make_entry(raw: bytes, source: str, number: int, unit: str, line: bytes = b"") -> InputRecord:
    """Parse an object. NaN and Infinity, which Python writes, are accepted. The encoding is never guessed."""
    try:
        value = json.loads(decode_utf8(raw))
    except json.JSONDecodeError as error:
        why = f"not JSON: {error.msg} at character {error.pos + 1}"
    except RecursionError:
        why = "JSON with lists or objects nested too deeply"
    except ValueError as error:
        why = str(error)
    else:
        if isinstance(value, dict):
            return Entry(source, number, unit, value, line)
        why = _describe(value)
    return Malformed(source, number, unit, why, line or raw)


def _describe(value: Any) -> str:
    return f"not an object but {_KINDS.get(type(value), 'null')}"


def _read_lines(file: BinaryIO, number: int) -> Iterator[tuple[int, bytes, str]]:
    """Yield the number of each line, the line, and why it is too long; then only its beginning is in memory."""
    while line := file.readline(entry.LARGEST):
        number += 1
        why = ""
        if len(line) == entry.LARGEST and not line.endswith(b"\n"):
            size, rest = len(line), b"-"
            while rest and not rest.endswith(b"\n"):
                rest = file.readline(1 << 16)
                size += len(rest)
            why = f"too long: {size:,} bytes with the line end; the first {len(line):,} bytes are kept"
        yield number, line.removeprefix(BOM) if number == 1 else line, why


def read_jsonl(
    file: BinaryIO, source: str, is_wanted: Callable[[int], bool] = lambda record: True, before: int = 0
) -> Iterator[InputRecord]:
    """Yield every line, malformed ones too. Blank lines are skipped but counted.

    ``is_wanted``: see ``read_input``. ``before``: lines that were read before.
    """
    record = 0
    for number, line, why in _read_lines(file, before):
        if not why and (not line or line.isspace()):
            continue
        if not is_wanted(record):
            yield Skipped(source, number, "line", "not wanted")
        elif why:
            yield Malformed(source, number, "line", why, line)
        else:
            yield _make_entry(line.strip(), source, number, "line", line.rstrip(b"\r\n"))
        record += 1


def read_json(file: BinaryIO, source: str) -> Iterator[InputRecord]:
    """Yield every element of a list, which must fit into memory.

    If the first line is an object, the file is JSON lines under another name. Raises NearDupError if the list is broken
    or too large.
    """
    most = 4 * entry.LARGEST
    number, first = 1, file.readline(most).removeprefix(BOM)
    while first and not first.strip():
        number, first = number + 1, file.readline(most)
    text = first.strip()
    line = first.rstrip(b"\r\n")
    if text.startswith(b"{") and isinstance(found := _make_entry(text, source, number, "line", line), Entry):
        yield found
        yield from read_jsonl(file, source, before=number)
        return
    raw = first + file.read(most)
    if len(raw) > most:
        raise NearDupError(f"{source} is a list of more than {most:,} bytes. {_LINES}")
    try:
        values = json.loads(decode_utf8(raw)) if raw.strip() else []
    except (ValueError, RecursionError) as error:
        raise NearDupError(
            f"{source} is no JSON in UTF-8 ({error}). Repair it, or give it the suffix of its format. {_LINES}"
        ) from None
    for number, value in enumerate(values if isinstance(values, list) else [values], 1):
        if isinstance(value, dict):
            yield Entry(source, number, "item", value)
        else:
            yield Malformed(source, number, "item", _describe(value), json.dumps(value).encode())
