"""A record of a file, or the reason why it cannot be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.fast_dataclass import fast_dataclass
from scrapy_neardup.files.compression import FAILURES
from scrapy_neardup.page.item import ItemFields

#: The most bytes of a record. A larger one is no page, or never ends, and is not read into memory.
LARGEST = 50_000_000
#: The byte order mark, which some programs write first.
BOM = b"\xef\xbb\xbf"


@fast_dataclass(frozen=True, slots=True)
class Placed:
    """A place: ``unit`` (line, row, item, record) ``number`` of ``source``, from 1.

    ``unit`` is empty if the source is one document.
    """

    source: str
    number: int
    unit: str

    @property
    def place(self) -> str:
        """Format the place.

        >>> Placed("feed.jsonl", 17, "line").place
        'feed.jsonl, line 17'
        """
        return f"{self.source}, {self.unit} {self.number}" if self.unit else self.source


@fast_dataclass(frozen=True, slots=True)
class Entry(Placed):
    """One record of a file.

    ``fields``: its values; for a document (an HTML file, an archived page) only url, date, path. ``line``: a line of
    JSON lines without its end and byte order mark, to be written unchanged. ``html``: the bytes of a document, with the
    ``content_type`` of its server.
    """

    fields: Mapping[str, Any]
    line: bytes = b""
    html: bytes = b""
    content_type: str = ""


@fast_dataclass(frozen=True, slots=True)
class Malformed(Placed):
    """A record that cannot be read: ``why``, and its bytes if they are known."""

    why: str
    raw: bytes = b""


@fast_dataclass(frozen=True, slots=True)
class Skipped(Placed):
    """A record of an archive that is no page; ``why``: "a request", "status 404", "image/png"."""

    why: str


def name_entry(entry: Entry, fields: ItemFields, id_field: str = "id") -> str:
    """Return the name of a record: its id, else its URL with its part, as in a crawl; empty if it has neither."""
    id = entry.fields.get(id_field)
    if isinstance(id, (str, int)) and not isinstance(id, bool) and (name := str(id).strip()):
        return name
    url = fields.url(entry.fields)
    return fields.article_url(entry.fields, url) if url else ""


#: One entry of an input, not to be confused with a record of a state.
InputRecord = Entry | Malformed | Skipped

T = TypeVar("T")


@contextmanager
def file_errors(name: str) -> Iterator[None]:
    """Translate errors of a file into a NearDupError that names it."""
    try:
        yield
    except FileNotFoundError:
        raise NearDupError(f"{name} does not exist. Name a file or a folder that exists.") from None
    except IsADirectoryError:
        raise NearDupError(f"{name} is a folder, but a file is needed. Name the files in it.") from None
    except PermissionError:
        raise NearDupError(f"You may not read {name}. Change its permissions.") from None
    except FAILURES as error:
        raise NearDupError(f"{name} cannot be read to its end: {error}. Check that the file is complete.") from None


def guard_records(items: Iterable[T], source: str, unit: str) -> Iterator[T]:
    """Iterate over the records that a library reads from a file; broken files raise nearly any exception.

    Raises a NearDupError that names the last good record: 'feed.warc cannot be read after record 17: …'.
    """
    number = 0
    try:
        for number, item in enumerate(items, 1):  # noqa: B007  # the error names it
            yield item
    except NearDupError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        where = f"after {unit} {number}" if number else "from its start"
        raise NearDupError(
            f"{source} cannot be read {where}: {reason.rstrip('.;')}. Repair the file there, or cut off the rest."
        ) from error


def import_library(module: str, extra: str, what: str) -> Any:
    """Import a module of an extra, needed for ``what``. Raises NearDupError that names the extra."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise NearDupError(
            f"{what} needs the package {package}, which cannot be imported ({error}). Run: "
            f"pip install 'scrapy-neardup[{extra}]'"
        ) from None


def decode_utf8(raw: bytes) -> str:
    """Decode UTF-8. Raises ValueError that names the first wrong byte.

    >>> decode_utf8("café".encode("latin-1"))
    Traceback (most recent call last):
    ValueError: not UTF-8: unexpected end of data at byte 4
    """
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8: {error.reason} at byte {error.start + 1}") from None
