"""Engines in files, with their integrity: each write updates a checksum, and the next opening verifies it.

The tally (number of writes, number of pages, sum over the rows that cannot be rebuilt from others) is stored in the
database, and again in a small file beside it, the witness. If they disagree, the database was restored, cut or swapped.

A state is opened for reading (``look``) or for writing. For writing ``hold`` takes the lock, the caller reads all that
can refuse the state, and ``accept`` begins to write. Until then the state stays as it was. Both ways read the witness
first, then a snapshot of the database.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar

from filelock import FileLock

from scrapy_neardup.errors import StoreDamaged, StoreError
from scrapy_neardup.kv.base import SETTING, Changes, Engine, KeyValueStore, Row, after
from scrapy_neardup.kv.lock import ScratchDirectory, is_held, lock
from scrapy_neardup.kv.memory import Memory
from scrapy_neardup.kv.tally import DERIVED, KEY, MASK, RECORD, RowTally, Witness, of_row, of_rows

#: Attempts to read a state that another process changes, and seconds between them.
_TRIES, _PAUSE = 200, 0.02


class Moving(Exception):
    """Files changed while they were read; try again."""


class FileEngine(Engine):
    """A database in its own files, with a tally of its rows inside, and a witness file beside it.

    One process at a time has the lock and writes. Others ``look``.
    """

    tally: RowTally
    #: Whether the rows are only for reading.
    is_read_only = False
    #: The mode of the folder with the lock, if that is made.
    folder_mode: ClassVar[int] = 0o777
    #: Whether the opened files are as a clean close left them, as far as the engine can tell.
    is_untouched = False
    #: The library's errors, and its answer after a close.
    library_error: type[Exception]
    closed_error: type[Exception]

    @classmethod
    @abstractmethod
    def witness_of(cls, location: str) -> Path:
        """Return the path of the witness file."""

    @classmethod
    @abstractmethod
    def parts(cls, location: str) -> str:
        """Name the files that belong together, for messages."""

    @classmethod
    def lock_of(cls, location: str) -> Path:
        return Path(f"{location}.lock")

    def __init__(self, location: str, named_by: str = SETTING) -> None:
        super().__init__(location, named_by)
        self._lock: FileLock | None = None
        self._scratch: ScratchDirectory | None = None
        self._witness: Witness | None = None
        self._is_closing = False

    # What an engine knows.

    def check_place(self) -> None:
        """Raise StoreError or StoreMismatch if something else lies at the location. It writes nothing."""

    @abstractmethod
    def rows(self, low: bytes, high: bytes | None, *, reverse: bool = False) -> Iterator[Row]:
        """Yield the rows from ``low`` to before ``high``, or to the last one, in byte order."""

    def scan(self, prefix: bytes, *, start: bytes = b"", reverse: bool = False) -> Iterator[Row]:
        return self.rows(max(start, prefix), after(prefix), reverse=reverse)

    @abstractmethod
    def is_new(self) -> bool:
        """Whether the location has no database yet."""

    @abstractmethod
    def create(self) -> None:
        """Make and open the database of a locked location."""

    @abstractmethod
    def open(self, digest: str, *, is_held: bool) -> None:
        """Open a snapshot of the database, and change nothing. ``digest``: of the closed files, as the witness has it.

        ``is_held``: another holder may go on writing.

        Raises Moving if files changed meanwhile, StoreDamaged, StoreError.
        """

    @abstractmethod
    def reopen(self) -> None:
        """Open the database itself for writing, no snapshot."""

    @abstractmethod
    def write_rows(self, changes: Changes, *, sync: bool) -> None:
        """Apply all changes or none. ``sync``: they and all earlier ones survive a power cut."""

    def settle(self) -> None:
        """Make sure that the main file of the database also says that it is open."""

    @abstractmethod
    def close_files(self) -> None:
        """Close the database. It may be open in part."""
        if self._scratch is not None:
            self._scratch.remove()
            self._scratch = None

    @abstractmethod
    def digest(self) -> str:
        """Return a digest of the closed files for the witness. Raises OSError."""

    # Opened for writing.

    def lock(self) -> None:
        """Take the lock. Raises StoreLocked, and StoreError if the state cannot lie there."""
        self.check_place()
        path = self.lock_of(self.location)
        try:
            path.parent.mkdir(mode=self.folder_mode, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"The directory of the state at {self.location} cannot be made: {error}. Set {self.named_by} to "
                "another path."
            ) from error
        self._lock = lock(path, self.location)

    def unlock(self) -> None:
        """Release the witness and the lock. A second call does nothing."""
        if self._witness is not None:
            self._witness.release()
        if self._lock is not None:
            self._lock.release()

    def is_locked(self) -> bool:
        """Whether somebody, even this process, holds the lock."""
        return is_held(self.lock_of(self.location))

    def hold(self) -> None:
        """Take the lock and open the state, which stays as it is. A new one is made, with an empty witness.

        ``must_verify`` says whether all rows have to be read and compared with the tally. Raises StoreLocked,
        StoreDamaged, StoreError.
        """
        self.lock()
        try:
            witness = self._witness = self._open_witness(writable=True)
            is_new = self.is_new()
            if witness is None and is_new:
                witness = self._witness = self._new_witness(RowTally.new())
            if witness is None or witness.newest.sequence:
                if witness is not None and is_new:
                    raise self._gone(witness)
                self.open(witness.digest if witness else "", is_held=False)
            else:
                self.create()  # also if making it was cut short
            self.tally = self._read_tally(witness)
        except BaseException as error:
            try:
                self.close_files()
            finally:
                self.unlock()
            if isinstance(error, Moving):
                raise self.damage_error(str(error)) from None
            raise
        self.must_verify = not self._was_closed(witness)

    def accept(self) -> None:
        self.reopen()
        if self._witness is None:
            with suppress(StoreError):  # a state without witness can be used; the next opening verifies it
                self._witness = self._new_witness(self.tally)
        self.write(Changes(), sync=True)  # the tally says from now on that the state is not closed
        self.settle()

    def _new_witness(self, tally: RowTally) -> Witness:
        try:
            return Witness.create(self.witness_of(self.location), tally)
        except OSError as error:
            raise self.out_of_reach(error) from error

    def keep_secret(self, secret: bytes) -> None:
        if self._witness is not None:
            with suppress(OSError):
                self._witness.keep(secret)

    def write(self, changes: Changes, *, sync: bool) -> None:
        if self.is_read_only:
            raise RuntimeError(f"The state at {self.location} is open for reading only.")
        tally = self._tally_after(changes)
        changes.puts[KEY] = tally.pack()
        self.write_rows(changes, sync=sync)
        self.tally = tally
        if self._witness is not None:
            self._witness.note(tally, synced=sync)

    def _tally_after(self, changes: Changes) -> RowTally:
        """Return the tally after these changes. This runs for every page, so it reads only what it must."""
        state, sequence, pages, total, _ = self.tally
        get = self.get
        for key in changes.deletes:
            if key[0] not in DERIVED and (old := get(key)) is not None:
                total -= of_row(key, old)
                pages -= key[0] == RECORD
        added, new, unsure = of_rows(changes.puts, self.largest)
        for key in unsure:  # they may have been there before; rows with an id above the largest are new
            if (old := get(key)) is not None:
                total -= of_row(key, old)
            else:
                new += key[0] == RECORD
        return RowTally(state, sequence + 1, pages + new, (total + added) & MASK, self._is_closing)

    def close(self, last: Changes | None = None) -> None:
        if self.is_read_only:
            self.close_files()
            return
        witness = self._witness
        try:
            if last is not None:
                self._is_closing = True
                self.write(last, sync=True)
        finally:
            try:
                self.close_files()
                # Opening LevelDB changes its files, even if the state was then refused.
                if witness is not None and self.tally.is_clean and (self._is_closing or self.is_untouched):
                    witness.close(self.tally, self.digest())
            except OSError as error:
                raise self.out_of_reach(error) from error
            finally:
                self.unlock()

    # Opened for reading.

    def look(self) -> KeyValueStore:
        """Open the rows at one moment, only for reading, while another process may write. Return the open store.

        If there is no state, none is made, and an empty store in memory stands for it. Raises StoreDamaged, or
        StoreError if the state cannot be read or changes too fast.
        """
        self.is_read_only = True
        for left in reversed(range(_TRIES)):
            self.is_held = self.is_locked()
            try:
                found = self._look()
                found.is_scratch, found.is_held, found.as_of = True, self.is_held, time.time()
                return found
            except (Moving, StoreDamaged) as error:
                self.close_files()
                # A crawl may have begun or ended meanwhile, which can look like damage.
                may_change = isinstance(error, Moving) or self.is_held or self.is_locked()
                if not (left and may_change):
                    raise self._restless(error) if isinstance(error, Moving) else error from None
            except BaseException:
                self.close_files()
                raise
            time.sleep(_PAUSE)
        raise AssertionError  # the last round returns or raises

    def _look(self) -> KeyValueStore:
        if not self.is_held:  # else its holder did so, perhaps this process, whose SQLite locks the check would drop
            self.check_place()
        # First the witness. It is written after the database, so the database must be as new.
        witness = self._open_witness(writable=False)
        if witness is not None:
            witness.release()
        if self.is_new():
            if witness is not None and witness.newest.sequence:
                raise self._gone(witness)
            empty = Memory(self.location)
            empty.scheme, empty.is_persistent, empty.tally = self.scheme, self.is_persistent, RowTally(b"")
            return empty
        self.open(witness.digest if witness else "", is_held=self.is_held)
        self.tally = self._read_tally(witness)
        # A process that holds the state has verified it.
        self.must_verify = not self.is_held and not self._was_closed(witness)
        return self

    def _restless(self, error: Moving) -> StoreError:
        if self.is_held:
            return StoreError(f"The state at {self.location} changes too fast to be read. Try again in a moment.")
        return self.damage_error(str(error))

    # Tally and witness of an opening.

    def _open_witness(self, *, writable: bool) -> Witness | None:
        """Open the witness of a state; None if there is none. Raises StoreDamaged, StoreError."""
        path = self.witness_of(self.location)
        try:
            return Witness(path, writable=writable)
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise self.damage_error(f"its witness {path} cannot be read: {error}") from None
        except OSError as error:
            raise self.out_of_reach(error) from error

    def _read_tally(self, witness: Witness | None) -> RowTally:
        """Return the tally of an open database, which must not be older than the witness. Raises StoreDamaged."""
        packed, parts = self.get(KEY), self.parts(self.location)
        try:
            tally = RowTally.new() if packed is None else RowTally.unpack(packed)
        except ValueError as error:
            raise self.damage_error(f"its tally cannot be read ({error})") from None
        if witness is None:
            if packed is not None and not tally.is_clean:
                raise self.damage_error(
                    f"its witness {self.witness_of(self.location)} is missing, and the database was not closed when it "
                    f"was left or copied, so pages may be missing too. Keep together {parts}"
                )
            return tally
        newest = witness.newest
        if packed is None:
            if newest.sequence:
                raise self._gone(witness)
            return RowTally(newest.state)
        if newest.state != tally.state:
            raise self.damage_error(
                f"its witness {witness.path} belongs to another state. Restore its own witness, or delete that file if "
                f"this state was closed. Keep together {parts}"
            )
        if tally.sequence < newest.sequence:
            raise self.damage_error(
                f"it ends at write {tally.sequence:,} with {tally.pages:,} pages, but its witness {witness.path} "
                f"records write {newest.sequence:,} with {newest.pages:,} pages. If you restored an older copy on "
                f"purpose, restore its witness too. Keep together {parts}"
            )
        return tally

    def _was_closed(self, witness: Witness | None) -> bool:
        """Whether the files are as a clean close left them, as far as anybody can tell."""
        return self.is_untouched and witness is not None and witness.was_closed(self.tally)

    def _gone(self, witness: Witness) -> StoreDamaged:
        """Return the error for a missing database that the witness knows."""
        begin = Path(self.location) if Path(self.location).is_dir() else witness.path
        return self.damage_error(
            f"its database is missing or empty, but its witness {witness.path} records {witness.newest.pages:,} pages. "
            f"Restore {self.parts(self.location)}. To begin again there, delete {begin}"
        )

    # Damaged states.

    @classmethod
    @contextmanager
    def damaged_copy(cls, location: str, folder: Path) -> Iterator[FileEngine]:
        """Copy the state under its lock into ``folder``, which the caller removes, and open the copy.

        Its ``rows`` raise StoreError at the first row that cannot be read. Raises StoreLocked while a crawl uses the
        state, StoreError if it cannot be copied or opened.
        """
        engine = cls(location)
        engine.lock()
        try:
            engine.copy_damaged(folder)
        except OSError as error:
            raise StoreError(
                f"The state at {location} cannot be copied: {error}. Check that its files can be read and that the "
                "disk has room for two copies next to the new state."
            ) from None
        finally:
            engine.unlock()
        try:
            engine.open_damaged(folder)
            yield engine
        finally:
            engine.close_files()

    @abstractmethod
    def copy_damaged(self, folder: Path) -> None:
        """Copy the files of the locked state into a folder. Raises OSError."""

    @abstractmethod
    def open_damaged(self, folder: Path) -> None:
        """Open that copy. Raises StoreError if nothing can be read."""

    # Errors.

    @abstractmethod
    def is_outside(self, error: BaseException) -> bool:
        """Whether an error of the library comes from disk or system, not from the rows."""

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Raise errors of the library or the system as a StoreError."""
        try:
            yield
        except self.errors as error:
            raise self.translated(error) from error

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """Errors of the library and of the system."""
        return self.library_error, self.closed_error, OSError

    def translated(self, error: Exception) -> StoreError:
        """Return the StoreError for an error of the library or the system."""
        if isinstance(error, self.closed_error):
            return StoreError(f"The state at {self.location} is closed.")
        if isinstance(error, self.library_error) and not self.is_outside(error):
            return self.damage_error(str(error))
        return self.out_of_reach(error)

    def hopeless(self, why: object) -> StoreError:
        """Return the error for a damaged state if even its copy cannot be opened."""
        return StoreError(
            f"Nothing in the state at {self.location} can be read ({why}). If the disk is full, make room "
            "and try again; else restore it from a backup."
        )
