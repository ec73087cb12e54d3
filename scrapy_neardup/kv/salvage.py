"""Copies of damaged states, from which a repair reads what is readable."""

from __future__ import annotations

import shutil
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from scrapy_neardup.errors import StoreError
from scrapy_neardup.kv.base import DamagedCopy, Row, UnreadableError
from scrapy_neardup.kv.lock import lock
from scrapy_neardup.kv.tally import check_bytes


@contextmanager
def copying(source: Path) -> Iterator[None]:
    """Translate errors of copying into StoreError."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"The state at {source} cannot be copied: {error}. Check that its files can be read and that the disk "
            "has room for two copies next to the new state."
        ) from None


def hopeless(source: Path, why: str) -> StoreError:
    """Return the error for a state whose copy cannot even be opened."""
    return StoreError(f"Nothing in the state at {source} can be read ({why}). Restore it from a backup.")


_REPAIR = "import sys, plyvel; plyvel.repair_db(sys.argv[1], paranoid_checks=True)"


@contextmanager
def damaged_leveldb(root: Path, folder: Path) -> Iterator[DamagedCopy]:
    """See ``Engine.damaged_copy``."""
    # Repair the copy before LevelDB opens it, because opening deletes files that a damaged manifest does not name.
    # Paranoid checks reject blocks with a wrong checksum. A table with a damaged index is lost as a whole, some
    # megabytes.
    try:
        import plyvel
    except ImportError as error:
        raise StoreError(
            "Repairing a LevelDB state needs plyvel. Run: pip install 'scrapy-neardup[leveldb]'"
        ) from error
    copy = folder / "copy.leveldb"
    held = lock(root / "lock", str(root))
    try:
        with copying(root):
            shutil.copytree(root / "db", copy, ignore=shutil.ignore_patterns("LOCK", "LOG", "LOG.old"))
    finally:
        held.release()
    # In its own process, because LevelDB may abort.
    done = subprocess.run(  # noqa: S603 - nothing but our own path comes from outside
        [sys.executable, "-c", _REPAIR, str(copy)], check=False, capture_output=True, text=True, errors="replace"
    )
    if done.returncode:
        raise hopeless(root, (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    try:
        db = plyvel.DB(str(copy), create_if_missing=False)
    except (plyvel.Error, OSError) as error:
        raise hopeless(root, str(error)) from None
    with closing(db):
        yield _LevelDBCopy(db, plyvel.Error)


class _LevelDBCopy:
    def __init__(self, db: Any, error: type[Exception]) -> None:
        self._db = db
        self._error = error

    def rows(self, low: bytes, high: bytes, *, reverse: bool = False) -> Iterator[Row]:
        try:
            with closing(self._db.raw_iterator(verify_checksums=True)) as at:
                if reverse:
                    at.seek(high)
                    at.prev() if at.valid() else at.seek_to_last()
                else:
                    at.seek(low)
                while at.valid() and low <= at.key() < high:
                    yield at.item()
                    at.prev() if reverse else at.next()
        except self._error as error:
            raise UnreadableError(str(error)) from None


_MAGIC = b"SQLite format 3\0"
#: The beginning of the file: unused bytes, page size (1: 65536), more, pages.
_HEADER = struct.Struct(">16sH10xI")
#: A header with a larger size in bytes is noise.
_LARGEST = 2**42


def _is_database(path: Path) -> bool:
    """Whether a file begins like an SQLite database."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


@contextmanager
def damaged_sqlite(path: Path, folder: Path) -> Iterator[DamagedCopy]:
    """See ``Engine.damaged_copy``."""
    if not _is_database(path) and not Path(f"{path}.witness").exists():  # whatever it is, nothing is put beside it
        raise hopeless(path, "it is no SQLite database")
    copy = folder / "copy.sqlite"
    held = lock(path.with_name(path.name + ".lock"), str(path))
    try:
        with copying(path):
            shutil.copyfile(path, copy)
            log = path.with_name(path.name + "-wal")
            if log.exists():
                shutil.copyfile(log, copy.with_name(copy.name + "-wal"))
            _lengthen(copy)
    finally:
        held.release()
    with closing(sqlite3.connect(copy, isolation_level=None)) as db:
        try:
            db.execute("PRAGMA cell_size_check = ON")
            tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
        except sqlite3.Error as error:
            raise hopeless(path, str(error)) from None
        if "kv" not in tables:
            raise hopeless(path, "its table kv is missing")
        yield _SQLiteCopy(db)


def _lengthen(copy: Path) -> None:
    """Extend a truncated file to the length in its header, or SQLite refuses it."""
    with copy.open("rb+") as file:
        _, size, pages = _HEADER.unpack(file.read(_HEADER.size).ljust(_HEADER.size, b"\0"))
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
                if type(key) is type(value) is bytes and value[-4:] == check_bytes(key, value[:-4]):
                    yield key, value[:-4]
        except sqlite3.Error as error:
            raise UnreadableError(str(error)) from None
