"""Copies of damaged states, opened to be read as far as that goes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from scrapy_neardup.errors import StoreError
from scrapy_neardup.stores.changes import Row


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
