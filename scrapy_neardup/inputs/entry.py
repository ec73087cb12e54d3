"""A record of a file, or what is wrong with it."""

from __future__ import annotations

import lzma
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from importlib import import_module
from typing import Any, TypeVar

from scrapy_neardup.errors import NearDupError

# ----------------------------------------------------------------------------------------------------------------------
# What is read from files: an entry, or what is said of one that is malformed or no page.


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


# ----------------------------------------------------------------------------------------------------------------------
# Errors of files and of the libraries that read them, as sentences that name the place.


T = TypeVar("T")
#: What reading raises where a file, or the packing of a file, is not whole.
FAILURES = (OSError, EOFError, lzma.LZMAError, zlib.error)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Whatever can be wrong with a file, at its opening or in its middle, as a NearDupError that names it."""
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


@contextmanager
def library_errors(source: str, unit: str, last: int = 0) -> Iterator[None]:
    """Any exception of a library, which broken files make raise nearly all there are, as the error of ``broken``."""
    try:
        yield
    except Exception as error:
        raise broken(source, unit, last, error) from error


def guarded(items: Iterable[T], source: str, unit: str) -> Iterator[T]:
    """What a library reads; where it breaks down, a NearDupError tells after which unit.

    For libraries only, as any exception counts: broken files make them raise nearly all there are.
    """
    iterator, number = iter(items), 0
    while True:
        try:
            item = next(iterator)
        except StopIteration:
            return
        except Exception as error:
            raise broken(source, unit, number, error) from error
        number += 1
        yield item


def broken(source: str, unit: str, last: int, why: object) -> NearDupError:
    """The error for a file of which nothing can be read after the unit of number ``last``.

    'feed.xml cannot be read after item 17: no end tag. Repair the file there, or cut off the rest.'
    'feed.xml cannot be read on after item 17: no end tag; repair it there, or cut it off.'
    """
    said = " ".join(str(why).split()) or type(why).__name__
    where = f"after {unit} {last}" if last else "from its start"
    return NearDupError(
        f"{source} cannot be read {where}: {said.rstrip('.;')}. Repair the file there, or cut off the rest."
    )


# ----------------------------------------------------------------------------------------------------------------------
# Libraries that are installed with an extra, imported when they are first used.


def library(module: str, extra: str, what: str) -> Any:
    """The module of that name, needed for ``what``; raises NearDupError that names the extra if it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise NearDupError(
            f"{what} needs the package {package}, which cannot be imported ({error}). Run: "
            f"pip install 'scrapy-neardup[{extra}]'"
        ) from None


# ----------------------------------------------------------------------------------------------------------------------
# Values of tables as those that JSON has.


def plain(value: Any) -> Any:
    """Dates and times in ISO 8601, durations and decimals as numbers, bytes as text; what is none of these as it is.

    Bytes that are no UTF-8 stay bytes: what they mean is not known here.

    >>> plain({"on": date(2024, 5, 1), "for": timedelta(minutes=2), "tags": [b"ferry"]})
    {'on': '2024-05-01', 'for': 120.0, 'tags': ['ferry']}
    """
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return value


# ----------------------------------------------------------------------------------------------------------------------
# The names of a table's columns.


def column_names(cells: Iterable[Any], place: str) -> list[str]:
    """The first row as names, without empty cells at its end; raises NearDupError for a name that comes twice.

    One column may be without a name: pandas writes its row numbers so.

    >>> column_names(["", "title", 2024, None], "book.xlsx")
    ['', 'title', '2024']
    """
    names = ["" if cell is None else str(cell).strip() for cell in cells]
    while names and not names[-1]:
        names.pop()
    require_distinct(names, place)
    return names


def require_distinct(names: Sequence[str], place: str) -> None:
    """Raises NearDupError if two columns have the same name, or none."""
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        said = " and ".join(f"named {name!r}" if name else "without a name" for name in twice)
        raise NearDupError(f"{place} has several columns {said}. Give each column its own name.")


# ----------------------------------------------------------------------------------------------------------------------
# Text in UTF-8 from bytes, or in words why they are none.


#: The byte order mark, with which some programs begin a file.
BOM = b"\xef\xbb\xbf"


def decode_utf8(raw: bytes) -> str:
    """The text, of which a byte order mark would be a part; raises ValueError that names the first wrong byte.

    >>> decode_utf8("café".encode("latin-1"))
    Traceback (most recent call last):
    ValueError: not UTF-8: unexpected end of data at byte 4
    """
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8: {error.reason} at byte {error.start + 1}") from None
