"""The interface of a key-value store, and what all engines share: locations, batches and errors."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar
from urllib.parse import SplitResult
from urllib.request import url2pathname

from filelock import FileLock

from scrapy_neardup.errors import StoreDamaged, StoreError
from scrapy_neardup.kv.lock import ScratchDirectory, is_held, lock

if TYPE_CHECKING:
    from scrapy_neardup.kv.tally import RowTally, Witness

T = TypeVar("T")
#: Key and value.
Row = tuple[bytes, bytes]
#: The setting that names the state of a crawl.
SETTING = "NEARDUP_STORE"
#: Larger than every id.
NO_ID = 2**64 - 1


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


class KeyValueStore(ABC):
    """Keys and values in byte order, written in atomic batches. Every method may raise StoreError."""

    #: The scheme of its URLs.
    scheme: str
    location: str
    #: Whether the rows outlive the store.
    is_persistent: bool = True
    #: Whether nobody opens the rows again. Then nothing is saved at the end.
    is_scratch: bool = False
    #: Whether other processes may write at the same time.
    is_shared: ClassVar[bool] = False
    #: No record has a larger id. The page store lowers it to the newest id, which saves look-ups.
    largest: int = NO_ID

    #: The checksum of all rows; None for a store without one.
    tally: RowTally | None = None
    #: Whether all rows have to be read and compared with the tally.
    must_verify: bool = False

    def accept(self) -> None:  # noqa: B027 - most stores have nothing to do
        """Mark the state as open. Everything that can refuse it was read; from here on it may change."""

    def keep_secret(self, secret: bytes) -> None:  # noqa: B027 - most stores have nothing to do
        """Keep the secret of the state also outside its rows: a repair needs it."""

    @abstractmethod
    def get(self, key: bytes) -> bytes | None:
        """Return the value of a row, or None."""

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values of several keys."""
        return [self.get(key) for key in keys]

    @abstractmethod
    def scan(self, prefix: bytes, *, start: bytes = b"", reverse: bool = False) -> Iterator[Row]:
        """Yield the rows with a prefix, in byte order; none before the key ``start``, where engines seek."""

    def count(self, prefix: bytes) -> int:
        """Count the rows of a prefix, which is a letter."""
        return sum(1 for _ in self.scan(prefix))

    @abstractmethod
    def write(self, changes: Changes, *, sync: bool) -> None:
        """Apply all changes or none. ``sync``: they and all earlier ones survive a power cut."""

    def run(self, work: Callable[[], T]) -> T:
        """Return the result of work that reads rows and writes one batch. A shared store repeats the work until nobody
        else changes the rows that it read.
        """
        return work()

    @abstractmethod
    def size(self) -> int:
        """Return the size in bytes."""

    def file_problems(self) -> Iterator[str]:
        """Yield problems of the files that reading all rows would not show."""
        yield from ()

    @abstractmethod
    def close(self, last: Changes | None = None) -> None:
        """Write the last changes, and close."""

    def damaged(self, what: str) -> StoreDamaged:
        """Return the error for a damaged row."""
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


class WrappedStore(KeyValueStore):
    """Passes every call on to ``base``. Subclasses change some of them."""

    def __init__(self, base: KeyValueStore) -> None:
        self.base = base
        self.scheme, self.location, self.is_persistent = base.scheme, base.location, base.is_persistent

    def get(self, key: bytes) -> bytes | None:
        return self.base.get(key)

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return self.base.get_all(keys)

    def scan(self, prefix: bytes, *, start: bytes = b"", reverse: bool = False) -> Iterator[Row]:
        return self.base.scan(prefix, start=start, reverse=reverse)

    def write(self, changes: Changes, *, sync: bool) -> None:
        self.base.write(changes, sync=sync)

    def size(self) -> int:
        return self.base.size()

    def file_problems(self) -> Iterator[str]:
        return self.base.file_problems()

    def close(self, last: Changes | None = None) -> None:
        self.base.close(last)


#: Characters that no path of a state may have: systems refuse NUL, terminals act on the others.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Engine(KeyValueStore):
    """A key-value store with a URL. By default its location is a path.

    ``named_by``: the setting or option that named the location, for messages.
    """

    #: The form of its URLs behind the scheme, for messages.
    form: ClassVar[str] = "///path"

    def __init__(self, location: str, named_by: str = SETTING) -> None:
        self.location = location
        self.named_by = named_by

    @classmethod
    def read_url(cls, parts: SplitResult) -> str:
        """Return the location in a URL, equal for all URLs of one place.

        Raises ValueError with the rest of a sentence: "which …".
        """
        if parts.netloc or not parts.path.startswith("/") or not parts.path.strip("/"):
            raise ValueError(f"which names no absolute path. Write three slashes: {cls.scheme}:{cls.form}")
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
    @abstractmethod
    def exists(cls, location: str) -> bool:
        """Whether there is a state, sound or not."""


class FileEngine(Engine):
    """A database in its own files, which one process opens at a time: under its lock, or only to be read.

    ``CheckedStore`` opens it for writing, ``Snapshot`` for reading. Until ``accept`` no file changes for good.
    """

    #: The mode of the folder with the lock, if that is made.
    folder_mode: ClassVar[int] = 0o777
    #: Whether the opened files are as a clean close left them, as far as the engine can tell.
    is_untouched = False
    #: The library's errors, and its answer after a close.
    library_error: type[Exception]
    closed_error: type[Exception]

    @classmethod
    @abstractmethod
    def witness_of(cls, location: str) -> Path:
        """Return the path of the witness file."""

    @classmethod
    @abstractmethod
    def parts(cls, location: str) -> str:
        """Name the files that belong together, for messages."""

    @classmethod
    def lock_of(cls, location: str) -> Path:
        """Return the lock file."""
        return Path(f"{location}.lock")

    def __init__(self, location: str, named_by: str = SETTING) -> None:
        super().__init__(location, named_by)
        self._lock: FileLock | None = None
        self._scratch: ScratchDirectory | None = None

    def check_place(self) -> None:
        """Raise StoreError or StoreMismatch if something else lies at the location. It writes nothing."""

    def lock(self) -> None:
        """Take the lock. Raises StoreLocked, and StoreError if the state cannot lie there."""
        self.check_place()
        path = self.lock_of(self.location)
        try:
            path.parent.mkdir(mode=self.folder_mode, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"The directory of the state at {self.location} cannot be made: {error}. Set {self.named_by} to "
                "another path."
            ) from error
        self._lock = lock(path, self.location)

    def unlock(self) -> None:
        """Release the lock. A second call does nothing."""
        if self._lock is not None:
            self._lock.release()

    def is_held(self) -> bool:
        """Whether somebody, even this process, holds the lock."""
        return is_held(self.lock_of(self.location))

    @abstractmethod
    def rows(self, low: bytes, high: bytes | None, *, reverse: bool = False) -> Iterator[Row]:
        """Yield the rows from ``low`` to before ``high``, or to the last one, in byte order."""

    def scan(self, prefix: bytes, *, start: bytes = b"", reverse: bool = False) -> Iterator[Row]:
        return self.rows(max(start, prefix), after(prefix), reverse=reverse)

    @abstractmethod
    def is_new(self) -> bool:
        """Whether the location has no database yet."""

    @abstractmethod
    def create(self) -> None:
        """Make and open the database of a locked location."""

    @abstractmethod
    def open(self, witness: Witness | None, *, is_held: bool) -> None:
        """Open the database at one moment, and change nothing. ``is_held``: another holder may go on writing.

        Raises Moving if files changed meanwhile, StoreDamaged, StoreError.
        """

    def settle(self) -> None:
        """The state is marked open: make sure that its largest file says so too."""

    @abstractmethod
    def close_files(self) -> None:
        """Close the database. It may be open in part."""
        if self._scratch is not None:
            self._scratch.remove()
            self._scratch = None

    @abstractmethod
    def digest(self) -> str:
        """Return a digest of the closed files for the witness. Raises OSError."""

    def close(self, last: Changes | None = None) -> None:
        """``CheckedStore`` and ``Snapshot`` write the last changes."""
        self.close_files()

    # Damaged states.

    @classmethod
    @contextmanager
    def damaged_copy(cls, location: str, folder: Path) -> Iterator[FileEngine]:
        """Copy the state under its lock into ``folder``, which the caller removes, and open the copy.

        Its ``rows`` raise StoreError at the first row that cannot be read. Raises StoreLocked while a crawl uses the
        state, StoreError if it cannot be copied or opened.
        """
        engine = cls(location)
        engine.lock()
        try:
            engine.copy_damaged(folder)
        except OSError as error:
            raise StoreError(
                f"The state at {location} cannot be copied: {error}. Check that its files can be read and that the "
                "disk has room for two copies next to the new state."
            ) from None
        finally:
            engine.unlock()
        try:
            engine.open_damaged(folder)
            yield engine
        finally:
            engine.close_files()

    @abstractmethod
    def copy_damaged(self, folder: Path) -> None:
        """Copy the files of the locked state into a folder. Raises OSError."""

    @abstractmethod
    def open_damaged(self, folder: Path) -> None:
        """Open that copy. Raises StoreError if nothing can be read."""

    # Errors.

    @abstractmethod
    def is_outside(self, error: BaseException) -> bool:
        """Whether an error of the library comes from disk or system, not from the rows."""

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Raise errors of the library or the system as a StoreError."""
        try:
            yield
        except self.errors as error:
            raise self.translated(error) from error

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """Errors of the library and of the system."""
        return self.library_error, self.closed_error, OSError

    def translated(self, error: Exception) -> StoreError:
        """Return the StoreError for an error of the library or the system."""
        if isinstance(error, self.closed_error):
            return StoreError(f"The state at {self.location} is closed.")
        if isinstance(error, self.library_error) and not self.is_outside(error):
            return self.damaged(str(error))
        return self.out_of_reach(error)

    def uncopied(self, error: OSError) -> StoreError:
        """Return the error for a copy to read from that could not be made."""
        return StoreError(
            f"The state at {self.location} cannot be copied for reading: {error}. Check that its files can be read and "
            "that the disk has room for a copy."
        )

    def hopeless(self, why: object) -> StoreError:
        """Return the error for a damaged state if even its copy cannot be opened."""
        return StoreError(
            f"Nothing in the state at {self.location} can be read ({why}). If the disk is full, make room "
            "and try again; else restore it from a backup."
        )


class Moving(Exception):
    """Files changed while they were read; try again."""


def after(prefix: bytes) -> bytes | None:
    """Return the first key behind all keys with a prefix; None if there is none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


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
