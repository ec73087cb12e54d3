"""JSON lines: a line that was read is written as it stood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from scrapy_neardup.outputs.writer import Tag, Writer, as_json, with_tag


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
