"""The documents of a corpus: what a record of ``inputs`` must hold to be one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.evaluation.feed import FeedReader
from scrapy_neardup.inputs import Entry
from scrapy_neardup.inputs.documents import TEXT
from scrapy_neardup.inputs.guard import reading
from scrapy_neardup.inputs.jsonl import read_jsonl_file
from scrapy_neardup.inputs.packed import find_file, open_packed, unpacked_name
from scrapy_neardup.inputs.utf8 import BOM, decode_utf8
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import split_keywords
from scrapy_neardup.page.sites import site_of

_NEED = 'each line must be one JSON object with a text: {"id": "…", "title": "…", "text": "…"}'


@dataclass(frozen=True, slots=True)
class Document:
    """An article of a corpus; ``id`` is unique in it: that of its record, or else its URL, or else its line."""

    id: str
    title: str = ""
    text: str = ""
    keywords: tuple[str, ...] = ()
    description: str = ""
    url: str = ""
    #: The page as it was read, of one that may have been HTML.
    read: Page | None = None

    def page(self) -> Page:
        """What a detector judges. The id stands for the URL, so that no page is another version of an earlier one."""
        if self.read is not None:
            return self.read
        return Page(self.id, self.title, self.keywords, self.description, self.text, site=site_of(self.url))


def read_documents(*paths: Path, feed: FeedReader | None = None) -> Iterator[Document]:
    """The documents of files and folders in their order, one at a time.

    A file holds JSON lines, or one document if its name ends in .txt; .gz, .xz, .bz2 and .zst are unpacked. In a
    folder that is docs.jsonl, or else every .txt by name. ``feed`` reads files of other formats, and of other names of
    fields. Raises NearDupError that names file and line.
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
    """The documents of any feed; records that are no pages are left out, and counted there."""
    for url, page in feed.pages(name):
        yield Document(page.url, page.title, page.text, page.keywords, page.description, url, page)


def is_text(path: Path) -> bool:
    """Whether a file is one document of plain text, by its name.

    >>> is_text(Path("notes.txt.gz")), is_text(Path("docs.jsonl"))
    (True, False)
    """
    return unpacked_name(path.name).endswith(TEXT)


def with_distinct_ids(documents: Iterable[Document]) -> Iterator[Document]:
    """The same documents; raises NearDupError at an id that was there before, of which two could be meant."""
    seen = set()
    for document in documents:
        if document.id in seen:
            raise NearDupError(f"Two documents have the id {document.id!r}. Give each its own id.")
        seen.add(document.id)
        yield document


def json_lines(path: Path, need: str) -> Iterator[Entry]:
    """Every object of a file of JSON lines; ``need`` says in the NearDupError for any other line what must be there."""
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
    """The whole file, however large, as a document under the file's name; an empty one is a document too."""
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
