"""A damaged state of SQLite, copied and read as far as that goes."""

from __future__ import annotations

import shutil
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from scrapy_neardup.stores.changes import Row
from scrapy_neardup.stores.damaged import DamagedCopy, UnreadableError, copying, hopeless
from scrapy_neardup.stores.lock import lock
from scrapy_neardup.stores.sqlite_files import is_database
from scrapy_neardup.stores.tally import check_bytes

#: The beginning of SQLite's file: bytes that do not matter here, size of a page (1: 65536), more of them, pages.
_HEADER = struct.Struct(">16sH10xI")
#: No state is larger, in bytes; a header that says so is noise.
_LARGEST = 2**42


@contextmanager
def damaged_sqlite(path: Path, folder: Path) -> Iterator[DamagedCopy]:
    """See ``Place.damaged_copy``."""
    if not is_database(path) and not Path(f"{path}.witness").exists():  # whatever it is, nothing is put beside it
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
    """Give a file that was cut the length that its header tells; without, SQLite refuses all of it."""
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
                # A row that is not what was written is left out; a page among such rows is missed, as others name it.
                if type(key) is type(value) is bytes and value[-4:] == check_bytes(key, value[:-4]):
                    yield key, value[:-4]
        except sqlite3.Error as error:
            raise UnreadableError(str(error)) from None
