"""What a backend gives: ordered bytes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, TypeVar

from scrapy_neardup.errors import StoreDamaged, StoreError
from scrapy_neardup.stores.changes import Changes, Row
from scrapy_neardup.stores.place import SETTING, Place

T = TypeVar("T")


class OrderedBytes(Place):
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

    # For whoever counts, checks or mends a state; those who judge pages use the methods of ``Store``.

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

    # For the methods of ``Store``; a backend has these.

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
