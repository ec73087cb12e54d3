"""The rows of a state as they lie, for whoever counts, checks or mends them past the methods of ``Store``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from scrapy_neardup.stores import Evidence, Record, Store
from scrapy_neardup.stores.changes import Changes
from scrapy_neardup.stores.layout import last_id

T = TypeVar("T")
Row = tuple[bytes, bytes]


class Watch(Protocol):
    """Sees items go by, to show how far the work has come."""

    def __call__(self, iterable: Iterable[T], total: int | None = None, what: str = "pages") -> Iterable[T]:
        """The same items."""


def unwatched(iterable: Iterable[T], total: int | None = None, what: str = "pages") -> Iterable[T]:
    """The items, watched by nobody."""
    return iterable


def rows(store: Store, prefix: bytes) -> Iterator[Row]:
    """All rows that begin with ``prefix``, in byte order."""
    return store._scan(prefix)


def value(store: Store, key: bytes) -> bytes | None:
    """The value of one row."""
    return store._get(key)


def write(store: Store, changes: Changes) -> None:
    """Apply the changes, and wait for the disk."""
    store._write(changes, sync=True)


def with_evidence(store: Store, watch: Watch = unwatched) -> Iterator[tuple[Record, Evidence | None]]:
    """All records with what can be told of their pages, by id; two scans side by side, not a look-up for each."""
    told = rows(store, b"e")
    key, packed = next(told, (b"", b""))
    for record in watch(store.records(), store.pages):
        while key and last_id(key) < record.id:
            key, packed = next(told, (b"", b""))
        yield record, _unpacked(store, packed) if key and last_id(key) == record.id else None


def _unpacked(store: Store, packed: bytes) -> Evidence:
    try:
        return Evidence.unpack(packed)
    except ValueError as error:
        raise store._damaged(str(error)) from None
