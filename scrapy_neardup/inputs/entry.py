"""What is read from files: an entry, or what is said of one that is malformed or no page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Bytes that one record may have. What is larger is no page, or was never ended; it is not taken into memory.
LARGEST = 50_000_000


@dataclass(frozen=True, slots=True)
class Placed:
    """Where something stands: the ``number``-th ``unit`` (line, row, item, record, from 1) of ``source``.

    ``unit`` is empty where the source holds nothing else, as an HTML file.
    """

    source: str
    number: int
    unit: str

    @property
    def place(self) -> str:
        """The place in words.

        >>> Placed("feed.jsonl", 17, "line").place
        'feed.jsonl, line 17'
        """
        return f"{self.source}, {self.unit} {self.number}" if self.unit else self.source


@dataclass(frozen=True, slots=True)
class Entry(Placed):
    """One record of a file.

    ``fields``: name to value; of a document (an HTML file, an archived page) only what is known around it: url, date,
    path. ``line``: of JSON lines the line as it stands, without line end and byte order mark, to be written out
    unchanged. ``html``: of a document its bytes, with the ``content_type`` that its server named.
    """

    fields: Mapping[str, Any]
    line: bytes = b""
    html: bytes = b""
    content_type: str = ""


@dataclass(frozen=True, slots=True)
class Malformed(Placed):
    """A record that cannot be read; ``why``, said after its place and a colon, and its bytes if they are known."""

    why: str
    raw: bytes = b""


@dataclass(frozen=True, slots=True)
class Skipped(Placed):
    """A record of an archive that is no page; ``why`` says what it is: "a request", "status 404", "image/png"."""

    why: str


#: What stands at one place of an input; a record of a state is another thing.
InputRecord = Entry | Malformed | Skipped
