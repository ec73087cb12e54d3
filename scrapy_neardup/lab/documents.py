"""The documents of a corpus."""

from __future__ import annotations

import json
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import IO, Any

from scrapy_neardup.errors import NearDupError, PageError, SettingsError
from scrapy_neardup.files import Entry, Malformed, Skipped, format_of, read_input
from scrapy_neardup.files.compression import find_file, open_packed, unpacked_name
from scrapy_neardup.files.entry import BOM, decode_utf8, reading
from scrapy_neardup.files.folders import TEXT
from scrapy_neardup.files.json_records import read_jsonl_file
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import decode_body, split_keywords
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.page.urls import site_of

#: The field for the name of a record.
_ID = "id"


def told_format(path: Path) -> str:
    """Return the format of a file by its name, JSON lines by default."""
    try:
        return format_of(str(path))
    except SettingsError:
        return "jsonl"


class FeedReader:
    """Reads feeds of any format as a crawl would judge them; ``left_out`` counts other records by reason."""

    def __init__(self, fields: Mapping[str, str], source: PageSource, *, renamed: bool = False) -> None:
        """``fields``: which field of a record holds what; ``renamed``: the user named them."""
        self.left_out: Counter[str] = Counter()
        self._fields = fields
        self._source = source
        self._renamed = renamed

    def is_needed(self, path: Path) -> bool:
        """Whether a file is no plain corpus: neither JSON lines with the usual names nor text."""
        return not path.is_dir() and (self._renamed or told_format(path) not in ("jsonl", "text"))

    def pages(self, name: str) -> Iterator[tuple[str, Page]]:
        """Yield the URL of each page, if any, and the page under the name of its record.

        The name is its id, its URL, or its place. Of several records with one name only the first counts. For the
        folder of a corpus it reads the documents.
        """
        seen = set()
        docs = find_file(Path(name), "docs.jsonl") if Path(name).is_dir() else None
        for entry in read_input(str(docs or name)):
            if isinstance(entry, (Malformed, Skipped)):
                self.left_out["malformed" if isinstance(entry, Malformed) else entry.why] += 1
                continue
            own, url = self._names(entry)
            if own in seen:
                self.left_out["another version of a page"] += 1
                continue
            seen.add(own)
            try:
                page = self._page(entry, own, url)
            except PageError as error:
                self.left_out[error.reason] += 1
                continue
            if page.unread:
                self.left_out[page.unread] += 1
            else:
                yield url, page

    def _names(self, entry: Entry) -> tuple[str, str]:
        id, given = entry.fields.get(_ID), entry.fields.get(self._fields["url"])
        url = given.strip() if isinstance(given, str) else ""
        if isinstance(id, (str, int)) and not isinstance(id, bool) and str(id).strip():
            return str(id).strip(), url
        if url:
            return self._source.fields.article_url(entry.fields, url), url
        return f"{entry.unit} {entry.number}" if entry.unit else entry.source, ""

    def _page(self, entry: Entry, own: str, url: str) -> Page:
        fields = dict(entry.fields)
        if entry.html:
            fields[self._fields["html"]] = decode_body(entry.html, entry.content_type or None)
        page = self._source.page(fields, None, url or own)
        return replace(page, url=own, site=site_of(url or own))


_NEED = 'each line must be one JSON object with a text: {"id": "…", "title": "…", "text": "…"}'


@dataclass(frozen=True, slots=True)
class Document:
    """An article of a corpus; ``id`` is unique: its record's id, its URL, or its line."""

    id: str
    title: str = ""
    text: str = ""
    keywords: tuple[str, ...] = ()
    description: str = ""
    url: str = ""
    #: The page, if the record was HTML.
    read: Page | None = None

    def page(self) -> Page:
        """Return the page for a detector. The id replaces the URL, so that no page updates an earlier one."""
        if self.read is not None:
            return self.read
        return Page(self.id, self.title, self.keywords, self.description, self.text, site=site_of(self.url))


def read_documents(*paths: Path, feed: FeedReader | None = None) -> Iterator[Document]:
    """Yield the documents of files and folders.

    A file holds JSON lines, or one document if its name ends in .txt; .gz, .xz, .bz2 and .zst are decompressed. A
    folder holds docs.jsonl, or else .txt files. ``feed`` reads other formats and field names. Raises NearDupError that
    names file and line.
    """
    for path in paths:
        if feed is not None and feed.is_needed(path):
            yield from documents_of(feed, str(path))
            continue
        for file in _files(path):
            if is_text(file):
                yield _text(file)
            else:
                yield from map(_document, json_lines(file, _NEED))


def documents_of(feed: FeedReader, name: str) -> Iterator[Document]:
    """Yield the documents of a feed; the feed counts records that are no pages."""
    for url, page in feed.pages(name):
        yield Document(page.url, page.title, page.text, page.keywords, page.description, url, page)


def is_text(path: Path) -> bool:
    """Whether a file is one document of plain text, by its name.

    >>> is_text(Path("notes.txt.gz")), is_text(Path("docs.jsonl"))
    (True, False)
    """
    return unpacked_name(path.name).endswith(TEXT)


def with_distinct_ids(documents: Iterable[Document]) -> Iterator[Document]:
    """Yield the documents. Raises NearDupError for a repeated id."""
    seen = set()
    for document in documents:
        if document.id in seen:
            raise NearDupError(f"Two documents have the id {document.id!r}. Give each its own id.")
        seen.add(document.id)
        yield document


def json_lines(path: Path, need: str) -> Iterator[Entry]:
    """Yield the objects of JSON lines; ``need`` says in the NearDupError what a line must hold."""
    for record in read_jsonl_file(path):
        if not isinstance(record, Entry):
            raise NearDupError(f"{record.place} is {record.why}; {need}.")
        yield record


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    docs = find_file(path, "docs.jsonl")
    files = [docs] if docs else sorted(path.glob("*.txt"))
    if not files:
        raise NearDupError(f"{path} contains neither docs.jsonl nor .txt files. Add one of them.")
    return files


def _text(path: Path) -> Document:
    """Return the whole file as a document; an empty one is a document too."""
    with reading(str(path)), open_packed(path) as file:
        raw = file.read()
    try:
        return Document(path.name, text=decode_utf8(raw.removeprefix(BOM)))
    except ValueError as error:
        raise NearDupError(f"{path} is {error}. Convert it to UTF-8.") from None


def _document(entry: Entry) -> Document:
    id = entry.fields.get("id")
    if id is None:
        id = _string(entry, "url").strip() or f"{entry.unit} {entry.number}"
    elif type(id) is int:
        id = str(id)
    if not isinstance(id, str):
        raise NearDupError(f"{entry.place}: id must be a string or a whole number, not {id!r}.")
    if "text" not in entry.fields:
        raise NearDupError(f"{entry.place} has no text; {_NEED}.")
    return Document(
        id=id,
        title=_string(entry, "title"),
        text=_string(entry, "text"),
        keywords=_keywords(entry),
        description=_string(entry, "description"),
        url=_string(entry, "url"),
    )


def _string(entry: Entry, name: str) -> str:
    value = entry.fields.get(name)
    if value is None and name != "text":
        return ""
    if not isinstance(value, str):
        raise NearDupError(f"{entry.place}: {name} must be a string, not {value!r}; {_NEED}.")
    return value


def _keywords(entry: Entry) -> tuple[str, ...]:
    value = entry.fields.get("keywords")
    if value is None or isinstance(value, str):
        return split_keywords(value or "")
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return tuple(value)
    raise NearDupError(f"{entry.place}: keywords must be a string or a list of strings, not {value!r}.")


_VALUES = attrgetter(*(field.name for field in fields(Page)))


class Spool:
    """Documents on disk, in order, with 8 bytes of each in memory: a feed is read once."""

    def __init__(self, file: IO[bytes]) -> None:
        """``file``: an empty one, open for writing and reading."""
        self._file = file
        self._ends = array("q", [0])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def add(self, document: Document) -> None:
        """Add a document; lone surrogates become escapes."""
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
    """Yield the documents from a temporary file."""
    with tempfile.TemporaryFile(prefix="neardup-") as file:
        spool = Spool(file)
        for document in documents:
            spool.add(document)
        yield spool
