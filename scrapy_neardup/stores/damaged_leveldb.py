"""A damaged state of LevelDB, copied, repaired by LevelDB itself and read as far as that goes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from scrapy_neardup.errors import StoreError
from scrapy_neardup.stores.changes import Row
from scrapy_neardup.stores.damaged import DamagedCopy, UnreadableError, copying, hopeless
from scrapy_neardup.stores.lock import lock

_REPAIR = "import sys, plyvel; plyvel.repair_db(sys.argv[1], paranoid_checks=True)"


@contextmanager
def damaged_leveldb(root: Path, folder: Path) -> Iterator[DamagedCopy]:
    """See ``Place.damaged_copy``."""
    # The copy is repaired before LevelDB opens it: opening deletes the files that a damaged manifest does not name.
    # With paranoid checks, as a block of which the checksum is wrong would else be taken as it is. A file of tables
    # whose own index is damaged is left out as a whole, some megabytes.
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
            kept = root / "db.before"  # by an opening that was cut short: see ``Snapshot``
            shutil.copytree(
                kept if kept.exists() else root / "db", copy, ignore=shutil.ignore_patterns("LOCK", "LOG", "LOG.old")
            )
    finally:
        held.release()
    # In a process of its own, as LevelDB may end it over what it finds.
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
