"""Documents from files: JSON lines, plain text, folders of either, packed or not."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.inputs.guard import FAILURES
from scrapy_neardup.inputs.packed import PACKINGS, open_packed, unpacked_name
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import split_keywords
from scrapy_neardup.page.sites import site_of

_NEED = 'a line must be one JSON object: {"id": "…", "title": "…", "text": "…"}, of which text must be there'


@dataclass(frozen=True, slots=True)
class Document:
    """An article of a corpus; ``id`` is unique in it."""

    id: str
    title: str = ""
    text: str = ""
    keywords: tuple[str, ...] = ()
    description: str = ""
    url: str = ""

    def page(self) -> Page:
        """What a detector judges. The id stands for the URL, so that no page is another version of an earlier one."""
        return Page(self.id, self.title, self.keywords, self.description, self.text, site=site_of(self.url))


def read_documents(path: Path) -> Iterator[Document]:
    """The documents of a file or folder in their order, one at a time.

    A file holds JSON lines, or one document if its name ends in .txt; .gz, .xz, .bz2 and .zst are unpacked. In a
    folder that is docs.jsonl, or else every .txt by name. Raises NearDupError that names file and line.
    """
    if not path.is_dir():
        yield from _read_file(path)
    elif (docs := find_file(path, "docs.jsonl")) is not None:
        yield from _read_file(docs)
    else:
        texts = sorted(path.glob("*.txt"))
        if not texts:
            raise NearDupError(f"{path} holds neither docs.jsonl, plain or packed, nor .txt files; put one there.")
        for text in texts:
            yield from _read_file(text)


def distinct(documents: Iterable[Document]) -> Iterator[Document]:
    """The same documents; raises NearDupError at an id that was there before, of which two could be meant."""
    seen = set()
    for document in documents:
        if document.id in seen:
            raise NearDupError(f"Two documents have the id {document.id!r}; give each an id of its own.")
        seen.add(document.id)
        yield document


def find_file(folder: Path, name: str) -> Path | None:
    """The file of that name in a folder, plain or packed."""
    names = (folder / f"{name}{suffix}" for suffix in ("", *PACKINGS))
    return next((file for file in names if file.is_file()), None)


def json_lines(path: Path, need: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of a file of JSON lines, with its place in words; empty lines are passed over.

    ``need`` says in the NearDupError for any other line what must stand there.
    """
    with _reading(path), open_packed(path) as lines:
        for number, line in enumerate(lines, 1):
            place = f"{path}, line {number}"
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                found = json.loads(text) if text else {}
            except (ValueError, RecursionError) as error:
                raise NearDupError(f"{place} is no JSON in UTF-8 ({error}); {need}.") from None
            if not isinstance(found, dict):
                raise NearDupError(f"{place} holds no JSON object; {need}.")
            if text:
                yield place, found


def _read_file(path: Path) -> Iterator[Document]:
    if unpacked_name(path.name).endswith(".txt"):
        yield Document(id=path.name, text=_whole(path))
        return
    for place, found in json_lines(path, _NEED):
        yield _document(place, found)


def _whole(path: Path) -> str:
    with _reading(path), open_packed(path) as file:
        return file.read().decode("utf-8-sig")


def _document(place: str, found: dict[str, Any]) -> Document:
    id = found.get("id")
    if id is None:
        id = place.rpartition(", ")[2]
    elif type(id) is int:
        id = str(id)
    if not isinstance(id, str):
        raise NearDupError(f"{place}: id must be a string or a whole number, not {id!r}.")
    if "text" not in found:
        raise NearDupError(f"{place} has no text; {_NEED}.")
    return Document(
        id=id,
        title=_string(place, found, "title"),
        text=_string(place, found, "text"),
        keywords=_keywords(place, found.get("keywords")),
        description=_string(place, found, "description"),
        url=_string(place, found, "url"),
    )


def _string(place: str, found: dict[str, Any], name: str) -> str:
    value = found.get(name)
    if value is None and name != "text":
        return ""
    if not isinstance(value, str):
        raise NearDupError(f"{place}: {name} must be a string, not {value!r}; {_NEED}.")
    return value


def _keywords(place: str, value: Any) -> tuple[str, ...]:
    if value is None or isinstance(value, str):
        return split_keywords(value or "")
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return tuple(value)
    raise NearDupError(f"{place}: keywords must be a string or a list of strings, not {value!r}.")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Whatever can be wrong with a file, in a sentence that names it."""
    try:
        yield
    except FileNotFoundError:
        raise NearDupError(f"There is no {path}; name a file or a folder of documents.") from None
    except UnicodeDecodeError as error:
        raise NearDupError(f"{path} is not UTF-8 ({error}); convert it to that.") from None
    except FAILURES as error:
        raise NearDupError(f"{path} cannot be read to its end: {error}; see that it is whole and readable.") from None
