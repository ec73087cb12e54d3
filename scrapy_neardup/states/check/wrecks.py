"""Copies of damaged states, opened to be read as far as that goes."""

from __future__ import annotations

import shutil
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from scrapy_neardup.errors import StoreError
from scrapy_neardup.states.rows import Row
from scrapy_neardup.stores import Store
from scrapy_neardup.stores.leveldb import LevelDBStore
from scrapy_neardup.stores.lock import lock
from scrapy_neardup.stores.sqlite import SQLiteStore

_REPAIR = "import sys, plyvel; plyvel.repair_db(sys.argv[1], paranoid_checks=True)"


#: The beginning of SQLite's file: bytes that do not matter here, size of a page (1: 65536), more of them, pages.
_HEADER = struct.Struct(">16sH10xI")
#: No state is larger, in bytes; a header that says so is noise.
_LARGEST = 2**42


class UnreadableError(Exception):
    """A row, or what leads to it, cannot be read."""


class Wreck(Protocol):
    """Rows in byte order, of which some cannot be read."""

    def rows(self, low: bytes, high: bytes, *, reverse: bool = False) -> Iterator[Row]:
        """The rows from ``low`` to before ``high``, up to the first that cannot be read: then UnreadableError."""


@contextmanager
def copied(kind: type[Store], location: str, folder: Path) -> Iterator[Wreck]:
    """The state at ``location``, locked while it is copied into ``folder``, which is the caller's to remove.

    Raises StoreLocked while a crawl uses the state, StoreError if it cannot be copied, or nothing of it can be opened.
    """
    if kind is LevelDBStore:
        with _leveldb(Path(location), folder) as wreck:
            yield wreck
    elif kind is SQLiteStore:
        with _sqlite(Path(location), folder) as wreck:
            yield wreck
    else:
        raise StoreError(f"A state of the kind {kind.scheme} cannot be repaired; restore it from a backup.")


@contextmanager
def _sqlite(path: Path, folder: Path) -> Iterator[Wreck]:
    copy = folder / "copy.sqlite"
    held = lock(path.with_name(path.name + ".lock"), str(path))
    try:
        with _copying(path):
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
            raise _hopeless(path, str(error)) from None
        if "kv" not in tables:
            raise _hopeless(path, "it has no table kv")
        yield _SQLiteWreck(db)


def _lengthen(copy: Path) -> None:
    """Give a file that was cut the length that its header tells; without, SQLite refuses all of it."""
    with copy.open("rb+") as file:
        _, size, pages = _HEADER.unpack(file.read(_HEADER.size).ljust(_HEADER.size, b"\0"))
        told = pages * (size if size > 1 else 65536)
        if copy.stat().st_size < told <= _LARGEST:
            file.truncate(told)


class _SQLiteWreck:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def rows(self, low: bytes, high: bytes, *, reverse: bool = False) -> Iterator[Row]:
        order = "DESC" if reverse else "ASC"
        query = f"SELECT k, v FROM kv WHERE k >= ? AND k < ? ORDER BY k {order}"  # noqa: S608 - nothing from outside
        try:
            yield from self._db.execute(query, (low, high))
        except sqlite3.Error as error:
            raise UnreadableError(str(error)) from None


@contextmanager
def _leveldb(root: Path, folder: Path) -> Iterator[Wreck]:
    # The copy is repaired before LevelDB opens it: opening deletes the files that a damaged manifest does not name.
    # With paranoid checks, as a block of which the checksum is wrong would else be taken as it is. A file of tables
    # whose own index is damaged is left out as a whole, some megabytes.
    try:
        import plyvel
    except ImportError as error:
        raise StoreError(
            "To repair a LevelDB state plyvel is needed. Run: pip install 'scrapy-neardup[leveldb]'"
        ) from error
    copy = folder / "copy.leveldb"
    held = lock(root / "lock", str(root))
    try:
        with _copying(root):
            shutil.copytree(root / "db", copy, ignore=shutil.ignore_patterns("LOCK", "LOG", "LOG.old"))
    finally:
        held.release()
    # In a process of its own, as LevelDB may end it over what it finds.
    done = subprocess.run(  # noqa: S603 - nothing but our own path comes from outside
        [sys.executable, "-c", _REPAIR, str(copy)], check=False, capture_output=True, text=True, errors="replace"
    )
    if done.returncode:
        raise _hopeless(root, (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    try:
        db = plyvel.DB(str(copy), create_if_missing=False)
    except (plyvel.Error, OSError) as error:
        raise _hopeless(root, str(error)) from None
    with closing(db):
        yield _LevelDBWreck(db, plyvel.Error)


class _LevelDBWreck:
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


@contextmanager
def _copying(source: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"The state at {source} cannot be copied: {error}; see that its files are there and can be read, and that "
            "there is room for two copies beside the new state."
        ) from None


def _hopeless(source: Path, why: str) -> StoreError:
    return StoreError(f"Nothing of the state at {source} can be read ({why}); restore it from a backup.")
