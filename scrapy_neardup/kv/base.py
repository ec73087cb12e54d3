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

#: Key and value.
Row = tuple[bytes, bytes]


@dataclass(slots=True)
class Changes:
    """One atomic batch of puts and deletes.

    ``sights``: values of URL rows on a server; each is written only if its URL still names the same page and was not
    seen later.
    """

    puts: dict[bytes, bytes] = field(default_factory=dict)
    deletes: set[bytes] = field(default_factory=set)
    sights: dict[bytes, bytes] = field(default_factory=dict)

    def put(self, key: bytes, value: bytes) -> None:
        """Write a value."""
        self.deletes.discard(key)
        self.puts[key] = value

    def delete(self, key: bytes) -> None:
        """Remove a key."""
        self.puts.pop(key, None)
        self.deletes.add(key)


class UnreadableError(Exception):
    """A row cannot be read."""


class DamagedCopy(Protocol):
    """Rows of a damaged state in byte order."""

    def rows(self, low: bytes, high: bytes, *, reverse: bool = False) -> Iterator[Row]:
        """Yield the rows from ``low`` to before ``high``. Raises UnreadableError at the first unreadable row."""


@contextmanager
def copying(source: Path) -> Iterator[None]:
    """Translate errors of copying into StoreError."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"The state at {source} cannot be copied: {error}. Check that its files can be read and that the disk "
            "has room for two copies next to the new state."
        ) from None


def hopeless(source: Path, why: str) -> StoreError:
    """Return the error for a state whose copy cannot even be opened."""
    return StoreError(f"Nothing in the state at {source} can be read ({why}). Restore it from a backup.")


#: Characters that no path of a state may have: systems refuse NUL, terminals act on the others.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
#: The setting that names the state of a crawl.
SETTING = "NEARDUP_STORE"


_USER = re.compile(r"(?<=//)[^/?#]*@")
_PASSWORD = re.compile(r"([?&])[^=&]*password=[^&]*&?", re.IGNORECASE)


def without_password(url: str) -> str:
    """Return a URL without user and password, for messages.

    >>> without_password("redis://crawler:s3cret@cache.example:6379/0?state=news")
    'redis://cache.example:6379/0?state=news'
    >>> without_password("leveldb:///data/state"), without_password("redis://:p@ss@host"), without_password("memory:")
    ('leveldb:///data/state', 'redis://host', 'memory:')
    >>> without_password("redis+sentinel://a,b/news?sentinel_password=s3cret&state=news")
    'redis+sentinel://a,b/news?state=news'
    """
    return _PASSWORD.sub(r"\1", _USER.sub("", url)).rstrip("?&")


class Place(ABC):
    """Where states of one kind lie. By default a location is a path; servers have URLs of their own."""

    #: The scheme of their URLs.
    scheme: ClassVar[str]
    #: Whether a state outlives its store.
    lasts: ClassVar[bool] = True

    @classmethod
    def form(cls) -> str:
        """Return the form of the URLs, for messages."""
        return f"{cls.scheme}:///path"

    @classmethod
    def read_url(cls, parts: SplitResult) -> str:
        """Return the location in a URL, equal for all URLs of one place.

        Raises ValueError whose text continues a sentence: "which …".
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
        """Return the URL of a location."""
        return cls.scheme + Path(location).as_uri().removeprefix("file")

    @classmethod
    def misplaced(cls, location: str) -> str:
        """Return a hint if a new state would lie in the root directory; else an empty string."""
        path = Path(location)
        if str(path.parent) != path.anchor or cls.exists(location):
            return ""
        here = cls.url(str(Path(path.name).absolute()))
        return f"{location} is in the root directory. For the working directory, write {here}."

    @classmethod
    @abstractmethod
    def exists(cls, location: str) -> bool:
        """Whether there is a state, sound or not."""

    @classmethod
    def witness_of(cls, location: str) -> Path | None:
        """Return the path of the witness file, or None."""
        return None

    @classmethod
    def parts(cls, location: str) -> str:
        """Name the files that belong together, for messages."""
        return location

    @classmethod
    def pieces(cls, location: str) -> tuple[Path, ...]:
        """Return the files and folders of a closed state."""
        return ()

    @classmethod
    def lock_of(cls, location: str) -> Path:
        """Return the lock file, which exists while the state is open."""
        return Path(f"{location}.lock")

    @classmethod
    def damaged_copy(cls, location: str, folder: Path) -> AbstractContextManager[DamagedCopy]:
        """Copy the state under its lock into ``folder``, which the caller removes, and open the copy.

        Raises StoreLocked while a crawl uses the state, StoreError if it cannot be copied or opened.
        """
        raise StoreError(f"A {cls.scheme} state cannot be repaired. Restore it from a backup.")


T = TypeVar("T")


class KeyValueStore(Place):
    """Keys and values in byte order at a ``location``, written in atomic batches.

    ``named_by``: the setting or option that named the location, for messages. Every method may raise StoreError.
    """

    #: Whether other processes may write at the same time.
    is_shared: ClassVar[bool] = False
    #: Writes since the opening; a write invalidates earlier reads.
    _writes = 0
    #: No page with a larger id ever existed, so its rows need no look-up.
    _largest = 2**64 - 1

    def __init__(self, location: str, named_by: str = SETTING) -> None:
        self.location = location
        self.named_by = named_by

    # For commands that count, verify or repair. The judge uses the methods of ``PageStore``.

    def rows(self, prefix: bytes) -> Iterator[Row]:
        """Yield all rows with a prefix, in byte order; see ``layout``."""
        return self._scan(prefix)

    def unpacked(self, prefix: bytes, unpack: Callable[[bytes, bytes], T]) -> Iterator[T]:
        """Yield unpacked rows. Raises StoreDamaged where ``unpack`` raises ValueError."""
        try:
            for key, packed in self.rows(prefix):
                yield unpack(key, packed)
        except ValueError as error:
            raise self.damaged(str(error)) from None

    def count_rows(self, prefix: bytes) -> int:
        """Count the rows of a prefix, which is a letter."""
        return sum(1 for _ in self._scan(prefix))

    def value(self, key: bytes) -> bytes | None:
        """Return the value of one row."""
        return self._get(key)

    def write(self, changes: Changes) -> None:
        """Apply changes unchecked, and wait for the disk."""
        self._write(changes, sync=True)

    def damaged(self, what: str) -> StoreDamaged:
        """Return the error for a row that is not what was written."""
        return StoreDamaged(
            f"The state at {self.location} is damaged: {what}. It is unchanged. Restore it from a backup, save what "
            f"can be read with: scrapy neardup check --repair TO, or set {SETTING} to a new path to begin another "
            "state."
        )

    def out_of_reach(self, error: Exception) -> StoreError:
        """Return the error for a failure of disk or system; the state may be sound."""
        return StoreError(
            f"The state at {self.location} cannot be read or written: {error}. Check the disk (is it full, is it "
            "there, may you write to it?) and start again. If that does not help, run: scrapy neardup check"
        )

    @abstractmethod
    def size(self) -> int:
        """Return the size in bytes."""

    @abstractmethod
    def compact(self) -> None:
        """Release the space of deleted rows. It needs as much space again meanwhile."""

    def file_problems(self) -> Iterator[str]:
        """Yield problems of the files that reading all rows would not show."""
        yield from ()

    # For ``PageStore``; an engine implements these.

    @abstractmethod
    def _connect(self) -> None:
        """Open the state at ``self.location`` exclusively."""

    @abstractmethod
    def _disconnect(self) -> None:
        """Close it. A second call does nothing."""

    @abstractmethod
    def _get(self, key: bytes) -> bytes | None: ...

    def _get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values of several keys."""
        return [self._get(key) for key in keys]

    @abstractmethod
    def _scan(self, prefix: bytes, *, reverse: bool = False) -> Iterator[Row]:
        """Yield the rows with a prefix."""

    def _rows_from(self, low: bytes, prefix: bytes) -> Iterator[Row]:
        """Yield the rows with a prefix from key ``low`` on. An engine that seeks does not pass deleted rows."""
        return (row for row in self._scan(prefix) if row[0] >= low)

    @abstractmethod
    def _write(self, changes: Changes, *, sync: bool) -> None:
        """Apply all changes or none, and update the tally. ``sync``: they and all earlier ones survive a power cut."""
