"""A state in memory: for trials, tests, and crawls without a history."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import ClassVar
from urllib.parse import SplitResult

from scrapy_neardup.kv.base import Changes, Row
from scrapy_neardup.state import layout
from scrapy_neardup.state.pages import PageStore

# Rows lie in buckets by prefix, so a scan touches a handful. The longest scanned prefixes are a letter and 8 bytes, and
# a letter and a key for postings.


_PREFIX, _OF_POSTINGS = 9, 6
_POSTINGS = b"k"


def bucket(key: bytes) -> bytes:
    """Return the bucket of a row."""
    return key[: _OF_POSTINGS if key.startswith(_POSTINGS) else _PREFIX]


def is_in_one(prefix: bytes) -> bool:
    """Whether all rows with a prefix are in one bucket."""
    return len(prefix) >= (_OF_POSTINGS if prefix.startswith(_POSTINGS) else _PREFIX)


#: Bytes of a record's key.
_ID_KEY = 9


class MemoryStore(PageStore):
    """Dictionaries of this process."""

    scheme: ClassVar[str] = "memory"
    lasts: ClassVar[bool] = False
    tallied: ClassVar[bool] = False

    @classmethod
    def form(cls) -> str:
        return "memory:"

    @classmethod
    def read_url(cls, parts: SplitResult) -> str:
        """Return one location for all; each store is still a state of its own."""
        return cls.form()

    @classmethod
    def url(cls, location: str) -> str:
        return cls.form()

    @classmethod
    def exists(cls, location: str) -> bool:
        return False

    #: All ids in order, built on first use.
    _ids: list[int] | None = None

    def _connect(self) -> None:
        self._buckets: dict[bytes, dict[bytes, bytes]] = {}

    def _disconnect(self) -> None:
        self._buckets = {}

    def _get(self, key: bytes) -> bytes | None:
        return self._buckets.get(bucket(key), {}).get(key)

    def _scan(self, prefix: bytes, *, reverse: bool = False) -> Iterator[Row]:
        if is_in_one(prefix):
            buckets = [self._buckets.get(bucket(prefix), {})]
        else:
            buckets = [rows for name, rows in self._buckets.items() if name.startswith(prefix)]
        yield from sorted(
            (row for rows in buckets for row in rows.items() if row[0].startswith(prefix)), reverse=reverse
        )

    def _rows_from(self, low: bytes, prefix: bytes) -> Iterator[Row]:
        if prefix != b"r" or len(low) != _ID_KEY:
            yield from super()._rows_from(low, prefix)
            return
        if self._ids is None:
            self._ids = sorted(layout.last_id(key) for key in self._buckets if key.startswith(prefix))
        at = bisect_left(self._ids, layout.last_id(low))
        while at < len(self._ids):
            key = layout.record_key(self._ids[at])
            yield key, self._buckets[bucket(key)][key]
            at += 1

    def _apply(self, changes: Changes, *, sync: bool) -> None:
        if self._ids is not None:
            for key in changes.deletes | changes.puts.keys():
                if key.startswith(b"r"):
                    self._keep_in_order(self._ids, layout.last_id(key), is_there=key in changes.puts)
        for key in changes.deletes:
            rows = self._buckets.get(bucket(key))
            if rows is not None and rows.pop(key, None) is not None and not rows:
                del self._buckets[bucket(key)]
        for key, value in changes.puts.items():
            self._buckets.setdefault(bucket(key), {})[key] = value

    def _keep_in_order(self, ids: list[int], id: int, *, is_there: bool) -> None:
        at = bisect_left(ids, id)
        was_there = at < len(ids) and ids[at] == id
        if is_there and not was_there:
            ids.insert(at, id)
        elif was_there and not is_there:
            del ids[at]

    def size(self) -> int:
        """Return the bytes of keys and values, without Python's overhead."""
        return sum(len(k) + len(v) for rows in self._buckets.values() for k, v in rows.items())

    def compact(self) -> None:
        """Do nothing."""
