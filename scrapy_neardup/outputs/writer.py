"""The interface of an output format, and JSON lines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import IO, Any

from scrapy.utils.serialize import ScrapyJSONEncoder

# ----------------------------------------------------------------------------------------------------------------------
# What every format of output has in common.


#: A verdict as plain data, see ``Verdict.as_tag``.
Tag = Mapping[str, Any]

_ENCODER = ScrapyJSONEncoder(ensure_ascii=False, default=str)
_ASCII = ScrapyJSONEncoder(ensure_ascii=True, default=str)


class Writer(ABC):
    """Writes records, one at a time; ``close`` ends what was begun, but leaves the file open.

    ``for_spreadsheet``: cells of a table that a spreadsheet would run as formulas are to be written as texts, where the
    format cannot say itself that they are; ``formulas``: how many there were.
    """

    for_spreadsheet = False
    formulas = 0

    def __init__(self, file: IO[bytes], tag_field: str) -> None:
        """``tag_field``: under what name a record carries its verdict."""
        self._file = file
        self._tag_field = tag_field

    @abstractmethod
    def write(self, fields: Mapping[str, Any], tag: Tag | None, line: bytes = b"") -> None:
        """Write a record, with its verdict if there is a ``tag``; ``line`` is the JSON that it came as, if it did.

        Raises NearDupError for a record that the format cannot hold.
        """

    @abstractmethod
    def close(self) -> None:
        """Write what belongs at the end."""

    def discard(self) -> None:  # noqa: B027  # most hold nothing but the file
        """Let go of everything after an error: what was written does not count."""


def as_json(value: Any) -> bytes:
    """JSON in UTF-8; where the text is none (half a surrogate pair), in ASCII. Dates and the like become strings."""
    try:
        return _ENCODER.encode(value).encode()
    except UnicodeEncodeError:
        return _ASCII.encode(value).encode()


def with_tag(fields: Mapping[str, Any], tag: Tag | None, tag_field: str) -> dict[str, Any]:
    """The record with its verdict, if it is to have one."""
    return dict(fields) if tag is None else {**fields, tag_field: dict(tag)}


def as_cells(fields: Mapping[str, Any], tag: Tag | None, tag_field: str) -> dict[str, Any]:
    """A record as one row of a table: a column for each part of its verdict; lists and the like as JSON.

    >>> as_cells({"id": 7, "tags": ["a"]}, {"verdict": "unique", "shared": []}, "neardup")
    {'id': 7, 'tags': '["a"]', 'neardup.verdict': 'unique', 'neardup.shared': '[]'}
    """
    columns = {**fields, **{f"{tag_field}.{name}": value for name, value in (tag or {}).items()}}
    return {name: _cell(value) for name, value in columns.items()}


def _cell(value: Any) -> Any:
    if isinstance(value, (Mapping, list, tuple)):
        return as_json(value).decode()
    return "" if value is None else value


# ----------------------------------------------------------------------------------------------------------------------
# JSON lines: a line that was read is written as it stood.


class JsonLinesWriter(Writer):
    """One JSON object a line."""

    def __init__(self, file: IO[bytes], tag_field: str) -> None:
        super().__init__(file, tag_field)
        self._name = as_json(tag_field) + b": "

    def write(self, fields: Mapping[str, Any], tag: Tag | None, line: bytes = b"") -> None:
        """Numbers, escapes and the order of fields stay; the verdict is put in behind the last field."""
        if tag is None:
            self._file.write((line or as_json(fields)) + b"\n")
        elif line and self._tag_field not in fields:
            comma = b", " if fields else b""
            self._file.write(b"".join((line.rstrip().removesuffix(b"}"), comma, self._name, as_json(tag), b"}\n")))
        else:
            self._file.write(as_json(with_tag(fields, tag, self._tag_field)) + b"\n")

    def close(self) -> None:
        """Nothing is missing."""
