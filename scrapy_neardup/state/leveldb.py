"""A state in a LevelDB directory, protected from the ways in which LevelDB loses data silently.

    <location>/lock        ours, taken before LevelDB's own, which a second opening drops silently
    <location>/db/         LevelDB's files
    <location>/seal.json   after a clean close: name and size of every file, checksum of all but tables
    <location>/witness     how far the state had come: see ``Witness``

LevelDB opens with a truncated log or manifest as if nothing were missing, and then deletes files that the manifest does
not name. So the seal is compared before LevelDB opens. Without a seal, as after a kill, ``Snapshot`` keeps the files
until all rows are verified.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

from scrapy_neardup.errors import StoreError
from scrapy_neardup.kv.base import Changes, DamagedCopy, Row, UnreadableError, copying, hopeless
from scrapy_neardup.kv.lock import lock
from scrapy_neardup.state import layout
from scrapy_neardup.state.pages import PageStore

# LevelDB changes files when it opens. It never writes into an existing file, so a hard link to each keeps them all at
# no cost.
#     <location>/db.before     complete or absent; it counts if it is there, as an opening was cut short
#     <location>/db.draft      being made
#     <location>/db.after      being removed


#: Files without data.
NOISE = ("LOCK", "LOG", "LOG.old")


class Snapshot:
    """Hard links to the files of a directory. Without hard links there is no snapshot."""

    def __init__(self, files: Path) -> None:
        self._files = files
        self._kept, self._draft, self._gone = (
            files.with_name(files.name + ending) for ending in (".before", ".draft", ".after")
        )

    def take(self) -> None:
        """Keep the files."""
        shutil.rmtree(self._draft, ignore_errors=True)
        try:
            self._draft.mkdir()
            for file in self._files.iterdir():
                if file.name not in NOISE:
                    os.link(file, self._draft / file.name)
        except OSError:
            shutil.rmtree(self._draft, ignore_errors=True)
        else:
            self._draft.rename(self._kept)

    def drop(self) -> None:
        """Drop the snapshot. Raises OSError."""
        if self._kept.exists():
            self._kept.rename(self._gone)
        shutil.rmtree(self._gone, ignore_errors=True)

    def restore(self) -> None:
        """Put the files back. Raises OSError."""
        if self._kept.exists():
            shutil.rmtree(self._gone, ignore_errors=True)
            if self._files.exists():
                self._files.rename(self._gone)
            self._kept.rename(self._files)
        shutil.rmtree(self._gone, ignore_errors=True)
        shutil.rmtree(self._draft, ignore_errors=True)


_REPAIR = "import sys, plyvel; plyvel.repair_db(sys.argv[1], paranoid_checks=True)"


@contextmanager
def damaged_leveldb(root: Path, folder: Path) -> Iterator[DamagedCopy]:
    """See ``Place.damaged_copy``."""
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
            kept = root / "db.before"  # by an opening that was cut short: see ``Snapshot``
            shutil.copytree(
                kept if kept.exists() else root / "db", copy, ignore=shutil.ignore_patterns("LOCK", "LOG", "LOG.old")
            )
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


_WITNESS = "witness"
#: Bytes of a table. With LevelDB's 2 MB, 10 million pages need more files than may be open.
_TABLE = 8 * 2**20
#: A key before and a key behind all rows.
_FIRST, _LAST = b"\0", b"\xff"
#: Errors of the system. Everything else is damage.
_OUTSIDE = tuple(
    os.strerror(getattr(errno, name))
    for name in (
        *("ENOSPC", "EDQUOT", "EFBIG", "EIO", "EROFS", "EACCES", "EPERM"),
        *("EMFILE", "ENFILE", "ENOMEM", "EAGAIN", "EBUSY", "ESTALE"),
    )
    if hasattr(errno, name)
)


class LevelDBStore(PageStore):
    """The default store: small on disk, safe against kills."""

    scheme: ClassVar[str] = "leveldb"

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
    def pieces(cls, location: str) -> tuple[Path, ...]:
        root = Path(location)
        return root / "db", root / "seal.json", root / _WITNESS

    @classmethod
    def lock_of(cls, location: str) -> Path:
        return Path(location) / "lock"

    @classmethod
    def damaged_copy(cls, location: str, folder: Path) -> AbstractContextManager[DamagedCopy]:
        return damaged_leveldb(Path(location), folder)

    def _load(self) -> None:
        try:
            import plyvel
        except ImportError as error:
            raise StoreError(
                "The leveldb store needs plyvel, which has no wheel for this platform. Run: pip install "
                "'scrapy-neardup[leveldb]' (this needs a C++ compiler and the LevelDB headers), "
                f"or set {self.named_by} to sqlite:///path."
            ) from error
        self._plyvel = plyvel
        self._failed = False
        self._guard = _Guard(self)
        self._root = Path(self.location)
        self._files = self._root / "db"
        self._seal = self._root / "seal.json"
        self._snapshot = Snapshot(self._files)

    def _connect(self) -> None:
        self._load()
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds its secret
        except OSError as error:
            raise StoreError(
                f"The directory of the state at {self._root} cannot be made: {error}. Set {self.named_by} to another "
                "path."
            ) from error
        self._lock = lock(self.lock_of(self.location), self.location)
        try:
            with self._guard:
                self._open()
        except BaseException:
            self._release_witness()
            self._lock.release()
            raise

    def _open(self) -> None:
        self._snapshot.restore()
        # A process killed while it made a new state leaves a manifest at most; these files hold pages.
        new = not self._files.exists() or not any(f.suffix in (".log", ".ldb", ".sst") for f in self._files.iterdir())
        sealed = self._seal.read_bytes() if self._seal.exists() else None
        self._meet_witness(new=new)
        if sealed is not None:
            self._check_seal(sealed, self._files)
        if sealed is None and not new and not (self._files / "CURRENT").exists():
            raise self.damaged("its file CURRENT is missing")
        self._untouched = sealed is not None
        if not new and sealed is None:
            self._snapshot.take()
        # Before LevelDB changes a file; a kill right then would leave a seal that does not fit.
        self._seal.unlink(missing_ok=True)
        try:
            self._db = self._database(self._files, new=new)
        except BaseException:
            if sealed is not None:
                self._seal.write_bytes(sealed)
            self._snapshot.restore()
            raise

    def _database(self, files: Path, *, new: bool = False) -> Any:
        options = self.options
        return self._plyvel.DB(
            str(files),
            create_if_missing=new,
            paranoid_checks=True,
            bloom_filter_bits=options.bloom,
            lru_cache_size=options.cache,
            write_buffer_size=options.write_buffer,
            block_size=options.block,
            max_open_files=options.open_files,
            max_file_size=_TABLE,
        )

    def _accept(self) -> None:
        with self._guard:
            self._snapshot.drop()

    def _disconnect(self) -> None:
        if self._db.closed:
            return
        try:
            with self._guard:
                self._db.close()
                if not self._accepted:
                    self._snapshot.restore()
                if self._accepted or self._untouched:
                    self._write_seal()
                self._end_witness()
        finally:
            self._release_witness()
            self._lock.release()

    # Hot paths avoid the context manager.

    def _get(self, key: bytes) -> bytes | None:
        try:
            value: bytes | None = self._db.get(key, verify_checksums=True)
        except Exception as error:
            self._raise_for(error)
            raise
        return value

    def _get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        get = self._db.get
        try:
            return [get(key, verify_checksums=True) for key in keys]
        except Exception as error:
            self._raise_for(error)
            raise

    def _rows_from(self, low: bytes, prefix: bytes) -> Iterator[Row]:
        with self._guard, self._db.raw_iterator(verify_checksums=True) as at:
            at.seek(max(low, prefix))
            while at.valid() and at.key().startswith(prefix):
                yield at.item()
                at.next()

    def _scan(self, prefix: bytes, *, reverse: bool = False) -> Iterator[Row]:
        # plyvel's other iterator ends silently at a damaged block; this one raises.
        with self._guard, self._db.raw_iterator(verify_checksums=True) as at:
            behind = layout.after(prefix)
            if not reverse:
                at.seek(prefix)
            elif behind is None:
                at.seek_to_last()
            else:
                at.seek(behind)
                if at.valid():
                    at.prev()
                else:
                    at.seek_to_last()
            while at.valid() and at.key().startswith(prefix):
                yield at.item()
                if reverse:
                    at.prev()
                else:
                    at.next()

    def _apply(self, changes: Changes, *, sync: bool) -> None:
        if self._failed:
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
            self._failed = True
            self._raise_for(error)
            raise

    def _raise_for(self, error: BaseException) -> None:
        """Translate errors of plyvel and the system."""
        plyvel = self._plyvel
        if isinstance(error, plyvel.Error) and not any(reason in str(error) for reason in _OUTSIDE):
            raise self.damaged(str(error)) from error
        if isinstance(error, (plyvel.Error, OSError)):
            raise self.out_of_reach(error) from error
        if isinstance(error, RuntimeError):  # plyvel's answer after a close
            raise StoreError(f"The state at {self.location} is closed.") from error

    def size(self) -> int:
        total = 0
        for file in self._files.iterdir():
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

    def _write_seal(self) -> None:
        packed = json.dumps(_inventory(self._files), sort_keys=True)
        draft = self._seal.with_suffix(".draft")
        with draft.open("w", encoding="utf-8") as file:
            file.write(packed)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._seal)

    def _check_seal(self, packed: bytes, files: Path) -> None:
        try:
            sealed = dict(json.loads(packed))
        except (TypeError, ValueError):
            raise self.damaged("its seal.json cannot be read") from None
        found = _inventory(files) if files.exists() else {}
        changed = sorted(name for name in {*sealed, *found} if sealed.get(name) != found.get(name))
        if changed:
            raise self.damaged(f"these files have changed or are missing since it was closed: {', '.join(changed)}")


class _Guard:
    """Translates errors. A class, because generators are slow."""

    def __init__(self, store: LevelDBStore) -> None:
        self._store = store

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._store._raise_for(error)


def _inventory(files: Path) -> dict[str, list[int]]:
    """Return the size of every data file, and a checksum except for tables, which LevelDB verifies."""
    found = {}
    for file in files.iterdir():
        if file.name in NOISE:
            continue
        table = file.suffix in (".ldb", ".sst")
        found[file.name] = [file.stat().st_size, 0 if table else zlib.crc32(file.read_bytes())]
    return found
