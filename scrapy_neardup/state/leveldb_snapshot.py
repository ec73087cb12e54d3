"""Read a LevelDB state while a crawl writes to it."""

from __future__ import annotations

import time
from collections.abc import Iterator

from scrapy_neardup.errors import StoreError
from scrapy_neardup.kv.base import Row
from scrapy_neardup.kv.checkpoint import checkpoint
from scrapy_neardup.kv.exchange import ScratchDirectory
from scrapy_neardup.kv.lock import is_held
from scrapy_neardup.kv.tally import KEY
from scrapy_neardup.state.leveldb import LevelDBStore
from scrapy_neardup.state.transaction import Overlay


class LevelDBLook(Overlay, LevelDBStore):
    """A snapshot in a copy; see ``checkpoint``. LevelDB would change the state's own files."""

    _folder: ScratchDirectory | None = None

    def _connect(self) -> None:
        self._load()
        Overlay._connect(self)

    def _is_in_use(self) -> bool:
        return is_held(self._root / "lock")

    def _look(self) -> None:
        self._is_empty = True
        with self._guard:
            self._open_checkpoint()

    def _open_checkpoint(self) -> None:
        # ``db.before`` counts if it is there; see ``Snapshot``.
        kept = self._root / "db.before"
        files = kept if kept.exists() else self._files
        if not files.is_dir() or not any(file.suffix in (".log", ".ldb", ".sst") for file in files.iterdir()):
            if self._witness is not None and self._is_begun():
                raise self._gone(self._witness)
            self.as_of = time.time()
            return
        sealed = self._seal.read_bytes() if self._seal.exists() else None
        self._folder = ScratchDirectory(self._root)
        copy = self._folder.path / "db"
        try:
            checkpoint(files, copy)
        except ValueError as error:
            raise self.damaged(str(error)) from None
        except OSError as error:
            raise StoreError(
                f"The state at {self.location} cannot be copied for reading: {error}. Check that its files can be read "
                "and that the disk is not full."
            ) from error
        self.as_of = time.time()
        if sealed is not None and not self.is_held:
            self._check_seal(sealed, files)
            self._untouched = True
        self._db = self._database(copy)
        self._is_empty = False
        self._hold_against_witness(LevelDBStore._get(self, KEY))

    def _close_look(self) -> None:
        self._untouched = False
        if not self._is_empty and not self._db.closed:
            self._db.close()
        if self._folder is not None:
            self._folder.remove()
            self._folder = None

    def _get_below(self, key: bytes) -> bytes | None:
        return None if self._is_empty else LevelDBStore._get(self, key)

    def _scan_below(self, prefix: bytes, *, reverse: bool = False) -> Iterator[Row]:
        return iter(()) if self._is_empty else LevelDBStore._scan(self, prefix, reverse=reverse)

    def size(self) -> int:
        return LevelDBStore.size(self) if self._files.is_dir() else 0
