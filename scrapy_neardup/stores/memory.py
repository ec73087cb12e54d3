"""State that lasts as long as the crawl: for trying out, for tests, for crawls that need no yesterday."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar
from urllib.parse import SplitResult

from scrapy_neardup.stores import layout
from scrapy_neardup.stores.base import Store
from scrapy_neardup.stores.changes import Changes, Row

# The longest prefix that is ever scanned is a letter and 8 bytes; keys that share it live in one bucket, so
# neither a scan nor a write touches more than a handful of keys.
_PREFIX = 9


class MemoryStore(Store):
    """Dictionaries in this process."""

    scheme: ClassVar[str] = "memory"
    lasts: ClassVar[bool] = False
    tallied: ClassVar[bool] = False

    @classmethod
    def form(cls) -> str:
        return "memory:"

    @classmethod
    def read_url(cls, parts: SplitResult) -> str:
        """The same for all; each store is a state of its own nevertheless."""
        return cls.form()

    @classmethod
    def url(cls, location: str) -> str:
        return cls.form()

    @classmethod
    def exists(cls, location: str) -> bool:
        return False

    def _connect(self) -> None:
        self._buckets: dict[bytes, dict[bytes, bytes]] = {}

    def _disconnect(self) -> None:
        self._buckets = {}

    def _get(self, key: bytes) -> bytes | None:
        return self._buckets.get(key[:_PREFIX], {}).get(key)

    def _scan(self, prefix: bytes, *, reverse: bool = False) -> Iterator[Row]:
        if len(prefix) == _PREFIX:
            found = self._buckets.get(prefix, {})
        else:
            found = {key: value for bucket in self._buckets.values() for key, value in bucket.items()}
        yield from sorted(((k, v) for k, v in found.items() if k.startswith(prefix)), reverse=reverse)

    def postings(self, key: int, limit: int) -> list[int]:
        bucket = self._buckets.get(layout.posting_prefix(key), {})
        return [layout.last_id(posting) for posting in sorted(bucket, reverse=True)[:limit]]

    def _apply(self, changes: Changes, *, sync: bool) -> None:
        for key in changes.deletes:
            bucket = self._buckets.get(key[:_PREFIX])
            if bucket is not None and bucket.pop(key, None) is not None and not bucket:
                del self._buckets[key[:_PREFIX]]
        for key, value in changes.puts.items():
            self._buckets.setdefault(key[:_PREFIX], {})[key] = value

    def size(self) -> int:
        """The bytes of keys and values; Python's own overhead is several times that."""
        return sum(len(k) + len(v) for bucket in self._buckets.values() for k, v in bucket.items())

    def compact(self) -> None:
        """Nothing to do: what was deleted takes no room here."""
