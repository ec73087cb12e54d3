"""The interface of a storage engine: ordered byte keys at a location, and one batch of changes."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol, TypeVar
from urllib.parse import SplitResult
from urllib.request import url2pathname

from scrapy_neardup.errors import StoreDamaged, StoreError

# ----------------------------------------------------------------------------------------------------------------------
# A row of a state, and what is written into it at once.


#: A key and its value.
Row = tuple[bytes, bytes]


@dataclass(slots=True)
class Changes:
    """What one batch puts and deletes; a backend writes all of it or nothing.

    ``sights``: values of URLs that are to be put if these still name the same page then, and were not seen later; of
    a backend that others write to in the meantime, alone.
    """

    puts: dict[bytes, bytes] = field(default_factory=dict)
    deletes: set[bytes] = field(default_factory=set)
    sights: dict[bytes, bytes] = field(default_factory=dict)

    def put(self, key: bytes, value: bytes) -> None:
        """Write a value, whatever was to happen to the key before."""
        self.deletes.discard(key)
        self.puts[key] = value

    def delete(self, key: bytes) -> None:
        """Remove a key, whatever was to happen to it before."""
        self.puts.pop(key, None)
        self.deletes.add(key)


# ----------------------------------------------------------------------------------------------------------------------
# Copies of damaged states, opened to be read as far as that goes.


class UnreadableError(Exception):
    """A row, or what leads to it, cannot be read."""


class DamagedCopy(Protocol):
    """Rows in byte order, of which some cannot be read."""

    def rows(self, low: bytes, high: bytes, *, reverse: bool = False) -> Iterator[Row]:
        """The rows from ``low`` to before ``high``, up to the first that cannot be read: then UnreadableError."""


@contextmanager
def copying(source: Path) -> Iterator[None]:
    """What goes wrong while files are copied, as StoreError."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"The state at {source} cannot be copied: {error}. Check that its files can be read and that the disk "
            "has room for two copies next to the new state."
        ) from None


def hopeless(source: Path, why: str) -> StoreError:
    """The error where not even a copy can be opened."""
    return StoreError(f"Nothing in the state at {source} can be read ({why}). Restore it from a backup.")


# ----------------------------------------------------------------------------------------------------------------------
# Where the states of one kind of store lie, and what can be asked of them without opening one.


#: Characters that no path of a state may have: the system refuses NUL, a terminal acts on the others.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
#: What names the state of a crawl; a command has an option for it.
SETTING = "NEARDUP_STORE"


_USER = re.compile(r"(?<=//)[^/?#]*@")
_PASSWORD = re.compile(r"([?&])[^=&]*password=[^&]*&?", re.IGNORECASE)


def without_password(url: str) -> str:
    """A URL as it may be shown: without user and password, wherever somebody has put an ``@``.

    >>> without_password("redis://crawler:s3cret@cache.example:6379/0?state=news")
    'redis://cache.example:6379/0?state=news'
    >>> without_password("leveldb:///data/state"), without_password("redis://:p@ss@host"), without_password("memory:")
    ('leveldb:///data/state', 'redis://host', 'memory:')
    >>> without_password("redis+sentinel://a,b/news?sentinel_password=s3cret&state=news")
    'redis+sentinel://a,b/news?state=news'
    """
    return _PASSWORD.sub(r"\1", _USER.sub("", url)).rstrip("?&")


class Place(ABC):
    """The places of one kind. As it stands, they are paths; a kind that lies elsewhere has URLs of its own."""

    #: The scheme of the URLs that open it.
    scheme: ClassVar[str]
    #: Whether a state outlives the store that made it; one that does not has no place, and nothing is ever there.
    lasts: ClassVar[bool] = True

    @classmethod
    def form(cls) -> str:
        """How its URLs look, for a message."""
        return f"{cls.scheme}:///path"

    @classmethod
    def read_url(cls, parts: SplitResult) -> str:
        """The location in a URL of this scheme, the same for all that name one place.

        Raises ValueError that goes on after the URL: "which …".
        """
        if parts.netloc or not parts.path.startswith("/") or not parts.path.strip("/"):
            raise ValueError(f"which names no absolute path. Write three slashes: {cls.form()}")
        if parts.query or parts.fragment:
            raise ValueError("which has a ? or a # in its path. Write %3F for the question mark, %23 for the hash")
        path = url2pathname(parts.path)
        if _CONTROL.search(path):
            raise ValueError("which has a control character in its path. Name another path")
        return os.path.realpath(path)

    @classmethod
    def url(cls, location: str) -> str:
        """The URL of a location."""
        return cls.scheme + Path(location).as_uri().removeprefix("file")

    @classmethod
    def misplaced(cls, location: str) -> str:
        """Of a new state in the root of the disk a sentence that shows the URL of one in the working directory."""
        path = Path(location)
        if str(path.parent) != path.anchor or cls.exists(location):
            return ""
        here = cls.url(str(Path(path.name).absolute()))
        return f"{location} is in the root directory. For the working directory, write {here}."

    @classmethod
    @abstractmethod
    def exists(cls, location: str) -> bool:
        """Whether there is a state, which opening would make if there is none; it need not be whole."""

    @classmethod
    def witness_of(cls, location: str) -> Path | None:
        """The small file that tells how far the state had come (see ``Witness``); None for a kind that keeps none."""
        return None

    @classmethod
    def parts(cls, location: str) -> str:
        """What is to be moved or copied together, for a message."""
        return location

    @classmethod
    def pieces(cls, location: str) -> tuple[Path, ...]:
        """The files and folders of a state that is closed, for whoever moves it; none for a kind that has no such."""
        return ()

    @classmethod
    def lock_of(cls, location: str) -> Path:
        """The file that is locked while a state is used, and gone otherwise."""
        return Path(f"{location}.lock")

    @classmethod
    def damaged_copy(cls, location: str, folder: Path) -> AbstractContextManager[DamagedCopy]:
        """The state, locked while it is copied into ``folder``, which is the caller's to remove, to be read from there.

        Raises StoreLocked while a crawl uses the state, StoreError if it cannot be copied, or nothing of it can be
        opened.
        """
        raise StoreError(f"A {cls.scheme} state cannot be repaired. Restore it from a backup.")


# ----------------------------------------------------------------------------------------------------------------------
# What a backend gives: ordered bytes.


T = TypeVar("T")


class KeyValueStore(Place):
    """Keys and values in byte order at a ``location``, written in atomic batches.

    ``named_by`` is what a message tells the user to change: the setting or the option that named the location.

    Every method may raise StoreError.
    """

    #: Whether others may write to the state while it is open here.
    is_shared: ClassVar[bool] = False
    #: Writes that were tried since the opening: what was read before the last one may be another by now.
    _writes = 0
    #: No row of a page with a larger id has ever been there, so there is no old one to look for.
    _largest = 2**64 - 1

    def __init__(self, location: str, named_by: str = SETTING) -> None:
        self.location = location
        self.named_by = named_by

    # For whoever counts, checks or mends a state; those who judge pages use the methods of ``PageStore``.

    def rows(self, prefix: bytes) -> Iterator[Row]:
        """All rows that begin with ``prefix``, in byte order; see ``layout`` for what they mean."""
        return self._scan(prefix)

    def unpacked(self, prefix: bytes, unpack: Callable[[bytes, bytes], T]) -> Iterator[T]:
        """What all rows that begin with ``prefix`` hold; raises StoreDamaged where ``unpack`` raises ValueError."""
        try:
            for key, packed in self.rows(prefix):
                yield unpack(key, packed)
        except ValueError as error:
            raise self.damaged(str(error)) from None

    def count_rows(self, prefix: bytes) -> int:
        """How many rows begin with ``prefix``, which is a letter."""
        return sum(1 for _ in self._scan(prefix))

    def value(self, key: bytes) -> bytes | None:
        """The value of one row."""
        return self._get(key)

    def write(self, changes: Changes) -> None:
        """Apply the changes, and wait for the disk; nobody looks whether they make sense."""
        self._write(changes, sync=True)

    def damaged(self, what: str) -> StoreDamaged:
        """The error to raise for a row that cannot be what was written."""
        return StoreDamaged(
            f"The state at {self.location} is damaged: {what}. It is unchanged. Restore it from a backup, save what "
            f"can be read with: scrapy neardup check --repair TO, or set {SETTING} to a new path to begin another "
            "state."
        )

    def out_of_reach(self, error: Exception) -> StoreError:
        """The error to raise where the disk or the system does not let us, and the state may be as it should."""
        return StoreError(
            f"The state at {self.location} cannot be read or written: {error}. Check the disk (is it full, is it "
            "there, may you write to it?) and start again. If that does not help, run: scrapy neardup check"
        )

    @abstractmethod
    def size(self) -> int:
        """How much room it takes, in bytes."""

    @abstractmethod
    def compact(self) -> None:
        """Give back the room of what was deleted; takes as much room again while it works."""

    def file_problems(self) -> Iterator[str]:
        """What is wrong with the files themselves, if that can be told beside reading all rows."""
        yield from ()

    # For the methods of ``PageStore``; a backend has these.

    @abstractmethod
    def _connect(self) -> None:
        """Open what is at ``self.location``, alone."""

    @abstractmethod
    def _disconnect(self) -> None:
        """Let go of it; must not fail a second time."""

    @abstractmethod
    def _get(self, key: bytes) -> bytes | None: ...

    def _get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of several keys; a backend may have a quicker way than one after the other."""
        return [self._get(key) for key in keys]

    @abstractmethod
    def _scan(self, prefix: bytes, *, reverse: bool = False) -> Iterator[Row]:
        """All keys that begin with ``prefix``, in byte order, with their values."""

    def _rows_from(self, low: bytes, prefix: bytes) -> Iterator[Row]:
        """The same from the key ``low`` on; a backend that goes there at once does not pass what was deleted before."""
        return (row for row in self._scan(prefix) if row[0] >= low)

    @abstractmethod
    def _write(self, changes: Changes, *, sync: bool) -> None:
        """Apply all changes or none, and keep the tally up; with ``sync`` they, and all before, survive a power cut."""
