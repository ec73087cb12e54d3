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
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from scrapy_neardup.errors import StoreError
from scrapy_neardup.kv.base import SETTING, Changes, DamagedCopy, FileEngine, Moving, Row, copying, hopeless
from scrapy_neardup.kv.checkpoint import checkpoint
from scrapy_neardup.kv.lock import ScratchDirectory
from scrapy_neardup.kv.options import DEFAULT, Options
from scrapy_neardup.kv.tally import Witness

#: Files without data.
NOISE = ("LOCK", "LOG", "LOG.old")
#: Endings of tables.
_TABLES = (".ldb", ".sst")
_WITNESS = "witness"
#: Bytes of a table. With LevelDB's 2 MB, 10 million pages need more files than may be open.
_TABLE = 8 * 2**20
#: Bits of the filter for each row, and bytes of neighbouring rows that are compressed together: the fastest.
_BLOOM, _BLOCK = 10, 16 * 2**10
#: A key before and a key behind all rows.
_FIRST, _LAST = b"\0", b"\xff"
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

    @classmethod
    @contextmanager
    def damaged_copy(cls, location: str, folder: Path) -> Iterator[DamagedCopy]:
        # Repair the copy before LevelDB opens it, because opening deletes files that a damaged manifest does not name.
        # Paranoid checks reject blocks with a wrong checksum. A table with a damaged index is lost as a whole, some
        # megabytes.
        engine, copy = cls(location), folder / "copy.leveldb"
        with copying(cls, location):
            shutil.copytree(engine._files, copy, ignore=shutil.ignore_patterns(*NOISE))
        # In its own process, because LevelDB may abort.
        done = subprocess.run(  # noqa: S603 - nothing but our own path comes from outside
            [sys.executable, "-c", _REPAIR, str(copy)], check=False, capture_output=True, text=True, errors="replace"
        )
        if done.returncode:
            raise hopeless(location, (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
        try:
            engine.open_at(copy)
        except StoreError as error:
            raise hopeless(location, error.__cause__) from None
        try:
            yield engine
        finally:
            engine.close_files()

    def __init__(self, location: str, named_by: str = SETTING, options: Options = DEFAULT) -> None:
        super().__init__(location, named_by, options)
        try:
            import plyvel
        except ImportError as error:
            raise StoreError(
                "The leveldb store needs plyvel, which has no wheel for this platform. Run: pip install "
                "'scrapy-neardup[leveldb]' (this needs a C++ compiler and the LevelDB headers), "
                f"or set {named_by} to sqlite:///path."
            ) from error
        self._plyvel = plyvel
        self._has_failed = False
        self._guard = _Guard(self)
        self._root = Path(location)
        self._files = self._root / "db"
        self._db: Any = None

    def is_new(self) -> bool:
        with self._guard:
            # A process killed while it made a new state leaves a manifest at most.
            files = self._files.iterdir() if self._files.is_dir() else ()
            return not any(file.suffix in (".log", *_TABLES) for file in files)

    def create(self) -> None:
        self.open_at(self._files, new=True)

    def open(self, witness: Witness | None, *, is_held: bool) -> None:
        with self._guard:
            try:
                self.is_untouched = not is_held and witness is not None and witness.digest == self.digest()
            except FileNotFoundError as error:
                raise Moving(str(error)) from None
        if self.is_untouched and self._lock is not None:
            self.open_at(self._files)
            return
        self._scratch = ScratchDirectory(self._root)
        copy = self._scratch.path / "db"
        try:
            checkpoint(self._files, copy)
        except ValueError as error:
            raise self.damaged(str(error)) from None
        except OSError as error:
            raise self.uncopied(error) from error
        self.open_at(copy)

    def open_at(self, files: Path, *, new: bool = False) -> None:
        """Open the database in a directory, without lock and witness."""
        options = self.options
        with self._guard:
            self._db = self._plyvel.DB(
                str(files),
                create_if_missing=new,
                paranoid_checks=True,
                bloom_filter_bits=_BLOOM,
                lru_cache_size=options.cache,
                write_buffer_size=options.write_buffer,
                block_size=_BLOCK,
                max_file_size=_TABLE,
            )

    def accept(self) -> None:
        if self._scratch is not None:
            self.close_files()
            self.open_at(self._files)

    def close_files(self) -> None:
        if self._db is not None:
            with self._guard:
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

    # Hot paths avoid the context manager.

    def get(self, key: bytes) -> bytes | None:
        try:
            value: bytes | None = self._db.get(key, verify_checksums=True)
        except Exception as error:
            self.raise_for(error)
            raise
        return value

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        get = self._db.get
        try:
            return [get(key, verify_checksums=True) for key in keys]
        except Exception as error:
            self.raise_for(error)
            raise

    def rows(self, low: bytes, high: bytes | None, *, reverse: bool = False) -> Iterator[Row]:
        # plyvel's other iterator ends silently at a damaged block; this one raises.
        with self._guard, self._db.raw_iterator(verify_checksums=True) as at:
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

    def write(self, changes: Changes, *, sync: bool) -> None:
        if self._has_failed:
            raise StoreError(
                f"The state at {self.location} takes no more pages after a failed write. The pages before it are safe. "
                "Check the disk and start the crawl again."
            )
        try:
            batch = self._db.write_batch(sync=sync)
            for key in changes.deletes:
                batch.delete(key)
            for key, value in changes.puts.items():
                batch.put(key, value)
            batch.write()
        except BaseException as error:
            # The log may end in half a record. LevelDB would append to it and not read past it later.
            self._has_failed = True
            self.raise_for(error)
            raise

    def raise_for(self, error: BaseException) -> None:
        """Raise an error of plyvel or the system as a StoreError."""
        plyvel = self._plyvel
        if isinstance(error, plyvel.Error) and not any(reason in str(error) for reason in _OUTSIDE):
            raise self.damaged(str(error)) from error
        if isinstance(error, (plyvel.Error, OSError)):
            raise self.out_of_reach(error) from error
        if isinstance(error, RuntimeError):  # plyvel's answer after a close
            raise StoreError(f"The state at {self.location} is closed.") from error

    def size(self) -> int:
        total = 0
        for file in self._files.iterdir() if self._files.is_dir() else ():
            with suppress(FileNotFoundError):  # LevelDB tidies up whenever it likes
                total += file.stat().st_size
        return total

    def compact(self) -> None:
        with self._guard:
            # Without bounds plyvel compacts almost nothing. Every key begins with an ASCII letter. Several rounds,
            # because LevelDB looks at its levels before it writes its memory. A single remaining level stays as it is,
            # so a deletion of absent keys on either side makes LevelDB merge it.
            self._db.compact_range(start=_FIRST, stop=_LAST)
            for key in (_FIRST, _LAST):
                self._db.delete(key)
            for _ in range(2):
                self._db.compact_range(start=_FIRST, stop=_LAST)


class _Guard:
    """Translates errors. A class, because generators are slow."""

    def __init__(self, engine: LevelDB) -> None:
        self._engine = engine

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._engine.raise_for(error)
