"""The documents of files, as a crawl would judge them.

The name of a document is the ``url`` of its page, so no document updates another one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from scrapy_neardup.errors import PageError
from scrapy_neardup.files import STDIN, Entry, InputRecord, Skipped, find_format, read_input
from scrapy_neardup.files.compression import find_file
from scrapy_neardup.files.entry import name_entry
from scrapy_neardup.judge.records import RecordReader
from scrapy_neardup.model import Page
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.page.urls import site_of


class DocumentReader:
    """Reads documents of files and folders of any format. ``left_out`` counts the other records by reason."""

    def __init__(self, source: PageSource, id_field: str = "id") -> None:
        """``source`` makes the pages of records; ``id_field`` names them, empty for their URL."""
        self.left_out: Counter[str] = Counter()
        self._source = source
        self._id_field = id_field
        self._records = RecordReader(source, id_field)

    def read(self, *files: str | Path) -> Iterator[Page]:
        """Yield the documents of files, folders or standard input (``-``).

        The name of a document is its id, its URL, its path in the folder, or its place in the file. Of several records
        with one name the first counts. A folder may hold docs.jsonl. A file is JSON lines unless its suffix says
        otherwise. Raises NearDupError if the rest of a file is unreadable.
        """
        for file in files:
            is_folder = str(file) != STDIN and Path(file).is_dir()
            name = str((find_file(Path(file), "docs.jsonl") if is_folder else None) or file)
            format = "" if is_folder and name == str(file) else find_format(name, default="jsonl")
            yield from self._read(read_input(name, format))

    def _read(self, records: Iterator[InputRecord]) -> Iterator[Page]:
        seen: set[str] = set()
        for entry in records:
            if not isinstance(entry, Entry):
                self.left_out[entry.why if isinstance(entry, Skipped) else "malformed"] += 1
                continue
            place = f"{entry.unit} {entry.number}" if entry.unit else str(entry.fields.get("path", entry.source))
            name = name_entry(entry, self._source.fields, self._id_field) or place
            if name in seen:
                self.left_out["another version of a page"] += 1
                continue
            seen.add(name)
            try:
                page = self._page(entry, name)
            except PageError as error:
                page = Page(name, unread=error.reason)
            if page.unread:
                self.left_out[page.unread] += 1
            else:
                yield page

    def _page(self, entry: Entry, name: str) -> Page:
        """Return the page of a record, also one with an empty text. Raises PageError if there is none."""
        try:
            return self._records.read(self._records.draft(entry, name), name)
        except PageError as error:
            if error.reason != "no_content" or not isinstance(entry.fields.get(self._source.fields.names["text"]), str):
                raise
            return Page(name, site=site_of(self._source.fields.url(entry.fields)))
