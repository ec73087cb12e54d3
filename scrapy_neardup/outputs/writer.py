"""The interface of an output format, and JSON lines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import IO, Any

from scrapy.utils.serialize import ScrapyJSONEncoder

#: A verdict as plain data; see ``Verdict.as_tag``.
Tag = Mapping[str, Any]

_ENCODER = ScrapyJSONEncoder(ensure_ascii=False, default=str)
_ASCII = ScrapyJSONEncoder(ensure_ascii=True, default=str)


class Writer(ABC):
    """Writes records. ``close`` completes the output but leaves the file open.

    ``for_spreadsheet``: write formulas as text, where the format cannot mark text; ``formulas`` counts them.
    """

    for_spreadsheet = False
    formulas = 0

    def __init__(self, file: IO[bytes], tag_field: str) -> None:
        """``tag_field``: the field for the verdict."""
        self._file = file
        self._tag_field = tag_field

    @abstractmethod
    def write(self, fields: Mapping[str, Any], tag: Tag | None, line: bytes = b"") -> None:
        """Write a record, with its verdict if there is a ``tag``; ``line`` is the JSON line that it came from.

        Raises NearDupError for a record that the format cannot hold.
        """

    @abstractmethod
    def close(self) -> None:
        """Write the end."""

    def discard(self) -> None:  # noqa: B027  # most hold nothing but the file
        """Release everything after an error."""


def as_json(value: Any) -> bytes:
    """Return JSON in UTF-8, or in ASCII for half a surrogate pair. Dates and the like become strings."""
    try:
        return _ENCODER.encode(value).encode()
    except UnicodeEncodeError:
        return _ASCII.encode(value).encode()


def with_tag(fields: Mapping[str, Any], tag: Tag | None, tag_field: str) -> dict[str, Any]:
    """Return the record with its verdict."""
    return dict(fields) if tag is None else {**fields, tag_field: dict(tag)}


def as_cells(fields: Mapping[str, Any], tag: Tag | None, tag_field: str) -> dict[str, Any]:
    """Return a record as one row: a column for each part of its verdict, and JSON for lists.

    >>> as_cells({"id": 7, "tags": ["a"]}, {"verdict": "unique", "shared": []}, "neardup")
    {'id': 7, 'tags': '["a"]', 'neardup.verdict': 'unique', 'neardup.shared': '[]'}
    """
    columns = {**fields, **{f"{tag_field}.{name}": value for name, value in (tag or {}).items()}}
    return {name: _cell(value) for name, value in columns.items()}


def _cell(value: Any) -> Any:
    if isinstance(value, (Mapping, list, tuple)):
        return as_json(value).decode()
    return "" if value is None else value


class JsonLinesWriter(Writer):
    """One JSON object a line."""

    def __init__(self, file: IO[bytes], tag_field: str) -> None:
        super().__init__(file, tag_field)
        self._name = as_json(tag_field) + b": "

    def write(self, fields: Mapping[str, Any], tag: Tag | None, line: bytes = b"") -> None:
        """Keep numbers, escapes and the order of fields of a line; the verdict follows the last field."""
        if tag is None:
            self._file.write((line or as_json(fields)) + b"\n")
        elif line and self._tag_field not in fields:
            comma = b", " if fields else b""
            self._file.write(b"".join((line.rstrip().removesuffix(b"}"), comma, self._name, as_json(tag), b"}\n")))
        else:
            self._file.write(as_json(with_tag(fields, tag, self._tag_field)) + b"\n")

    def close(self) -> None:
        """Do nothing."""
