"""A state in a LevelDB directory, protected from the ways in which LevelDB loses data silently.

    <location>/lock        ours, taken before LevelDB's own, which a second opening drops silently; the file stays
    <location>/db/         LevelDB's files
    <location>/witness     how far the state had come: see ``Witness``; after a clean close also a digest of the files

LevelDB opens with a truncated log or manifest as if nothing were missing, and then deletes files that the manifest does
not name. So unless the files are as the last close left them, a copy of them is opened until the state is accepted.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from scrapy_neardup.errors import StoreError
from scrapy_neardup.kv.base import SETTING, Changes, Row
from scrapy_neardup.kv.files import FileEngine, Moving
from scrapy_neardup.kv.lock import ScratchDirectory
from scrapy_neardup.kv.memory import Memory, SortedRows, Transaction

#: Files without data.
NOISE = ("LOCK", "LOG", "LOG.old")
#: Endings of tables.
_TABLES = (".ldb", ".sst")
_WITNESS = "witness"
#: Bytes of a table. With LevelDB's 2 MB, 10 million pages need more files than may be open.
_TABLE = 8 * 2**20
#: The fastest values that we measured: bits of the filter for each row, bytes of neighbouring rows that are compressed
#: together, bytes of cache for reads, and of writes in memory (and in the log) before they are sorted into tables.
_BLOOM, _BLOCK, _CACHE, _WRITES = 10, 16 * 2**10, 8 * 2**20, 16 * 2**20
#: Repairs the database in a directory.
_REPAIR = "import sys, plyvel; plyvel.repair_db(sys.argv[1], paranoid_checks=True)"
#: Errors of the system. Everything else is damage.
_OUTSIDE = tuple(
    os.strerror(getattr(errno, name))
    for name in (
        *("ENOSPC", "EDQUOT", "EFBIG", "EIO", "EROFS", "EACCES", "EPERM"),
        *("EMFILE", "ENFILE", "ENOMEM", "EAGAIN", "EBUSY", "ESTALE"),
    )
    if hasattr(errno, name)
)


class LevelDB(FileEngine):
    """The default store: small on disk, safe against kills."""

    scheme = "leveldb"
    folder_mode = 0o700  # it holds a secret

    @classmethod
    def exists(cls, location: str) -> bool:
        with suppress(OSError):  # a name that is too long, a directory that may not be read
            return (Path(location) / "db").is_dir() or (Path(location) / _WITNESS).exists()
        return False

    @classmethod
    def witness_of(cls, location: str) -> Path:
        return Path(location) / _WITNESS

    @classmethod
    def parts(cls, location: str) -> str:
        return f"the whole directory {location}"

    @classmethod
    def lock_of(cls, location: str) -> Path:
        return Path(location) / "lock"

    def __init__(self, location: str, named_by: str = SETTING) -> None:
        super().__init__(location, named_by)
        try:
            import plyvel
        except ImportError as error:
            raise StoreError(
                "The leveldb store needs plyvel, which has no wheel for this platform. Run: pip install "
                "'scrapy-neardup[leveldb]' (this needs a C++ compiler and the LevelDB headers), "
                f"or set {named_by} to sqlite:///path."
            ) from error
        self._plyvel = plyvel
        self.library_error, self.closed_error = plyvel.Error, RuntimeError
        self._has_failed = False
        self._root = Path(location)
        self._files = self._root / "db"
        self._db: Any = None

    def is_new(self) -> bool:
        with self.guard():
            # A process killed while it made a new state leaves a manifest, or an empty log too, which opens as empty.
            files = self._files.iterdir() if self._files.is_dir() else ()
            return not any(file.suffix in (".log", *_TABLES) for file in files)

    def create(self) -> None:
        self.open_at(self._files, new=True)

    def open(self, digest: str, *, is_held: bool) -> None:
        with self.guard():
            try:
                self.is_untouched = not is_held and digest == self.digest()
            except FileNotFoundError as error:
                raise Moving(str(error)) from None
        if self.is_untouched and self._lock is not None:
            self.open_at(self._files)
            return
        self._scratch = ScratchDirectory(self._root)
        copy = self._scratch.path / "db"
        with self.guard():
            _copy_at_one_moment(self._files, copy)
        self.open_at(copy)

    def open_at(self, files: Path, *, new: bool = False) -> None:
        """Open the database in a directory, without lock and witness."""
        with self.guard():
            self._db = self._plyvel.DB(
                str(files),
                create_if_missing=new,
                paranoid_checks=True,
                bloom_filter_bits=_BLOOM,
                lru_cache_size=_CACHE,
                write_buffer_size=_WRITES,
                block_size=_BLOCK,
                max_file_size=_TABLE,
            )

    def reopen(self) -> None:
        if self._scratch is not None:
            self.close_files()
            self.open_at(self._files)

    def close_files(self) -> None:
        if self._db is not None:
            with self.guard():
                self._db.close()
        super().close_files()

    def digest(self) -> str:
        # Names and sizes of all data files, and the contents of all but tables, which have checksums.
        found = []
        for file in sorted(self._files.iterdir()):
            if file.name not in NOISE:
                is_table = file.suffix in _TABLES
                found.append((file.name, file.stat().st_size, 0 if is_table else zlib.crc32(file.read_bytes())))
        return f"{len(found)}:{zlib.crc32(repr(found).encode()):08x}"

    def copy_damaged(self, folder: Path) -> None:
        shutil.copytree(self._files, folder / "copy.leveldb", ignore=shutil.ignore_patterns(*NOISE))

    def open_damaged(self, folder: Path) -> None:
        # Repair the copy before LevelDB opens it, because opening deletes files that a damaged manifest does not name.
        # Paranoid checks reject blocks with a wrong checksum. A table with a damaged index is lost as a whole, some
        # megabytes. The repair has its own process, because LevelDB may abort.
        copy = folder / "copy.leveldb"
        done = subprocess.run(  # noqa: S603 - nothing but our own path comes from outside
            [sys.executable, "-c", _REPAIR, str(copy)], check=False, capture_output=True, text=True, errors="replace"
        )
        if done.returncode:
            raise self.hopeless((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
        try:
            self.open_at(copy)
        except StoreError as error:
            raise self.hopeless(error.__cause__) from None

    def get(self, key: bytes) -> bytes | None:
        try:  # here, and in the next methods, for each page: cheaper than the guard
            return self._db.get(key, verify_checksums=True)  # type: ignore[no-any-return]
        except self.errors as error:
            raise self.translated(error) from error

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        get = self._db.get
        try:
            return [get(key, verify_checksums=True) for key in keys]
        except self.errors as error:
            raise self.translated(error) from error

    def rows(self, low: bytes, high: bytes | None, *, reverse: bool = False) -> Iterator[Row]:
        # plyvel's other iterator ends silently at a damaged block; this one raises.
        with self.guard(), self._db.raw_iterator(verify_checksums=True) as at:
            if not reverse:
                at.seek(low)
            elif high is None:
                at.seek_to_last()
            else:
                at.seek(high)
                at.prev() if at.valid() else at.seek_to_last()
            move = at.prev if reverse else at.next
            while at.valid() and (key := at.key()) >= low and (high is None or key < high):
                yield at.item()
                move()

    def write_rows(self, changes: Changes, *, sync: bool) -> None:
        if self._has_failed:
            raise StoreError(
                f"The state at {self.location} takes no more pages after a failed write. The pages before it are safe. "
                "Check the disk and start the crawl again."
            )
        # A failed write may leave half a record in the log. LevelDB would append to it and not read past it later.
        self._has_failed = True
        try:
            batch = self._db.write_batch(sync=sync)
            for key in changes.deletes:
                batch.delete(key)
            for key, value in changes.puts.items():
                batch.put(key, value)
            batch.write()
        except self.errors as error:
            raise self.translated(error) from error
        self._has_failed = False

    def is_outside(self, error: BaseException) -> bool:
        return any(reason in str(error) for reason in _OUTSIDE)

    def size(self) -> int:
        total = 0
        for file in self._files.iterdir() if self._files.is_dir() else ():
            with suppress(FileNotFoundError):  # LevelDB tidies up whenever it likes
                total += file.stat().st_size
        return total


#: Rows in memory, about 15,000 pages in 40 MB; then all are written in one batch.
_MOST = 200_000


class Temporary(Transaction):
    """A throw-away store: buffered in memory, overflow in a LevelDB in a folder, which the caller removes.

    ``size`` first writes the buffer, to measure it.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(Memory(str(folder)))
        self.scheme = LevelDB.scheme

    def write(self, changes: Changes, *, sync: bool) -> None:
        super().write(changes, sync=sync)
        if len(self._rows) > _MOST:
            self._spill()

    def _spill(self) -> None:
        if not isinstance(self.base, LevelDB):
            self.base = LevelDB(self.location)
            self.base.open_at(Path(self.location) / "db", new=True)
        puts = {key: value for key, value in self._rows.items() if value is not None}
        self.base.write_rows(Changes(puts, self._rows.keys() - puts.keys()), sync=False)
        self._rows = SortedRows()

    def size(self) -> int:
        self._spill()
        return self.base.size()

    def close(self, last: Changes | None = None) -> None:
        if isinstance(self.base, LevelDB):
            self.base.close_files()


# Tables never change, so hard links will do. Logs and the manifest only grow, so a copy is a state of an earlier
# moment. A log goes once the manifest names its table. So if the manifest is equal before and after copying, the copy
# is the database at one write in between; LevelDB drops an incomplete last write, as after a kill. A table above a log
# may be unfinished, so it is no link. LevelDB must never write to a link: it numbers new files above those of its
# manifest, which may have lost its end, and above each log that it has read. So the copy begins with an empty log.

_MOVING = "its file CURRENT, or the manifest that it names, is missing or changing"


def _copy_at_one_moment(files: Path, copy: Path) -> None:
    """Make the folder ``copy`` with the database. Raises Moving, OSError."""
    copy.mkdir()
    try:
        current = (files / "CURRENT").read_bytes()
        name = Path(current.decode("ascii", "replace").strip()).name  # of a damaged one it may be anything
        packed = (files / name).read_bytes()
        (copy / "CURRENT").write_bytes(current)
        (copy / name).write_bytes(packed)
        numbered = sorted((int(file.stem), file) for file in files.iterdir() if file.stem.isdecimal())
        first_log = next((number for number, file in numbered if file.suffix == ".log"), 0)
        if first_log:
            (copy / f"{first_log - 1:06}.log").touch()
        for number, file in numbered:
            if file.suffix == ".log" or (file.suffix in _TABLES and number > first_log):
                with suppress(FileNotFoundError):  # it was merged into others; if not, LevelDB misses it
                    shutil.copyfile(file, copy / file.name)
            elif file.suffix in _TABLES:
                _link(file, copy / file.name)
        if (files / "CURRENT").read_bytes() != current or (files / name).stat().st_size != len(packed):
            raise Moving(_MOVING)
    except (FileNotFoundError, IsADirectoryError, ValueError):
        raise Moving(_MOVING) from None


def _link(file: Path, other: Path) -> None:
    try:
        os.link(file, other)
    except FileNotFoundError:
        pass
    except OSError:  # another disk, a file of somebody else's, a file system that knows no second names
        shutil.copyfile(file, other)
