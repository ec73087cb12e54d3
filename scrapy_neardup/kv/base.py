"""The interface of a key-value store, and what all engines share: locations, batches and errors."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar
from urllib.parse import SplitResult
from urllib.request import url2pathname

from scrapy_neardup.errors import StoreDamaged, StoreError

if TYPE_CHECKING:
    from scrapy_neardup.kv.tally import RowTally

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
        self.deletes.discard(key)
        self.puts[key] = value

    def delete(self, key: bytes) -> None:
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
    #: For rows of one moment: whether another process uses the state, and the time in seconds since 1970.
    is_held: bool = False
    as_of: float = 0.0

    def accept(self) -> None:  # noqa: B027 - most stores have nothing to do
        """Mark the state as open. Everything that can refuse it was read; from here on it may change."""

    def keep_secret(self, secret: bytes) -> None:  # noqa: B027 - most stores have nothing to do
        """Keep the secret of the state also outside its rows: a repair needs it."""

    @abstractmethod
    def get(self, key: bytes) -> bytes | None:
        """Return the value of a row, or None."""

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
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

    def damage_error(self, what: str) -> StoreDamaged:
        return StoreDamaged(
            f"The state at {self.location} is damaged: {what}. It is unchanged. Restore it from a backup, save what "
            f"can be read with: scrapy neardup check --repair TO, or set {SETTING} to a new path to begin another "
            "state."
        )

    def out_of_reach(self, error: Exception) -> StoreError:
        """Return the error for a failure of disk or system; the state may be sound."""
        return StoreError(
            f"The state at {self.location} cannot be read or written: {error}. Check the disk (is it full, is it "
            "there, may you write to it?) and start again. If that does not help, save what can be read with: scrapy "
            "neardup check --repair TO"
        )


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
        return cls.scheme + Path(location).as_uri().removeprefix("file")

    @classmethod
    @abstractmethod
    def exists(cls, location: str) -> bool:
        """Whether there is a state, sound or not."""


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
