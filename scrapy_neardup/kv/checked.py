"""Engines in files, with their integrity: each write updates a checksum, and the next opening verifies it.

The tally (number of writes, number of pages, sum over the rows that cannot be rebuilt from others) is stored in the
database, and again in a small file beside it, the witness. If they disagree, the database was restored, cut or swapped.

Both openings begin alike: the witness is read, then the database at one moment, and no file changes. A
``Snapshot`` stays so. A ``CheckedStore`` has the lock, and once everything that can refuse the state was read,
``accept`` opens it for writing.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from scrapy_neardup.errors import StoreDamaged, StoreError
from scrapy_neardup.kv.base import Changes, FileEngine, Moving, WrappedStore
from scrapy_neardup.kv.memory import Memory
from scrapy_neardup.kv.tally import DERIVED, KEY, MASK, RECORD, RowTally, Witness, of_row, of_rows


class CheckedStore(WrappedStore):
    """An engine with a tally of its rows, and a witness file beside them.

    Opening takes the lock, and writes nothing to an existing state; a new one gets an empty witness. ``must_verify``
    says whether all rows have to be read and compared with the tally.
    """

    def __init__(self, engine: FileEngine) -> None:
        """Open the state of an engine. Raises StoreLocked, StoreDamaged, StoreError."""
        super().__init__(engine)
        self._engine = engine
        self._witness: Witness | None = None
        self._is_closing = False
        engine.lock()
        try:
            witness = self._witness = open_witness(engine, writable=True)
            is_new = engine.is_new()
            if witness is None and is_new:
                witness = self._witness = self._new_witness(RowTally.new())
            if witness is None or witness.newest.sequence:
                if witness is not None and is_new:
                    raise _gone(engine, witness)
                engine.open(witness, is_held=False)
            else:
                engine.create()  # also if making it was cut short
            self.tally: RowTally = _read_tally(engine, witness)
        except BaseException as error:
            try:
                engine.close_files()
            finally:
                self._unlock()
            if isinstance(error, Moving):
                raise self.damaged(str(error)) from None
            raise
        self.must_verify = not _was_closed(engine, witness, self.tally)

    def accept(self) -> None:
        self._engine.accept()
        if self._witness is None:
            with suppress(StoreError):
                self._witness = self._new_witness(self.tally)
        self.write(Changes(), sync=True)  # the tally says from now on that the state is not closed
        self._engine.settle()

    def _new_witness(self, tally: RowTally) -> Witness:
        try:
            return Witness.create(self._engine.witness_of(self.location), tally)
        except OSError as error:
            raise self.out_of_reach(error) from error

    def keep_secret(self, secret: bytes) -> None:
        if self._witness is not None:
            with suppress(OSError):
                self._witness.keep(secret)

    def write(self, changes: Changes, *, sync: bool) -> None:
        tally = self._tally_after(changes)
        changes.puts[KEY] = tally.pack()
        self._engine.write(changes, sync=sync)
        self.tally = tally
        if self._witness is not None:
            self._witness.note(tally, synced=sync)

    def _tally_after(self, changes: Changes) -> RowTally:
        """Return the tally after these changes. This runs for every page, so it reads only what it must."""
        state, sequence, pages, total, _ = self.tally
        get = self._engine.get
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
        engine, witness = self._engine, self._witness
        try:
            if last is not None:
                self._is_closing = True
                self.write(last, sync=True)
        finally:
            try:
                engine.close_files()
                # Opening LevelDB changes its files, even if the state was then refused.
                if witness is not None and self.tally.closed and (self._is_closing or engine.is_untouched):
                    witness.close(self.tally, engine.digest())
            except OSError as error:
                raise self.out_of_reach(error) from error
            finally:
                self._unlock()

    def _unlock(self) -> None:
        if self._witness is not None:
            self._witness.release()
        self._engine.unlock()


#: Attempts to read a state that another process changes, and seconds between them.
_TRIES, _PAUSE = 200, 0.02


class Snapshot(WrappedStore):
    """The rows of a state at one moment, only for reading, while another process may write to it.

    If there is no state, none is made, and there are no rows.
    """

    is_scratch = True

    def __init__(self, engine: FileEngine) -> None:
        """Raises StoreDamaged, or StoreError if the state cannot be read or changes too fast."""
        super().__init__(engine)
        self._engine = engine
        self.tally: RowTally = RowTally(b"")
        self._take()
        #: The time of the rows, in seconds since 1970.
        self.as_of = time.time()

    @property
    def pages(self) -> int:
        """The number of pages."""
        return self.tally.pages

    def _take(self) -> None:
        engine = self._engine
        for left in reversed(range(_TRIES)):
            #: Whether another process uses the state.
            self.is_held = engine.is_held()
            try:
                self._open()
                return
            except (Moving, StoreDamaged) as error:
                engine.close_files()
                # A crawl may have begun or ended meanwhile, which can look like damage.
                may_change = isinstance(error, Moving) or self.is_held or engine.is_held()
                if not (left and may_change):
                    raise self._restless(error) if isinstance(error, Moving) else error from None
            except BaseException:
                engine.close_files()
                raise
            time.sleep(_PAUSE)

    def _open(self) -> None:
        engine = self._engine
        if not self.is_held:  # else its holder did so; to open a file of this process drops SQLite's locks
            engine.check_place()
        # First the witness: the state is written before it, so the state must be as new.
        witness = open_witness(engine, writable=False)
        if witness is not None:
            witness.release()
        if engine.is_new():
            if witness is not None and witness.newest.sequence:
                raise _gone(engine, witness)
            self.base = Memory(self.location)
            return
        engine.open(witness, is_held=self.is_held)
        self.tally = _read_tally(engine, witness)
        # A process that holds the state has verified it.
        self.must_verify = not self.is_held and not _was_closed(engine, witness, self.tally)

    def _restless(self, error: Moving) -> StoreError:
        if self.is_held:
            return StoreError(f"The state at {self.location} changes too fast to be read. Try again in a moment.")
        return self.damaged(str(error))

    def write(self, changes: Changes, *, sync: bool) -> None:
        raise RuntimeError(f"The state at {self.location} is open for reading only.")

    def close(self, last: Changes | None = None) -> None:
        self._engine.close_files()


def open_witness(engine: FileEngine, *, writable: bool) -> Witness | None:
    """Open the witness of a state; None if there is none. Raises StoreDamaged, StoreError."""
    path = engine.witness_of(engine.location)
    try:
        return Witness(path, writable=writable)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise engine.damaged(f"its witness {path} cannot be read: {error}") from None
    except OSError as error:
        raise engine.out_of_reach(error) from error


def _read_tally(engine: FileEngine, witness: Witness | None) -> RowTally:
    """Return the tally of an open database, which must not be older than the witness. Raises StoreDamaged."""
    packed, parts = engine.get(KEY), engine.parts(engine.location)
    try:
        tally = RowTally.new() if packed is None else RowTally.unpack(packed)
    except ValueError as error:
        raise engine.damaged(f"its tally cannot be read ({error})") from None
    if witness is None:
        if packed is not None and not tally.closed:
            raise engine.damaged(
                f"its witness {engine.witness_of(engine.location)} is missing, and the database was not closed when it "
                f"was left or copied, so pages may be missing too. Keep together {parts}"
            )
        return tally
    newest = witness.newest
    if packed is None:
        if newest.sequence:
            raise _gone(engine, witness)
        return RowTally(newest.state)
    if newest.state != tally.state:
        raise engine.damaged(
            f"its witness {witness.path} belongs to another state. Restore its own witness, or delete that file if "
            f"this state was closed. Keep together {parts}"
        )
    if tally.sequence < newest.sequence:
        raise engine.damaged(
            f"it ends at write {tally.sequence:,} with {tally.pages:,} pages, but its witness {witness.path} records "
            f"write {newest.sequence:,} with {newest.pages:,} pages. If you restored an older copy on purpose, restore "
            f"its witness too. Keep together {parts}"
        )
    return tally


def _was_closed(engine: FileEngine, witness: Witness | None, tally: RowTally) -> bool:
    """Whether the files are as a clean close left them, as far as anybody can tell."""
    return engine.is_untouched and witness is not None and witness.was_closed(tally)


def _gone(engine: FileEngine, witness: Witness) -> StoreDamaged:
    """Return the error for a missing database that the witness knows."""
    begin = Path(engine.location) if Path(engine.location).is_dir() else witness.path
    return engine.damaged(
        f"its database is missing or empty, but its witness {witness.path} records {witness.newest.pages:,} pages. "
        f"Restore {engine.parts(engine.location)}. To begin again there, delete {begin}"
    )
