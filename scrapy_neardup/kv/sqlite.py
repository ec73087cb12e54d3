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
from contextlib import suppress
from pathlib import Path

from scrapy_neardup.errors import StoreError, StoreMismatch
from scrapy_neardup.kv.base import SETTING, Changes, Row
from scrapy_neardup.kv.files import FileEngine, Moving
from scrapy_neardup.kv.lock import ScratchDirectory
from scrapy_neardup.kv.tally import check_bytes

#: "ndup" in the header. We never write to another program's database.
APPLICATION = 0x6E647570
_MAGIC = b"SQLite format 3\0"
_INT = struct.Struct(">I")
#: The beginning of the file: unused bytes, page size (1: 65536), more, pages.
_SIZE_FIELDS = struct.Struct(">16sH10xI")
#: A header with a larger size in bytes is noise.
_LARGEST = 2**42
_CHUNK = 2**20
#: Kibibytes of cache for reads, the fastest value that we measured.
_CACHE = 8 * 2**10
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
#: Rows to read at a time, and rows that are enough for most scans.
_ROWS, _FEW = 500, 16
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

    library_error, closed_error = sqlite3.Error, sqlite3.ProgrammingError
    #: Whether it is a damaged copy. Rows with a wrong checksum are left out then; if one was a page, others name it.
    _is_damaged = False

    def __init__(self, location: str, named_by: str = SETTING) -> None:
        super().__init__(location, named_by)
        self._path = Path(location)
        self._log = _log_of(self._path)
        self._db: sqlite3.Connection

    def check_place(self) -> None:
        # With a witness beside it, a file is ours, and damaged.
        path, is_another = self._path, False
        try:
            if path.exists() and not path.is_file():
                raise StoreError(
                    f"{path} is no file, so it cannot be a state. Set {self.named_by} to the path of a file."
                )
            if _has_bytes(path) and not self.witness_of(self.location).exists():
                is_another = not _is_ours(path)
        except OSError as error:
            raise StoreError(
                f"{path} cannot be read: {error}. Check its permissions, or set {self.named_by} to another path."
            ) from error
        if is_another:
            raise StoreMismatch(
                f"{path} exists, but is no scrapy-neardup state. It is unchanged. Set {self.named_by} to another path."
            )

    def is_new(self) -> bool:
        return not _has_bytes(self._path)

    def create(self) -> None:
        with self.guard():  # it holds its secret, which is not for everybody
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        self._db = self._connection(self._path, "rwc")
        with self.guard():
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute(f"PRAGMA application_id = {APPLICATION}")
            self._db.execute("CREATE TABLE IF NOT EXISTS kv (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID")
            self._db.execute("COMMIT")
            self._log_all()

    def open(self, digest: str, *, is_held: bool) -> None:
        self.is_untouched = False
        if is_held:
            # Within a read transaction the log only grows. Opening the file ourselves, as for a digest, would drop
            # SQLite's lock if this process uses it too.
            self._db = self._connection(self._path, "ro")
            with self.guard():
                self._db.execute("BEGIN")
                self._db.execute("SELECT 1 FROM kv LIMIT 1").fetchone()
            return
        path = self._path if self._lock is not None else self._copied()
        if not _is_ours(path):
            raise self.damage_error("its header is not that of a state")
        logged = _has_bytes(_log_of(path))
        with self.guard():
            self.is_untouched = not logged and digest == _digest(path)
        # Nothing may change before verification. SQLite would cut a damaged log and move the rest into the file; a
        # read-only connection does not.
        self._db = self._connection(path, "ro" if logged else "ro&immutable=1")

    def _copied(self) -> Path:
        """Copy a closed state, and return the copy. Raises Moving, StoreError."""
        path = self._path
        self._scratch = ScratchDirectory(path)
        copy = self._scratch.path / "state"
        before = _as_they_are(path)
        with self.guard():
            try:
                shutil.copyfile(path, copy)
                if before[1]:
                    shutil.copyfile(self._log, _log_of(copy))
            except FileNotFoundError:
                raise Moving("its file is missing") from None
        if _as_they_are(path) != before or self.is_locked():
            raise Moving("its file is changing")
        return copy

    def _connection(self, path: Path, mode: str) -> sqlite3.Connection:
        with self.guard():
            # Two crawls may use different threads, but never write at the same time.
            uri = f"{path.as_uri()}?mode={mode}"
            db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
            try:
                db.execute("PRAGMA cell_size_check = ON")
                db.execute(f"PRAGMA cache_size = -{_CACHE}")
            except BaseException:
                db.close()
                raise
            return db

    def _log_all(self) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")

    def reopen(self) -> None:
        with self.guard():
            self._db.close()
            self._db = self._connection(self._path, "rw")
            self._log_all()

    def settle(self) -> None:
        with self.guard():
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def close_files(self) -> None:
        if hasattr(self, "_db"):
            with self.guard():
                self._db.close()
        super().close_files()

    def digest(self) -> str:
        return "-" if _has_bytes(self._log) else _digest(self._path)

    def copy_damaged(self, folder: Path) -> None:
        copy = folder / "copy.sqlite"
        shutil.copyfile(self._path, copy)
        if self._log.exists():
            shutil.copyfile(self._log, _log_of(copy))
        with copy.open("rb+") as file:  # SQLite refuses a file that is shorter than its header says
            _, size, pages = _SIZE_FIELDS.unpack(file.read(_SIZE_FIELDS.size).ljust(_SIZE_FIELDS.size, b"\0"))
            length = pages * (size if size > 1 else 65536)
            if copy.stat().st_size < length <= _LARGEST:
                file.truncate(length)

    def open_damaged(self, folder: Path) -> None:
        self._is_damaged = True
        try:
            self._db = self._connection(folder / "copy.sqlite", "rw")
            tables = {name for (name,) in self._db.execute("SELECT name FROM sqlite_master")}
        except (sqlite3.Error, StoreError) as error:
            raise self.hopeless(error.__cause__ or error) from None
        if "kv" not in tables:
            raise self.hopeless("its table kv is missing")

    def get(self, key: bytes) -> bytes | None:
        with self.guard():
            row = self._db.execute("SELECT v FROM kv WHERE k = ?", (key,)).fetchone()
        return None if row is None else self._checked(key, row[0])

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        values: dict[bytes, bytes] = {}
        for at in range(0, len(keys), _ROWS):
            few = keys[at : at + _ROWS]
            # Nothing in the query comes from outside.
            query = f"SELECT k, v FROM kv WHERE k IN ({','.join('?' * len(few))})"  # noqa: S608
            with self.guard():
                found = self._db.execute(query, few).fetchall()
            values.update((key, self._checked(key, value)) for key, value in found)
        return [values.get(key) for key in keys]

    def rows(self, low: bytes, high: bytes | None, *, reverse: bool = False) -> Iterator[Row]:
        # A query for each few rows: no cursor may stay open over a write.
        order = "DESC" if reverse else "ASC"
        most = _FEW
        while True:
            bounds = [low] if high is None else [low, high]
            where = "k >= ?" if high is None else "k >= ? AND k < ?"
            # Nothing in the query comes from outside.
            query = f"SELECT k, v FROM kv WHERE {where} ORDER BY k {order} LIMIT {most}"  # noqa: S608
            with self.guard():
                found = self._db.execute(query, bounds).fetchall()
            for key, value in found:
                if self._is_damaged and not _is_sound(key, value):
                    continue
                yield key, self._checked(key, value)
            if len(found) < most:
                return
            last = found[-1][0]
            if type(last) is not bytes:
                raise self.damage_error(f"the key {last!r:.60} is not what was written")
            low, high, most = (low, last, _ROWS) if reverse else (last + b"\0", high, _ROWS)

    def write_rows(self, changes: Changes, *, sync: bool) -> None:
        with self.guard():
            if sync:  # the commit waits for the disk
                self._db.execute("PRAGMA synchronous = FULL")
            try:
                self._write_batch(changes)
            finally:
                if sync:
                    self._db.execute("PRAGMA synchronous = NORMAL")

    def _write_batch(self, changes: Changes) -> None:
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

    def _checked(self, key: object, value: object) -> bytes:
        """Return a value without its checksum. Raises StoreDamaged."""
        if _is_sound(key, value):
            return value[:-_CHECK]  # type: ignore[index,no-any-return]  # it is bytes
        raise self.damage_error(f"the row {key!r:.60} is not what was written")

    def is_outside(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.OperationalError) and any(reason in str(error) for reason in _OUTSIDE)

    def size(self) -> int:
        return sum(file.stat().st_size for file in (self._path, self._log) if file.exists())

    def file_problems(self) -> Iterator[str]:
        try:
            yield from (line for (line,) in self._db.execute("PRAGMA integrity_check") if line != "ok")
        except sqlite3.Error as error:
            yield str(error)


def _is_sound(key: object, value: object) -> bool:
    """Whether a row has its checksum."""
    return type(key) is type(value) is bytes and value[-_CHECK:] == check_bytes(key, value[:-_CHECK])


def _is_ours(path: Path) -> bool:
    """Whether the header is ours. Raises OSError."""
    with path.open("rb") as file:
        header = file.read(100)
    return len(header) == 100 and header.startswith(_MAGIC) and _INT.unpack_from(header, 68)[0] == APPLICATION


def _digest(path: Path) -> str:
    """Return length and checksum of a file, against disk errors only. Raises OSError."""
    checksum = length = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            checksum = zlib.crc32(chunk, checksum)
            length += len(chunk)
    return f"{length}:{checksum:08x}"


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
