"""State in one SQLite file: the default where LevelDB cannot be installed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import ClassVar

from scrapy_neardup.errors import StoreError, StoreMismatch
from scrapy_neardup.stores import layout
from scrapy_neardup.stores.base import Store
from scrapy_neardup.stores.changes import Changes, Row
from scrapy_neardup.stores.damaged import DamagedCopy
from scrapy_neardup.stores.damaged_sqlite import damaged_sqlite
from scrapy_neardup.stores.lock import lock

#: "ndup" in the header of the file, so that a database of somebody else's is never written to.
_APPLICATION = 0x6E647570
_ROWS = 500


class SQLiteStore(Store):
    """One table of ordered bytes, written through a log that is synced at every commit."""

    scheme: ClassVar[str] = "sqlite"

    @classmethod
    def exists(cls, location: str) -> bool:
        path = Path(location)
        return path.is_file() and path.stat().st_size > 0

    @classmethod
    def damaged_copy(cls, location: str, folder: Path) -> AbstractContextManager[DamagedCopy]:
        return damaged_sqlite(Path(location), folder)

    def _connect(self) -> None:
        path = Path(self.location)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"The directory of the state at {path} cannot be made: {error}.") from error
        self._lock = lock(path.with_name(path.name + ".lock"), self.location)
        try:
            self._open(path)
        except BaseException:
            self._lock.release()
            raise

    def _open(self, path: Path) -> None:
        new = not path.exists() or path.stat().st_size == 0
        if not new and self._application(path) != _APPLICATION:
            raise StoreMismatch(
                f"{path} is there, but is no state of scrapy-neardup; it was not touched. "
                f"Set {self.named_by} to another path."
            )
        with self._guard():
            # Two crawls of one process may run in different threads of it; they never write at the same time.
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            with self._guard():
                if new:
                    self._db.execute(f"PRAGMA application_id = {_APPLICATION}")
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = FULL")
                self._db.execute("CREATE TABLE IF NOT EXISTS kv (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID")
        except BaseException:
            self._db.close()
            raise

    def _application(self, path: Path) -> int:
        """Whose database it is; as immutable, or SQLite would tidy up what its owner has left beside it."""
        with self._guard(), closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as db:
            return int(db.execute("PRAGMA application_id").fetchone()[0])

    def _disconnect(self) -> None:
        try:
            with self._guard():
                self._db.close()
        finally:
            self._lock.release()

    def _get(self, key: bytes) -> bytes | None:
        with self._guard():
            row = self._db.execute("SELECT v FROM kv WHERE k = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def _scan(self, prefix: bytes, *, reverse: bool = False) -> Iterator[Row]:
        # In pages, each a query of its own, so that no cursor stays open over a write.
        low, high = prefix, layout.after(prefix)
        order = "DESC" if reverse else "ASC"
        rows = 16  # most scans want the first few
        while True:
            where, bounds = "k >= ?", [low]
            if high is not None:
                where, bounds = "k >= ? AND k < ?", [low, high]
            with self._guard():
                # Nothing in the query comes from outside.
                query = f"SELECT k, v FROM kv WHERE {where} ORDER BY k {order} LIMIT {rows}"  # noqa: S608
                found = self._db.execute(query, bounds).fetchall()
            yield from found
            if len(found) < rows:
                return
            if reverse:
                high = found[-1][0]
            else:
                low = found[-1][0] + b"\0"
            rows = _ROWS

    def _write(self, changes: Changes, *, sync: bool) -> None:
        with self._guard():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany("DELETE FROM kv WHERE k = ?", [(key,) for key in changes.deletes])
                self._db.executemany("INSERT OR REPLACE INTO kv VALUES (?, ?)", changes.puts.items())
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def size(self) -> int:
        path = Path(self.location)
        files = (path, path.with_name(path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def compact(self) -> None:
        with self._guard():
            self._db.execute("VACUUM")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def file_problems(self) -> Iterator[str]:
        try:
            with closing(sqlite3.connect(f"{Path(self.location).as_uri()}?mode=ro", uri=True)) as db:
                yield from (line for (line,) in db.execute("PRAGMA integrity_check") if line != "ok")
        except sqlite3.Error as error:
            yield str(error)

    @contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.ProgrammingError as error:  # sqlite3's answer after a close
            raise StoreError(f"The state at {self.location} is closed.") from error
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise StoreError(f"The state at {self.location} cannot be read or written: {error}.") from error
            raise self.damaged(str(error)) from error
