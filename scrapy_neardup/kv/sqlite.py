"""A state in one SQLite file: the default where LevelDB cannot be installed.

    <location>            the database
    <location>-wal        its log, until it is closed
    <location>.witness    how far the state had come: see ``Witness``; after a clean close also a digest of the file
    <location>.lock       ours: held while the state is open; the empty file stays

A page is written to the log, which is synced once a second (``SYNC_EVERY``): a kill costs nothing, a power cut the
pages since then, as with LevelDB. SQLite syncs its log before it moves it into the file, so a power cut leaves the
state after one of the writes.

SQLite has no checksums, so each value ends in one. A damaged tree can hide rows: the digest reveals that, or all rows
are verified against the tally.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from scrapy_neardup.errors import StoreError, StoreMismatch
from scrapy_neardup.kv.base import SETTING, Changes, DamagedCopy, FileEngine, Moving, Row, copying, hopeless
from scrapy_neardup.kv.lock import ScratchDirectory
from scrapy_neardup.kv.options import DEFAULT, Options
from scrapy_neardup.kv.tally import Witness, check_bytes

#: "ndup" in the header, so that we never write to another program's database.
APPLICATION = 0x6E647570
_MAGIC = b"SQLite format 3\0"
_INT = struct.Struct(">I")
#: The beginning of the file: unused bytes, page size (1: 65536), more, pages.
_SIZE_FIELDS = struct.Struct(">16sH10xI")
#: A header with a larger size in bytes is noise.
_LARGEST = 2**42
_CHUNK = 2**20
#: Errors of the system; "locked": another program reads the file.
_OUTSIDE = (
    "full",
    "disk I/O error",
    "unable to open",
    "readonly",
    "locked",
    "out of memory",
    "not authorized",
    "permission",
)


def refuse_foreign(path: Path, witness: Path, named_by: str) -> None:
    """Raise StoreMismatch for another database and StoreError for no file. It writes nothing.

    With a witness beside it, it is ours, and damaged.
    """
    try:
        if path.exists() and not path.is_file():
            raise StoreError(f"{path} is no file, so it cannot be a state. Set {named_by} to the path of a file.")
        if witness.exists() or not path.exists() or not path.stat().st_size:
            return
        is_another = not is_ours(path)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read: {error}. Check its permissions, or set {named_by} to another path."
        ) from error
    if is_another:
        raise StoreMismatch(
            f"{path} exists, but is no scrapy-neardup state. It is unchanged. Set {named_by} to another path."
        )


def is_ours(path: Path) -> bool:
    """Whether the header is ours. Raises OSError."""
    return _application(path) == APPLICATION


def _application(path: Path) -> int | None:
    """Return the number of the program in the header; None if the file does not begin like a database."""
    with path.open("rb") as file:
        header = file.read(100)
    return _INT.unpack_from(header, 68)[0] if len(header) == 100 and header.startswith(_MAGIC) else None


def digest(path: Path) -> str:
    """Return length and checksum of a file, against disk errors only. Raises OSError."""
    checksum = length = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            checksum = zlib.crc32(chunk, checksum)
            length += len(chunk)
    return f"{length}:{checksum:08x}"


def is_outside(error: sqlite3.Error) -> bool:
    """Whether an error comes from disk or system, not from the rows."""
    return isinstance(error, sqlite3.OperationalError) and any(reason in str(error) for reason in _OUTSIDE)


_ROWS = 500
#: Bytes of a value's checksum.
_CHECK = 4


class SQLite(FileEngine):
    """One table of ordered bytes, written through a log."""

    scheme = "sqlite"

    @classmethod
    def exists(cls, location: str) -> bool:
        path = Path(location)
        with suppress(OSError):  # a name that is too long, a directory that may not be read
            return (path.is_file() and path.stat().st_size > 0) or cls.witness_of(location).exists()
        return False

    @classmethod
    def witness_of(cls, location: str) -> Path:
        return Path(f"{location}.witness")

    @classmethod
    def parts(cls, location: str) -> str:
        return f"{location}, {location}.witness and, if it exists, {location}-wal"

    @classmethod
    @contextmanager
    def damaged_copy(cls, location: str, folder: Path) -> Iterator[DamagedCopy]:
        path, copy = Path(location), folder / "copy.sqlite"
        is_database = path.is_file() and _application(path) is not None
        if not is_database and not cls.witness_of(location).exists():  # whatever it is, nothing is put beside it
            raise hopeless(location, "it is no SQLite database")
        with copying(cls, location):
            shutil.copyfile(path, copy)
            if _log_of(path).exists():
                shutil.copyfile(_log_of(path), _log_of(copy))
            _lengthen(copy)
        with closing(sqlite3.connect(copy, isolation_level=None)) as db:
            try:
                db.execute("PRAGMA cell_size_check = ON")
                tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
            except sqlite3.Error as error:
                raise hopeless(location, error) from None
            if "kv" not in tables:
                raise hopeless(location, "its table kv is missing")
            yield _SQLiteCopy(db)

    def __init__(self, location: str, named_by: str = SETTING, options: Options = DEFAULT) -> None:
        super().__init__(location, named_by, options)
        self._path = Path(location)
        self._log = _log_of(self._path)
        self._db: sqlite3.Connection

    def check_place(self) -> None:
        refuse_foreign(self._path, self.witness_of(self.location), self.named_by)

    def is_new(self) -> bool:
        return not _has_bytes(self._path)

    def create(self) -> None:
        with self._guard():  # it holds its secret, which is not for everybody
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        self._db = self._connection(self._path, "rwc")
        with self._guard():
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute(f"PRAGMA application_id = {APPLICATION}")
            self._db.execute("CREATE TABLE IF NOT EXISTS kv (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID")
            self._db.execute("COMMIT")
            self._log_all()

    def open(self, witness: Witness | None, *, is_held: bool) -> None:
        self.is_untouched = False
        if is_held:
            # Within a read transaction the log only grows. Opening the file ourselves, as for a digest, would drop
            # SQLite's lock if this process uses it too.
            self._db = self._connection(self._path, "ro")
            with self._guard():
                self._db.execute("BEGIN")
                self._db.execute("SELECT 1 FROM kv LIMIT 1").fetchone()
            return
        path = self._path if self._lock is not None else self._copied()
        if not is_ours(path):
            raise self.damaged("its header is not that of a state")
        logged = _has_bytes(_log_of(path))
        with self._guard():
            self.is_untouched = not logged and witness is not None and witness.digest == digest(path)
        # Nothing may change before verification. SQLite would cut a damaged log and move the rest into the file; a
        # read-only connection does not.
        self._db = self._connection(path, "ro" if logged else "ro&immutable=1")

    def _copied(self) -> Path:
        """Copy a closed state, and return the copy. Raises Moving, StoreError."""
        path = self._path
        self._scratch = ScratchDirectory(path)
        copy = self._scratch.path / "state"
        before = _as_they_are(path)
        try:
            shutil.copyfile(path, copy)
            if before[1]:
                shutil.copyfile(self._log, _log_of(copy))
        except FileNotFoundError:
            raise Moving("its file is missing") from None
        except OSError as error:
            raise self.uncopied(error) from error
        if _as_they_are(path) != before or self.is_held():
            raise Moving("its file is changing")
        return copy

    def _connection(self, path: Path, mode: str) -> sqlite3.Connection:
        with self._guard():
            # Two crawls may use different threads, but never write at the same time.
            uri = f"{path.as_uri()}?mode={mode}"
            db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
            try:
                db.execute("PRAGMA cell_size_check = ON")
                db.execute(f"PRAGMA cache_size = -{self.options.cache // 1024}")
            except BaseException:
                db.close()
                raise
            return db

    def _log_all(self) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")

    def accept(self) -> None:
        with self._guard():
            self._db.close()
            self._db = self._connection(self._path, "rw")
            self._log_all()

    def settle(self) -> None:
        with self._guard():
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def close_files(self) -> None:
        if hasattr(self, "_db"):
            with self._guard():
                self._db.close()
        super().close_files()

    def digest(self) -> str:
        return "-" if _has_bytes(self._log) else digest(self._path)

    # Hot paths avoid the context manager.

    def get(self, key: bytes) -> bytes | None:
        try:
            row = self._db.execute("SELECT v FROM kv WHERE k = ?", (key,)).fetchone()
        except Exception as error:
            self._raise_for(error)
            raise
        return None if row is None else self._checked(key, row[0])

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        values: dict[bytes, bytes] = {}
        for at in range(0, len(keys), _ROWS):
            few = keys[at : at + _ROWS]
            # Nothing in the query comes from outside.
            query = f"SELECT k, v FROM kv WHERE k IN ({','.join('?' * len(few))})"  # noqa: S608
            try:
                found = self._db.execute(query, few).fetchall()
            except Exception as error:
                self._raise_for(error)
                raise
            values.update((key, self._checked(key, value)) for key, value in found)
        return [values.get(key) for key in keys]

    def rows(self, low: bytes, high: bytes | None, *, reverse: bool = False) -> Iterator[Row]:
        # In pages of their own query, so that no cursor stays open over a write.
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
            for key, value in found:
                yield key, self._checked(key, value)
            if len(found) < rows:
                return
            if reverse:
                high = found[-1][0]
            else:
                low = found[-1][0] + b"\0"
            rows = _ROWS

    def write(self, changes: Changes, *, sync: bool) -> None:
        try:
            if not sync:
                self._write_rows(changes)
                return
            with self._synced_log():
                self._write_rows(changes)
        except Exception as error:
            self._raise_for(error)
            raise

    def _write_rows(self, changes: Changes) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            if changes.deletes:
                self._db.executemany("DELETE FROM kv WHERE k = ?", [(key,) for key in changes.deletes])
            rows = [(key, value + check_bytes(key, value)) for key, value in changes.puts.items()]
            self._db.executemany("INSERT OR REPLACE INTO kv VALUES (?, ?)", rows)
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def _synced_log(self) -> Iterator[None]:
        """A commit within waits for the disk."""
        self._db.execute("PRAGMA synchronous = FULL")
        try:
            yield
        finally:
            self._db.execute("PRAGMA synchronous = NORMAL")

    def _checked(self, key: object, value: object) -> bytes:
        """Return a value without its checksum. Raises StoreDamaged."""
        if type(key) is bytes and type(value) is bytes and value[-_CHECK:] == check_bytes(key, value[:-_CHECK]):
            return value[:-_CHECK]
        raise self.damaged(f"the row {key!r:.60} is not what was written")

    def size(self) -> int:
        return sum(file.stat().st_size for file in (self._path, self._log) if file.exists())

    def compact(self) -> None:
        with self._guard():
            self._db.execute("VACUUM")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def file_problems(self) -> Iterator[str]:
        try:
            yield from (line for (line,) in self._db.execute("PRAGMA integrity_check") if line != "ok")
        except sqlite3.Error as error:
            yield str(error)

    @contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._raise_for(error)
            raise

    def _raise_for(self, error: Exception) -> None:
        """Translate errors of sqlite3 and the system."""
        if isinstance(error, sqlite3.ProgrammingError):  # sqlite3's answer after a close
            raise StoreError(f"The state at {self.location} is closed.") from error
        if isinstance(error, sqlite3.Error) and not is_outside(error):
            raise self.damaged(str(error)) from error
        if isinstance(error, (sqlite3.Error, OSError)):
            raise self.out_of_reach(error) from error


def _log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _has_bytes(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _as_they_are(path: Path) -> list[tuple[int, int] | None]:
    """Return size and time of the database and its log; None for no log."""
    found: list[tuple[int, int] | None] = []
    for file in (path, _log_of(path)):
        found.append(None)
        with suppress(FileNotFoundError):
            stat = file.stat()
            found[-1] = (stat.st_size, stat.st_mtime_ns) if stat.st_size else None
    return found


def _lengthen(copy: Path) -> None:
    """Extend a truncated file to the length in its header, or SQLite refuses it."""
    with copy.open("rb+") as file:
        _, size, pages = _SIZE_FIELDS.unpack(file.read(_SIZE_FIELDS.size).ljust(_SIZE_FIELDS.size, b"\0"))
        length = pages * (size if size > 1 else 65536)
        if copy.stat().st_size < length <= _LARGEST:
            file.truncate(length)


class _SQLiteCopy:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def rows(self, low: bytes, high: bytes, *, reverse: bool = False) -> Iterator[Row]:
        order = "DESC" if reverse else "ASC"
        query = f"SELECT k, v FROM kv WHERE k >= ? AND k < ? ORDER BY k {order}"  # noqa: S608 - nothing from outside
        try:
            for key, value in self._db.execute(query, (low, high)):
                # A damaged row is left out. If it is a page, other rows name it.
                if type(key) is type(value) is bytes and value[-_CHECK:] == check_bytes(key, value[:-_CHECK]):
                    yield key, value[:-_CHECK]
        except sqlite3.Error as error:
            raise StoreError(str(error)) from None
