"""What a backend gives: ordered bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from scrapy_neardup.errors import StoreDamaged
from scrapy_neardup.stores.changes import Changes


class OrderedBytes(ABC):
    """Keys and values in byte order at a ``location``, written in atomic batches.

    Every method may raise StoreError.
    """

    #: The scheme of the URLs that open it.
    scheme: ClassVar[str]

    def __init__(self, location: str) -> None:
        self.location = location

    @abstractmethod
    def size(self) -> int:
        """How much room it takes, in bytes."""

    @abstractmethod
    def compact(self) -> None:
        """Give back the room of what was deleted; takes as much room again while it works."""

    @abstractmethod
    def _connect(self) -> None:
        """Open what is at ``self.location``, alone."""

    @abstractmethod
    def _disconnect(self) -> None:
        """Let go of it; must not fail a second time."""

    @abstractmethod
    def _get(self, key: bytes) -> bytes | None: ...

    @abstractmethod
    def _scan(self, prefix: bytes, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """All keys that begin with ``prefix``, in byte order, with their values."""

    @abstractmethod
    def _write(self, changes: Changes, *, sync: bool) -> None:
        """Apply all changes or none; with ``sync`` they, and all before them, survive a power cut."""

    def _damaged(self, what: str) -> StoreDamaged:
        return StoreDamaged(
            f"The state at {self.location} is damaged: {what}. It was not touched. Restore it from a backup, save what "
            "can be read with: scrapy neardup check --repair TO, or set NEARDUP_STORE to a new path to begin another "
            "state."
        )
