"""JSON lines: a line that was read is written as it stood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy_neardup.outputs.writer import Tag, Writer, as_json, with_tag


class JsonLinesWriter(Writer):
    """One JSON object a line."""

    def write(self, fields: Mapping[str, Any], tag: Tag | None, line: bytes = b"") -> None:
        """Numbers, escapes and the order of fields stay; the verdict is put in behind the last field."""
        if tag is None:
            self._file.write((line or as_json(fields)) + b"\n")
        elif line and self._tag_field not in fields:
            name, verdict = as_json(self._tag_field), as_json(tag)
            comma = b", " if fields else b""
            self._file.write(line.rstrip().removesuffix(b"}") + comma + name + b": " + verdict + b"}\n")
        else:
            self._file.write(as_json(with_tag(fields, tag, self._tag_field)) + b"\n")

    def close(self) -> None:
        """Nothing is missing."""
