"""Rows in memory: a store of its own, or writes above another one."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterator, Sequence
from heapq import merge
from operator import itemgetter
from pathlib import Path
from urllib.parse import SplitResult

from scrapy_neardup.kv.base import SETTING, Changes, Engine, KeyValueStore, Row, WrappedStore
from scrapy_neardup.kv.leveldb import LevelDB
from scrapy_neardup.kv.options import DEFAULT, Options

#: With up to this many rows a scan searches all of them.
_FEW = 100
#: First bytes of a key by which the index finds it: a letter and 8 bytes; a letter and a key for postings.
_PREFIX, _OF_POSTINGS = 9, 6
_POSTINGS, _RECORDS = b"k", b"r"


class KeyIndex:
    """The keys of a dictionary in byte order. It costs nothing before the first scan."""

    def __init__(self, rows: Collection[bytes]) -> None:
        self._keys = rows
        #: Keys by their first bytes, built by the first scan of a narrow prefix.
        self._buckets: dict[bytes, set[bytes]] | None = None

    def add(self, keys: Collection[bytes]) -> None:
        """Note keys that may be new."""
        if self._buckets is not None:
            for key in keys:
                self._buckets.setdefault(_bucket(key), set()).add(key)

    def remove(self, key: bytes) -> None:
        """Note that a key is gone."""
        if self._buckets is not None:
            bucket = self._buckets[_bucket(key)]
            bucket.discard(key)
            if not bucket:
                del self._buckets[_bucket(key)]

    def find(self, prefix: bytes, *, reverse: bool) -> list[bytes]:
        """Return the keys with a prefix."""
        keys = self._keys
        if len(keys) > _FEW and len(prefix) >= (_OF_POSTINGS if prefix.startswith(_POSTINGS) else _PREFIX):
            if self._buckets is None:
                self._buckets = {}
                self.add(self._keys)
            keys = self._buckets.get(_bucket(prefix), ())
        return sorted((key for key in keys if key.startswith(prefix)), reverse=reverse)


def _bucket(key: bytes) -> bytes:
    return key[: _OF_POSTINGS if key.startswith(_POSTINGS) else _PREFIX]


class Memory(Engine):
    """A dictionary of this process: for trials, tests, and crawls without a history."""

    scheme = "memory"
    form = ""
    is_persistent = False

    def __init__(self, location: str = "memory:", named_by: str = SETTING, options: Options = DEFAULT) -> None:
        super().__init__(location, named_by, options)
        self._rows: dict[bytes, bytes] = {}
        self._index = KeyIndex(self._rows)
        #: Keys of all records in order, built on first use.
        self._records: list[bytes] | None = None

    @classmethod
    def read_url(cls, parts: SplitResult) -> str:
        """Return one location for all; each store is still a state of its own."""
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

    def scan(self, prefix: bytes, *, reverse: bool = False) -> Iterator[Row]:
        return iter([(key, self._rows[key]) for key in self._index.find(prefix, reverse=reverse)])

    def scan_from(self, low: bytes, prefix: bytes) -> Iterator[Row]:
        if prefix != _RECORDS:
            yield from super().scan_from(low, prefix)
            return
        if self._records is None:
            self._records = sorted(key for key in self._rows if key.startswith(prefix))
        at = bisect_left(self._records, low)
        while at < len(self._records):
            key = self._records[at]
            yield key, self._rows[key]
            at += 1

    def write(self, changes: Changes, *, sync: bool) -> None:
        for key in changes.deletes:
            if self._rows.pop(key, None) is not None:
                self._index.remove(key)
                if self._records is not None and key.startswith(_RECORDS):
                    del self._records[bisect_left(self._records, key)]
        if self._records is not None:
            for key in changes.puts:
                if key.startswith(_RECORDS) and key not in self._rows:
                    insort(self._records, key)
        self._rows.update(changes.puts)
        self._index.add(changes.puts)

    def size(self) -> int:
        """Return the bytes of keys and values, without Python's overhead."""
        return sum(len(key) + len(value) for key, value in self._rows.items())

    def compact(self) -> None:
        """Do nothing."""

    def close(self, last: Changes | None = None) -> None:
        if last is not None:
            self.write(last, sync=False)
        self._rows.clear()


class Transaction(WrappedStore):
    """Keeps writes in memory, and reads through them to a base. Nothing commits them: a dry run discards them."""

    is_scratch = True

    def __init__(self, base: KeyValueStore) -> None:
        super().__init__(base)
        #: Rows in memory. None hides a row of the base.
        self._rows: dict[bytes, bytes | None] = {}
        self._index = KeyIndex(self._rows)

    def get(self, key: bytes) -> bytes | None:
        return self._rows[key] if key in self._rows else self.base.get(key)

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [*map(self._rows.get, keys, self.base.get_all(keys))]

    def scan(self, prefix: bytes, *, reverse: bool = False) -> Iterator[Row]:
        above = {key: self._rows[key] for key in self._index.find(prefix, reverse=reverse)}
        below = self.base.scan(prefix, reverse=reverse)
        if not above:
            return below
        others = (row for row in below if row[0] not in above)
        rows = merge(above.items(), others, key=itemgetter(0), reverse=reverse)
        return ((key, value) for key, value in rows if value is not None)

    def write(self, changes: Changes, *, sync: bool) -> None:
        self._rows.update(dict.fromkeys(changes.deletes))
        self._rows.update(changes.puts)
        self._index.add(changes.deletes)
        self._index.add(changes.puts)

    def scan_from(self, low: bytes, prefix: bytes) -> Iterator[Row]:
        return KeyValueStore.scan_from(self, low, prefix)  # through ``scan``, which sees both layers

    def compact(self) -> None:
        """Do nothing: a dry run changes no file."""

    def close(self, last: Changes | None = None) -> None:
        self.base.close()


#: Rows in memory, about 15,000 pages in 40 MB; then all are written in one batch.
_MOST = 200_000


class Temporary(Transaction):
    """A throw-away store: buffered in memory, overflow in a LevelDB in a folder, which the caller removes.

    ``size`` first writes the buffer, to measure it; so does ``compact``.
    """

    def __init__(self, folder: Path, options: Options = DEFAULT) -> None:
        super().__init__(Memory(str(folder)))
        self.scheme, self._options = LevelDB.scheme, options

    def write(self, changes: Changes, *, sync: bool) -> None:
        super().write(changes, sync=sync)
        if len(self._rows) > _MOST:
            self._spill()

    def _spill(self) -> None:
        """Write all rows to LevelDB."""
        if isinstance(self.base, Memory):
            engine = LevelDB(self.location, options=self._options)
            engine.open_at(Path(self.location) / "db", new=True)
            self.base = engine
        puts = {key: value for key, value in self._rows.items() if value is not None}
        self.base.write(Changes(puts, self._rows.keys() - puts.keys()), sync=False)
        self._rows = {}
        self._index = KeyIndex(self._rows)

    def compact(self) -> None:
        self._spill()
        self.base.compact()

    def size(self) -> int:
        self._spill()
        return self.base.size()

    def close(self, last: Changes | None = None) -> None:
        if isinstance(self.base, LevelDB):
            self.base.close_files()
