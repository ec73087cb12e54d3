"""Integrity: each write updates a checksum, and the next opening verifies it.

The tally (number of writes, number of pages, sum over the rows that cannot be rebuilt from others) is stored in the
database, and again in a small file beside it, the witness. If they disagree, the database was restored, cut or swapped.
"""

from __future__ import annotations

from contextlib import suppress

from scrapy_neardup.kv.base import Changes, FileEngine, WrappedStore
from scrapy_neardup.kv.tally import DERIVED, KEY, MASK, RECORD, RowTally, Witness, of_row, of_rows


class CheckedStore(WrappedStore):
    """An engine whose rows have a tally, and a witness file beside them.

    Opening takes the lock, and writes nothing to an existing state; a new one gets an empty witness. ``must_verify``
    says whether all rows have to be read and compared with the tally. Then ``accept`` marks the state as open, and from
    there on it may be written to.
    """

    def __init__(self, engine: FileEngine) -> None:
        """Open the state of an engine. Raises StoreLocked, StoreDamaged, StoreError."""
        super().__init__(engine)
        self._engine = engine
        self._witness: Witness | None = None
        self._is_closing = False
        engine.lock()
        try:
            self._witness = _begin_witness(engine, is_new=engine.is_new())
            engine.open(self._witness)
            try:
                self.tally: RowTally = read_tally(engine, self._witness)
            except BaseException:
                engine.close_files()
                raise
        except BaseException:
            self._unlock()
            raise
        self.must_verify = not was_closed(engine, self._witness, self.tally)

    def accept(self) -> None:
        self._engine.accept()
        if self._witness is None:
            with suppress(OSError):
                self._witness = Witness.create(self._engine.witness_of(self.location), self.tally)
        self.write(Changes(), sync=True)  # the tally says from now on that the state is not closed
        self._engine.settle()

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
        for key in unsure:  # rows that may have been there before; those of ids above the largest are surely new
            if (old := get(key)) is not None:
                total -= of_row(key, old)
            else:
                new += key[0] == RECORD
        return RowTally(state, sequence + 1, pages + new, (total + added) & MASK, self._is_closing)

    def close(self, last: Changes | None = None) -> None:
        try:
            if last is not None:
                self._is_closing = True
                self.write(last, sync=True)
        finally:
            try:
                digest = self._engine.close_files()
                if digest and self._witness is not None and self.tally.closed:
                    self._witness.close(self.tally, digest)
            except OSError as error:
                raise self.out_of_reach(error) from error
            finally:
                self._unlock()

    def _unlock(self) -> None:
        if self._witness is not None:
            self._witness.release()
        self._engine.unlock()


def _begin_witness(engine: FileEngine, *, is_new: bool) -> Witness | None:
    """Open the witness before the database, or make both. None if only the database is there."""
    witness = open_witness(engine, writable=True)
    if witness is None and is_new:
        try:
            return Witness.create(engine.witness_of(engine.location), RowTally.new())
        except OSError as error:
            raise engine.out_of_reach(error) from error
    if witness is not None and is_new and witness.newest.sequence:
        witness.release()
        raise engine.gone(witness)
    return witness


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


def read_tally(engine: FileEngine, witness: Witness | None) -> RowTally:
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
            raise engine.gone(witness)
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


def was_closed(engine: FileEngine, witness: Witness | None, tally: RowTally) -> bool:
    """Whether the files are as a clean close left them, as far as anybody can tell."""
    return engine.is_untouched and witness is not None and witness.was_closed(tally)
