"""Read a SQLite state while a crawl writes to it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from scrapy_neardup.errors import StoreError
from scrapy_neardup.kv.base import Row
from scrapy_neardup.kv.checkpoint import Moving
from scrapy_neardup.kv.exchange import ScratchDirectory
from scrapy_neardup.kv.lock import is_held
from scrapy_neardup.kv.tally import KEY
from scrapy_neardup.state.sqlite import SQLiteStore, digest, is_ours, refuse_foreign
from scrapy_neardup.state.transaction import Overlay


class SQLiteLook(Overlay, SQLiteStore):
    """A read transaction, or a copy of the file. While the transaction is open, the log of a crawl only grows."""

    _folder: ScratchDirectory | None = None

    def _is_in_use(self) -> bool:
        path = Path(self.location)
        return is_held(path.with_name(path.name + ".lock"))

    def _look(self) -> None:
        self._is_empty, self._path = True, Path(self.location)
        if self.is_held:
            self._begin_reading()
        else:
            self._open_copy()
        if not self._is_empty:
            self._hold_against_witness(SQLiteStore._get(self, KEY))

    def _begin_reading(self) -> None:
        # Opening the file ourselves would drop SQLite's lock if this process uses it too.
        if not self._is_begun():
            self.as_of = time.time()
            return
        self._db = self._connection("ro")
        self._is_empty = False
        with self._guard():
            self._db.execute("BEGIN")
            self._db.execute("SELECT 1 FROM kv LIMIT 1").fetchone()
        self.as_of = time.time()

    def _open_copy(self) -> None:
        path = Path(self.location)
        refuse_foreign(path, Path(f"{path}.witness"), self.named_by)
        if not path.exists() or not path.stat().st_size:
            if self._witness is not None and self._is_begun():
                raise self._gone(self._witness)
            self.as_of = time.time()
            return
        self._folder = ScratchDirectory(path)
        copy = self._folder.path / "state"
        before = _as_they_are(path)
        try:
            shutil.copyfile(path, copy)
            logged = bool(before[1])
            if logged:
                shutil.copyfile(_log(path), _log(copy))
        except FileNotFoundError:
            raise Moving from None
        except OSError as error:
            raise StoreError(
                f"The state at {self.location} cannot be copied for reading: {error}. Check that it can be read and "
                "that the disk has room for a copy."
            ) from error
        self.as_of = time.time()
        if _as_they_are(path) != before or self._is_in_use():
            raise Moving
        if not is_ours(copy):
            raise self.damaged("its header is not that of a state")
        self._untouched = not logged and self._witness is not None and self._witness.digest == digest(copy)
        self._path = copy
        self._db = self._connection("ro" if logged else "ro&immutable=1")
        self._is_empty = False

    def _close_look(self) -> None:
        self._untouched = False
        if not self._is_empty:
            with self._guard():
                self._db.close()
        if self._folder is not None:
            self._folder.remove()
            self._folder = None

    def _get_below(self, key: bytes) -> bytes | None:
        return None if self._is_empty else SQLiteStore._get(self, key)

    def _scan_below(self, prefix: bytes, *, reverse: bool = False) -> Iterator[Row]:
        return iter(()) if self._is_empty else SQLiteStore._scan(self, prefix, reverse=reverse)


def _log(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _as_they_are(path: Path) -> list[tuple[int, int] | None]:
    """Return size and time of the database and its log; None for no log."""
    found: list[tuple[int, int] | None] = []
    for file in (path, _log(path)):
        found.append(None)
        with suppress(FileNotFoundError):
            stat = file.stat()
            found[-1] = (stat.st_size, stat.st_mtime_ns) if stat.st_size else None
    return found
