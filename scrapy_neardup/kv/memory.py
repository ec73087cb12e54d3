"""Rows in memory: a store, or writes above another one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby, islice
from operator import itemgetter
from typing import TypeVar
from urllib.parse import SplitResult

from sortedcontainers import SortedSet

from scrapy_neardup.kv.base import SETTING, Changes, Engine, KeyValueStore, Row, after

V = TypeVar("V")
#: Rows to give first, as the caller may want few. At most so many at a time, and gone keys that are no burden.
_FEW, _MANY = 16, 10_000


class SortedRows(dict[bytes, V]):
    """Rows that ``change`` changes and ``scan`` sorts. The order costs hardly anything before the first scan.

    A scan sorts the keys that were added since the last one, and skips keys that are gone.
    """

    def __init__(self, rows: Mapping[bytes, V] | None = None) -> None:
        super().__init__(rows or {})
        self._added: list[bytes] = [*self]
        self._sorted = SortedSet()

    def change(self, rows: Mapping[bytes, V], gone: Iterable[bytes] = ()) -> None:
        """Remove rows, and put others."""
        for key in gone:
            self.pop(key, None)
        self._added += [key for key in rows if key not in self]
        self.update(rows)

    def scan(self, prefix: bytes, start: bytes, *, reverse: bool) -> Iterator[tuple[bytes, V]]:
        """See ``KeyValueStore.scan``. The caller may change rows before it goes on."""
        low, high, many = max(start, prefix), after(prefix), _FEW
        while True:
            if self._added:
                self._sorted.update(self._added)
                self._added.clear()
            if len(self._sorted) > 2 * len(self) + _MANY:
                self._sorted = SortedSet(self)
            keys = self._sorted.irange(low, high, (True, False), reverse)
            if not (few := [*islice((key for key in keys if key in self), many)]):
                return
            yield from [(key, self[key]) for key in few]
            low, high = (low, few[-1]) if reverse else (few[-1] + b"\0", high)
            many = min(2 * many, _MANY)


class Memory(Engine):
    """A dictionary of this process: for trials, tests, and crawls without a history."""

    scheme = "memory"
    form = ""
    is_persistent = False

    def __init__(self, location: str = "memory:", named_by: str = SETTING) -> None:
        super().__init__(location, named_by)
        self._rows = SortedRows[bytes]()

    @classmethod
    def read_url(cls, parts: SplitResult) -> str:
        """Return one location for all; each store is another state."""
        return "memory:"

    @classmethod
    def url(cls, location: str) -> str:
        return "memory:"

    @classmethod
    def exists(cls, location: str) -> bool:
        return False

    def get(self, key: bytes) -> bytes | None:
        return self._rows.get(key)

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [*map(self._rows.get, keys)]

    def scan(self, prefix: bytes, *, start: bytes = b"", reverse: bool = False) -> Iterator[Row]:
        return self._rows.scan(prefix, start, reverse=reverse)

    def write(self, changes: Changes, *, sync: bool) -> None:
        self._rows.change(changes.puts, changes.deletes)

    def size(self) -> int:
        """Return the bytes of keys and values, without Python's overhead."""
        return sum(len(key) + len(value) for key, value in self._rows.items())

    def close(self, last: Changes | None = None) -> None:
        if last is not None:
            self.write(last, sync=False)
        self._rows.clear()


class Transaction(KeyValueStore):
    """Keeps writes in memory, and reads through them to a base. Nothing commits them: a dry run discards them."""

    is_scratch = True

    def __init__(self, base: KeyValueStore) -> None:
        self.base = base
        self.scheme, self.location, self.is_persistent = base.scheme, base.location, base.is_persistent
        #: Rows in memory. None hides a row of the base.
        self._rows = SortedRows[bytes | None]()

    def get(self, key: bytes) -> bytes | None:
        return self._rows[key] if key in self._rows else self.base.get(key)

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [*map(self._rows.get, keys, self.base.get_all(keys))]

    def scan(self, prefix: bytes, *, start: bytes = b"", reverse: bool = False) -> Iterator[Row]:
        above = self._rows.scan(prefix, start, reverse=reverse)
        below = self.base.scan(prefix, start=start, reverse=reverse)
        for key, same in groupby(merge(above, below, key=itemgetter(0), reverse=reverse), itemgetter(0)):
            if (value := self._rows.get(key, next(same)[1])) is not None:
                yield key, value

    def write(self, changes: Changes, *, sync: bool) -> None:
        self._rows.change({**dict.fromkeys(changes.deletes), **changes.puts})

    def size(self) -> int:
        return self.base.size()

    def close(self, last: Changes | None = None) -> None:
        self.base.close()
