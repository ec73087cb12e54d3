"""Key-value stores that fail, count or wait at chosen calls, and rows that outlive a kill."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from scrapy_neardup.errors import StoreError
from scrapy_neardup.kv.base import Changes, KeyValueStore, Row
from scrapy_neardup.kv.memory import Memory, SortedRows
from scrapy_neardup.state.opening import open_rows
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.verifier import row_problems


class FaultyStore(KeyValueStore):
    """Passes every call on to ``base``, after ``before(name, argument)``, which may raise, count or wait.

    Names: get, get_all, scan, write, close; the argument is the key, the keys, the prefix or the changes.
    """

    def __init__(
        self, base: KeyValueStore, before: Callable[[str, object], object] = lambda name, argument: None
    ) -> None:
        self.base, self.before = base, before
        self.scheme, self.location = base.scheme, base.location
        self.is_persistent, self.is_scratch = base.is_persistent, base.is_scratch

    def get(self, key: bytes) -> bytes | None:
        self.before("get", key)
        return self.base.get(key)

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self.before("get_all", keys)
        return self.base.get_all(keys)

    def scan(self, prefix: bytes, *, start: bytes = b"", reverse: bool = False) -> Iterator[Row]:
        self.before("scan", prefix)
        return self.base.scan(prefix, start=start, reverse=reverse)

    def write(self, changes: Changes, *, sync: bool) -> None:
        self.before("write", changes)
        self.base.write(changes, sync=sync)

    def close(self, last: Changes | None = None) -> None:
        self.before("close", last)
        self.base.close(last)

    def size(self) -> int:
        return self.base.size()


class LastingRows(Memory):
    """Rows that stay after a close or a kill; the next one with the same rows finds them."""

    def __init__(self, rows: SortedRows[bytes]) -> None:
        super().__init__()
        self._rows = rows

    def close(self, last: Changes | None = None) -> None:
        if last is not None:
            self.write(last, sync=False)


class Disk:
    """Rows that outlive their store, and a write that fails: the N-th from now on, or none if N is 0."""

    def __init__(self) -> None:
        self.rows = SortedRows[bytes]()
        self.fail_at(0)

    def fail_at(self, write: int) -> None:
        self.writes, self.fails_at = 0, write

    def before(self, name: str, argument: object) -> None:
        if name == "write" or (name == "close" and argument is not None):
            self.writes += 1
            if self.writes == self.fails_at:
                raise StoreError("No space left on device.")

    def open(self) -> PageStore:
        return open_rows(FaultyStore(LastingRows(self.rows), self.before), {})


def lasting_state(rows: SortedRows[bytes]) -> PageStore:
    """Open the state in these rows, and roll back what a killed crawl left there."""
    return open_rows(LastingRows(rows), {})


def tally_problems(store: PageStore) -> list[str]:
    """Return where rows disagree with each other, and with the tally."""
    assert store.kv.tally is not None
    return [*row_problems(store.kv, store.kv.tally, store.hashes)]


def engine_of(store: PageStore) -> Any:
    """Return the engine of a state: ``write_rows`` writes unnoticed by its integrity."""
    return store.kv
