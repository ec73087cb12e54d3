"""A state that ends with the process that opened it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from scrapy_neardup.kv.base import Changes, Row
from scrapy_neardup.state.leveldb import LevelDBStore

#: Rows in memory, about 15,000 pages in 40 MB; then all are written in one batch.
_MOST = 200_000
#: With up to this many rows a scan searches memory; with more it writes them first.
_FEW = 100


class TemporaryStore(LevelDBStore):
    """A state in a folder that the caller removes. It has no URL."""

    lasts: ClassVar[bool] = False
    tallied: ClassVar[bool] = False

    #: The LevelDB, once there is one.
    _db: Any = None

    def _connect(self) -> None:
        self._load()
        self._files = Path(self.location)
        #: Rows in memory; None hides a row of LevelDB.
        self._rows: dict[bytes, bytes | None] = {}

    def _disconnect(self) -> None:
        self._rows = {}
        if self._db is not None:
            with self._guard:
                self._db.close()

    def _get(self, key: bytes) -> bytes | None:
        found = self._rows.get(key)
        if found is not None or self._db is None or key in self._rows:
            return found
        return super()._get(key)

    def _get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self._rows.get(key) for key in keys] if self._db is None else [self._get(key) for key in keys]

    def _scan(self, prefix: bytes, *, reverse: bool = False) -> Iterator[Row]:
        if self._db is None and len(self._rows) <= _FEW:
            rows = ((key, value) for key, value in self._rows.items() if value is not None)
            return iter(sorted((row for row in rows if row[0].startswith(prefix)), reverse=reverse))
        self._write_rows()
        return super()._scan(prefix, reverse=reverse)

    def _rows_from(self, low: bytes, prefix: bytes) -> Iterator[Row]:
        self._write_rows()
        return super()._rows_from(low, prefix)

    def _apply(self, changes: Changes, *, sync: bool) -> None:
        self._rows.update(dict.fromkeys(changes.deletes))
        self._rows.update(changes.puts)
        if len(self._rows) > _MOST:
            self._write_rows()

    def _write_rows(self) -> None:
        """Write all rows to LevelDB."""
        if self._db is None:
            with self._guard:
                self._db = self._database(self._files, new=True)
        rows, self._rows = self._rows, {}
        puts = {key: value for key, value in rows.items() if value is not None}
        super()._apply(Changes(puts, rows.keys() - puts.keys()), sync=False)

    def _write_counts(self, puts: Mapping[bytes, bytes], *, sync: bool) -> None:
        """Do nothing; nobody reads them again."""

    def size(self) -> int:
        self._write_rows()
        return super().size()

    def compact(self) -> None:
        self._write_rows()
        super().compact()
