"""The documents of files, as a crawl would judge them.

The name of a document is the ``url`` of its page, so no document updates another one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from scrapy_neardup.errors import PageError
from scrapy_neardup.files import Entry, Skipped, read_input
from scrapy_neardup.judge.records import RecordReader
from scrapy_neardup.model import Page
from scrapy_neardup.page.source import PageSource


def read_documents(file: str, source: PageSource, left_out: Counter[str], id_field: str = "id") -> Iterator[Page]:
    """Yield the documents of a file, a folder or standard input (``-``).

    ``source`` makes the pages of records, ``id_field`` names them: see ``RecordReader``. Of several records with one
    name the first counts. ``left_out`` counts the others by reason. Raises NearDupError if the rest of a file is
    unreadable.
    """
    reader, seen = RecordReader(source, id_field), set[str]()
    for entry in read_input(file):
        if not isinstance(entry, Entry):
            left_out[entry.why if isinstance(entry, Skipped) else "malformed"] += 1
            continue
        name = reader.name(entry)
        if name in seen:
            left_out["another version of a page"] += 1
            continue
        seen.add(name)
        try:
            page = reader.read(reader.draft(entry, name), name)
        except PageError as error:
            page = Page(name, unread=error.reason)
        if page.unread:
            left_out[page.unread] += 1
        else:
            yield page
