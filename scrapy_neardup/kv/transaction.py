"""Writes kept in memory above a base."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from operator import itemgetter
from pathlib import Path

from scrapy_neardup.kv.base import Changes, KeyValueStore, Row, WrappedStore
from scrapy_neardup.kv.leveldb import LevelDB
from scrapy_neardup.kv.memory import KeyIndex, Memory
from scrapy_neardup.kv.options import DEFAULT, Options


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
            self.base.close_snapshot()
