"""The documents of a corpus or a feed, as a crawl would judge them."""

from __future__ import annotations

import json
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from scrapy_neardup.errors import PageError, SettingsError
from scrapy_neardup.files import STDIN, Entry, InputRecord, Skipped, find_format, read_input
from scrapy_neardup.files.compression import find_file
from scrapy_neardup.files.entry import name_entry
from scrapy_neardup.maintenance.scan import Watch, unwatched, with_evidence
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import decode_body
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.state.pages import PageStore


@dataclass(frozen=True, slots=True)
class Document:
    """A page of a corpus. Its name is the ``url`` of the page, so that no page updates an earlier one.

    ``url``: its address, if known.
    """

    page: Page
    url: str = ""

    @property
    def id(self) -> str:
        """The name of the document."""
        return self.page.url


class DocumentReader:
    """Reads documents of files and folders of any format. ``left_out`` counts the other records by reason."""

    def __init__(self, source: PageSource) -> None:
        """``source`` makes the pages of records."""
        self.left_out: Counter[str] = Counter()
        self._source = source

    def read(self, *files: str | Path) -> Iterator[Document]:
        """Yield the documents of files, folders or standard input (``-``).

        The name of a document is its id, its URL, its path in the folder, or its place in the file. Of several records
        with one name the first counts. A folder may hold docs.jsonl. A file is JSON lines unless its suffix says
        otherwise. Raises NearDupError if the rest of a file is unreadable.
        """
        for file in files:
            is_folder = str(file) != STDIN and Path(file).is_dir()
            name = str((find_file(Path(file), "docs.jsonl") if is_folder else None) or file)
            yield from self._read(read_input(name, "" if is_folder and name == str(file) else guess_format(name)))

    def _read(self, records: Iterator[InputRecord]) -> Iterator[Document]:
        seen: set[str] = set()
        for entry in records:
            if not isinstance(entry, Entry):
                self.left_out[entry.why if isinstance(entry, Skipped) else "malformed"] += 1
                continue
            url = self._source.fields.url(entry.fields)
            place = f"{entry.unit} {entry.number}" if entry.unit else str(entry.fields.get("path", entry.source))
            name = name_entry(entry, self._source.fields) or place
            if name in seen:
                self.left_out["another version of a page"] += 1
                continue
            seen.add(name)
            page = self._page(entry, name, url)
            if page.unread:
                self.left_out[page.unread] += 1
            else:
                yield Document(page, url)

    def _page(self, entry: Entry, name: str, url: str) -> Page:
        try:
            return make_page(self._source, entry, name, url)
        except PageError as error:
            if error.reason == "no_content" and isinstance(entry.fields.get(self._source.fields.names["text"]), str):
                return Page(name, site=site_of(url))  # an empty text is a document, too
            return Page(name, unread=error.reason)


def make_page(source: PageSource, entry: Entry, name: str, url: str) -> Page:
    """Return the page of a record as a crawl would judge it, under a name. Raises PageError if there is none."""
    values = dict(entry.fields)
    if entry.html:
        values[source.fields.names["html"]] = decode_body(entry.html, entry.content_type or None)
    return replace(source.page(values, None, url or name), url=name, site=site_of(url))


def guess_format(file: str) -> str:
    """Return the format of a file by its name, JSON lines by default."""
    try:
        return find_format(file)
    except SettingsError:
        return "jsonl"


def read_kept_documents(store: PageStore, watch: Watch = unwatched) -> Iterator[Document]:
    """Yield the pages of a state that have a text, the oldest first."""
    for record, evidence in with_evidence(store, watch):
        if evidence is not None and evidence.text:
            page = Page(record.url, evidence.title, text=evidence.text, site=site_of(record.url))
            yield Document(page, record.url)


class RowFile:
    """Rows of bytes on disk, in order, with 8 bytes of each in memory."""

    def __init__(self, file: IO[bytes]) -> None:
        """``file``: an empty one, open for writing and reading, unbuffered."""
        self._file = file
        self._ends = array("q", [0])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def append(self, row: bytes) -> None:
        """Add a row."""
        self._file.seek(self._ends[-1])
        self._file.write(row)
        self._ends.append(self._ends[-1] + len(row))

    def row(self, place: int) -> bytes:
        """Return the row at a place."""
        start, end = self._ends[place], self._ends[place + 1]
        self._file.seek(start)
        return self._file.read(end - start)

    def lengths(self) -> npt.NDArray[np.int64]:
        """The bytes of each row."""
        ends = np.array(self._ends, np.int64)
        return ends[1:] - ends[:-1]


_VALUES = attrgetter(*(field.name for field in fields(Page)))


class Spool(RowFile, Sequence[Document]):
    """Documents on disk: a feed is read once. Lone surrogates become escapes."""

    def add(self, document: Document) -> None:
        """Add a document."""
        self.append(json.dumps([document.url, *_VALUES(document.page)]).encode())

    @overload
    def __getitem__(self, place: int) -> Document: ...
    @overload
    def __getitem__(self, place: slice) -> list[Document]: ...
    def __getitem__(self, place: int | slice) -> Document | list[Document]:
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        url, *values = json.loads(self.row(place))
        parts: list[Any] = [tuple(value) if isinstance(value, list) else value for value in values]
        return Document(Page(*parts), url)


Rows = TypeVar("Rows", bound=RowFile)


@contextmanager
def open_rows(kind: type[Rows]) -> Iterator[Rows]:
    """Yield an empty file of rows, which is gone afterwards."""
    with tempfile.TemporaryFile(prefix="neardup-", buffering=0) as file:
        yield kind(file)


@contextmanager
def open_spool(documents: Iterable[Document]) -> Iterator[Spool]:
    """Yield the documents from a temporary file."""
    with open_rows(Spool) as spool:
        for document in documents:
            spool.add(document)
        yield spool
