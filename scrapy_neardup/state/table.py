"""Small tables of a state: rows of one sort below one letter, of which a bounded number stays."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from scrapy_neardup.kv.base import Changes, Row
from scrapy_neardup.state.pages import PageStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Table(Generic[T]):
    """A table below ``prefix``; ``name`` stands in messages.

    ``encode`` returns the row of a value, ``decode`` the value of a row. Above ``limit`` rows, those with the least
    ``age`` go.
    """

    prefix: bytes
    name: str
    encode: Callable[[T], Row]
    decode: Callable[[bytes, bytes], T]
    limit: int
    age: Callable[[T], Any]

    def unpack(self, key: bytes, packed: bytes) -> T:
        """Return the value of a row. Raises ValueError for a damaged one."""
        try:
            value = self.decode(key, packed)
        except (ValueError, TypeError, KeyError, AttributeError, struct.error):
            raise ValueError(f"the row of a {self.name} cannot be read ({packed[:60]!r})") from None
        if self.encode(value)[0] != key:
            raise ValueError(f"the row {key!r} holds the {self.name} of another key")
        return value

    def read(self, store: PageStore) -> Iterator[T]:
        """Yield all values by key. Raises StoreDamaged."""
        return store.unpacked(self.prefix, self.unpack)

    def write(self, store: PageStore, *values: T) -> None:
        """Write values in one batch and wait for the disk. Rows above the limit go."""
        changes = Changes(dict(map(self.encode, values)))
        if any(store.value(key) is None for key in changes.puts):
            rows = {self.encode(value)[0]: value for value in (*self.read(store), *values)}
            for key in sorted(rows, key=lambda key: self.age(rows[key]), reverse=True)[self.limit :]:
                changes.delete(key)
        store.write(changes)
