"""Reading a state from end to end: records with their evidence, and who watches how far it has come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from scrapy_neardup.stores import Evidence, Record, Store
from scrapy_neardup.stores.layout import last_id

T = TypeVar("T")


class Watch(Protocol):
    """Sees items go by, to show how far the work has come."""

    def __call__(self, iterable: Iterable[T], total: int | None = None, what: str = "pages") -> Iterable[T]:
        """The same items."""


def unwatched(iterable: Iterable[T], total: int | None = None, what: str = "pages") -> Iterable[T]:
    """The items, watched by nobody."""
    return iterable


def with_evidence(store: Store, watch: Watch = unwatched) -> Iterator[tuple[Record, Evidence | None]]:
    """All records with what can be told of their pages, by id; two scans side by side, not a look-up for each."""
    kept = store.rows(b"e")
    key, packed = next(kept, (b"", b""))
    for record in watch(store.records(), store.pages):
        while key and last_id(key) < record.id:
            key, packed = next(kept, (b"", b""))
        yield record, _unpacked(store, packed) if key and last_id(key) == record.id else None


def _unpacked(store: Store, packed: bytes) -> Evidence:
    try:
        return Evidence.unpack(packed)
    except ValueError as error:
        raise store.damaged(str(error)) from None
