"""Pages on disk while they are worked on: a feed is read once, and its texts take no memory."""

from __future__ import annotations

import json
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from operator import attrgetter
from typing import IO, Any

from scrapy_neardup.evaluation.documents import Document
from scrapy_neardup.model import Page

_VALUES = attrgetter(*(field.name for field in fields(Page)))


class Spool:
    """Documents in a file, in the order in which they came; in memory are 8 bytes of each."""

    def __init__(self, file: IO[bytes]) -> None:
        """``file``: an empty one, open for writing and reading."""
        self._file = file
        self._ends = array("q", [0])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def add(self, document: Document) -> None:
        """One more; lone surrogates, which no file in UTF-8 may hold, are written as escapes."""
        self._file.seek(self._ends[-1])
        self._file.write(json.dumps([document.url, *_VALUES(document.page())]).encode())
        self._ends.append(self._file.tell())

    def __getitem__(self, place: int) -> Document:
        start = self._ends[place]
        self._file.seek(start)
        url, *values = json.loads(self._file.read(self._ends[place + 1] - start))
        parts: list[Any] = [tuple(value) if isinstance(value, list) else value for value in values]
        page = Page(*parts)
        return Document(page.url, page.title, page.text, page.keywords, page.description, url, page)


@contextmanager
def spooled(documents: Iterable[Document]) -> Iterator[Spool]:
    """All of them in a temporary file, which is gone at the end."""
    with tempfile.TemporaryFile(prefix="neardup-") as file:
        spool = Spool(file)
        for document in documents:
            spool.add(document)
        yield spool
