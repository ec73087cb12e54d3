"""A state at one moment, only for reading, while another process may write to it."""

from __future__ import annotations

import time

from scrapy_neardup.errors import StoreDamaged, StoreError
from scrapy_neardup.kv.base import Changes, FileEngine, Moving, WrappedStore
from scrapy_neardup.kv.integrity import open_witness, read_tally, was_closed
from scrapy_neardup.kv.memory import Memory
from scrapy_neardup.kv.tally import KEY, RowTally, Witness

#: Attempts to read a state that another process changes, and seconds between them.
_TRIES, _PAUSE = 200, 0.02


class Snapshot(WrappedStore):
    """The rows of a state at one moment. If there is no state, none is made, and there are no rows."""

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
        for left in reversed(range(_TRIES)):
            #: Whether another process uses the state.
            self.is_held = self._engine.is_held()
            witness = None
            try:
                # First the witness: the state is written before it, so the state must be as new.
                witness = open_witness(self._engine, writable=False)
                self._open(witness)
                return
            except (Moving, StoreDamaged) as error:
                self._engine.close_snapshot()
                # A crawl may have begun or ended meanwhile, which can look like damage.
                moves = isinstance(error, Moving) or self.is_held or self._engine.is_held()
                if not (left and moves):
                    raise error if isinstance(error, StoreDamaged) else self._restless() from None
            except BaseException:
                self._engine.close_snapshot()
                raise
            finally:
                if witness is not None:
                    witness.release()
            time.sleep(_PAUSE)

    def _open(self, witness: Witness | None) -> None:
        engine = self._engine
        is_begun = witness is not None and witness.newest.sequence > 0
        if not engine.open_snapshot(witness, is_held=self.is_held):
            if witness is not None and is_begun:
                raise engine.gone(witness)
            self.base = Memory(self.location)
            return
        if self.is_held and witness is not None and is_begun and not self._is_as_new_as(witness):
            raise Moving
        self.tally = read_tally(engine, witness)
        # A process that holds the state has verified it.
        self.must_verify = not self.is_held and not was_closed(engine, witness, self.tally)

    def _is_as_new_as(self, witness: Witness) -> bool:
        try:
            return RowTally.unpack(self._engine.get(KEY) or b"").sequence >= witness.newest.sequence
        except ValueError:
            return False

    def _restless(self) -> StoreError:
        if self.is_held:
            return StoreError(f"The state at {self.location} changes too fast to be read. Try again in a moment.")
        return self.damaged("its file CURRENT, or the manifest that it names, is missing or changing")

    def write(self, changes: Changes, *, sync: bool) -> None:
        raise RuntimeError(f"The state at {self.location} is open for reading only.")

    def compact(self) -> None:
        """Do nothing; the state belongs to another process."""

    def close(self, last: Changes | None = None) -> None:
        self._engine.close_snapshot()
