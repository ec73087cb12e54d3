"""Integrity: each write updates a checksum of all rows, and each opening verifies it."""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from scrapy_neardup.errors import StoreError
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.hashing.keys import keys_of
from scrapy_neardup.kv.base import SETTING, Changes, KeyValueStore
from scrapy_neardup.kv.tally import CLOSED, DERIVED, KEY, MASK, RECORD, RowTally, Witness, of_row, of_rows
from scrapy_neardup.state import layout
from scrapy_neardup.state.layout import last_id, unpack_id, url_key
from scrapy_neardup.state.postings import is_posting, pairs
from scrapy_neardup.state.recipe import Secret
from scrapy_neardup.state.record import Record


class Recount:
    """Counts all rows in byte order, in 32 bytes a page, to verify the tally.

    The tally covers rows that no other row implies. Records imply postings and URLs: postings are compared by number
    and sum, and each record needs a URL row and vice versa.
    """

    def __init__(self, hashes: Keyed | None, *, tally_alone: bool = False) -> None:
        """``hashes``: of URLs; None skips these. ``tally_alone``: skip what records imply."""
        self._hashes = hashes
        self._tally_alone = tally_alone
        self._last = b""
        self._pages = self._total = 0
        #: Postings minus those of records: their number, and the sum of keys and ids.
        self._postings = self._filed = 0
        self._ids, self._urls = array("Q"), array("Q")
        self._named, self._known = array("Q"), array("Q")
        self._replaced: set[int] = set()

    def add(self, key: bytes, value: bytes) -> None:
        """Add the next row. Raises ValueError if it cannot exist."""
        if key < self._last:
            raise ValueError(f"its rows are not in order at the key {key!r:.60}")
        self._last = key
        first = key[:1]
        if self._tally_alone:
            if first not in (b"k", b"u", b"x") and key != KEY:
                self._total += of_row(key, value)
                self._pages += first == b"r"
        elif first == b"k":
            for number, id in pairs((key, value)) if is_posting((key, value)) else ((0, 1),):
                self._postings += 1
                self._filed += (number << 64) + id
        elif first == b"u":
            self._known.append(last_id(key))
            self._named.append(int.from_bytes(value[:8], "big"))
        elif first != b"x" and key != KEY:  # a body that is not found is one that is read
            self._total += of_row(key, value)
            if first == b"j":
                self._replaced.add(unpack_id(value))
            elif first == b"r":
                self._take(_record(key, value))

    def _take(self, record: Record) -> None:
        self._pages += 1
        self._ids.append(record.id)
        # A superseded page may have no URL row: later versions were rolled back, or have it.
        if self._hashes is not None and record.id not in self._replaced:
            self._urls.append(last_id(url_key(record.url, self._hashes)))
        if record.keys:
            keys = keys_of(record.keys)
            self._postings -= len(keys)
            self._filed -= (sum(keys) << 64) + len(keys) * record.id

    def problems(self, tally: RowTally) -> Iterator[str]:
        """Yield what disagrees, after the last row."""
        if self._pages != tally.pages:
            yield f"it has {self._pages:,} pages, but had {tally.pages:,} after its last write"
        elif self._total & MASK != tally.total:
            yield f"its {self._pages:,} pages are there, but some rows have changed, are missing or are extra"
        if self._postings or self._filed:
            yield "its postings do not match its records"
        if not _all_in(self._urls, self._known):
            yield "the URL row of a page is missing"
        if not _all_in(self._named, self._ids):
            yield "a URL row names a page that is missing"


def _all_in(some: array[int], others: array[int]) -> bool:
    return bool(np.isin(_column(some), _column(others)).all())


def _column(values: array[int]) -> npt.NDArray[np.uint64]:
    return np.frombuffer(values, np.uint64) if values else np.empty(0, np.uint64)


def _record(key: bytes, packed: bytes) -> Record:
    try:
        return Record.unpack(last_id(key), packed)
    except ValueError as error:
        raise ValueError(f"the record {last_id(key):016x} cannot be read ({error})") from None


class Tallied(KeyValueStore):
    """A key-value store that notices missing and changed rows.

    An engine with a witness calls ``_meet_witness`` before it opens its database, ``_end_witness`` after closing it,
    and ``_release_witness`` in any case, all under its lock.
    """

    #: Whether there is a tally. A state that ends with its process has none.
    tallied: ClassVar[bool] = True
    #: Hashes under the secret of the state; None if the secret is unknown.
    known_hashes: Keyed | None = None
    _tally: RowTally
    _witness: Witness | None = None
    #: Whether the files are as a clean close left them, as far as the engine can tell.
    _untouched = False
    #: Whether the state was verified. Nothing may change before.
    _accepted = False
    _ending = False

    @abstractmethod
    def _apply(self, changes: Changes, *, sync: bool) -> None:
        """Apply all changes or none. ``sync``: they and all earlier ones survive a power cut."""

    def _accept(self) -> None:
        """The state is sound and will be written to."""

    def _settle(self) -> None:
        """The state is marked open: make sure that its largest file says so too."""

    # Writing.

    def write(self, changes: Changes) -> None:
        super().write(changes)
        self._largest = max(self._largest, *(layout.last_id(key) for key in changes.puts if key[0] == RECORD), 0)

    def _write(self, changes: Changes, *, sync: bool) -> None:
        self._writes += 1
        if not self.tallied:
            self._apply(changes, sync=sync)
            return
        tally = self._tally_after(changes)
        changes.puts[KEY] = tally.pack()
        self._apply(changes, sync=sync)
        self._tally = tally
        if self._witness is not None:
            self._witness.note(tally, synced=sync)

    def _tally_after(self, changes: Changes) -> RowTally:
        """Return the tally after these changes. This runs for every page, so it reads only what it must."""
        state, sequence, pages, total, _ = self._tally
        for key in changes.deletes:
            if key[0] not in DERIVED and (old := self._get(key)) is not None:
                total -= of_row(key, old)
                pages -= key[0] == RECORD
        added, new, unsure = of_rows(changes.puts, self._largest)
        for key in unsure:
            if (old := self._get(key)) is not None:
                total -= of_row(key, old)
            else:
                new += key[0] == RECORD
        total, pages = total + added, pages + new
        return RowTally(state, sequence + 1, pages, total & MASK, self._ending)

    # Opening, in four steps.

    def _meet_witness(self, *, new: bool) -> None:
        """Open the witness before the database; ``new``: there is no database. Raises StoreDamaged if there must be
        one.
        """
        path = self.witness_of(self.location)
        assert path is not None
        try:
            try:
                self._witness = Witness(path)
            except FileNotFoundError:
                if new:
                    self._witness = Witness.create(path, RowTally.new())
        except ValueError as error:
            raise self.damaged(f"its witness {path} cannot be read: {error}") from None
        except OSError as error:
            raise StoreError(
                f"The witness {path} of the state at {self.location} cannot be opened: {error}. Check its permissions "
                f"and the disk, restore {self.parts(self.location)} from a backup, or set {SETTING} to a new path to "
                "begin another state."
            ) from error
        if new and self._witness is not None and self._witness.newest.sequence:
            raise self._gone(self._witness)

    def _read_tally(self) -> None:
        """Read the tally after the database is open. It must be as new as the witness."""
        if not self.tallied:
            return
        packed, witness = self._get(KEY), self._witness
        try:
            self._tally = RowTally.new() if packed is None else RowTally.unpack(packed)
        except ValueError as error:
            raise self.damaged(f"its tally cannot be read ({error})") from None
        if witness is None:
            if packed is not None and not self._tally.closed and self.witness_of(self.location):
                raise self.damaged(
                    f"its witness {self.witness_of(self.location)} is missing, and the database was not closed when it "
                    f"was left or copied, so pages may be missing too. Keep together {self.parts(self.location)}"
                )
            return
        newest = witness.newest
        if packed is None:
            if newest.sequence:
                raise self._gone(witness)
            self._tally = RowTally(newest.state)
        elif newest.state != self._tally.state:
            raise self.damaged(
                f"its witness {witness.path} belongs to another state. Restore its own witness, or delete that file if "
                f"this state was closed. Keep together {self.parts(self.location)}"
            )
        elif self._tally.sequence < newest.sequence:
            raise self.damaged(
                f"it ends at write {self._tally.sequence:,} with {self._tally.pages:,} pages, but its witness "
                f"{witness.path} records write {newest.sequence:,} with {newest.pages:,} pages. If you restored an "
                f"older copy on purpose, restore its witness too. Keep together {self.parts(self.location)}"
            )

    def _hold_against_tally(self) -> None:
        """Verify all rows against the tally, unless the state was closed cleanly."""
        if not self.tallied:
            return
        if not self._tally.sequence:
            raise self.damaged("it has a recipe, but its tally is missing")
        witness = self._witness
        if not (self._untouched and witness is not None and witness.was_closed(self._tally)):
            for problem in (*self.tally_problems(), *self.file_problems()):
                raise self.damaged(problem)

    def _take_up(self) -> None:
        """Mark the state as open. Everything that can refuse it was read; from here on it may change."""
        if not self.tallied or self._accepted:
            return
        self._accept()
        self._accepted = True
        path = self.witness_of(self.location)
        if self._witness is None and path is not None:
            with suppress(OSError):
                self._witness = Witness.create(path, self._tally)
        self._write(Changes(), sync=True)
        self._settle()

    def _keep_secret(self, secret: Secret | None) -> None:
        """Let the witness keep a secret of the state's own."""
        if self._witness is not None and secret is not None and secret.is_own:
            with suppress(OSError):
                self._witness.keep(secret.value)

    def tally_problems(self, *, tally_alone: bool = False) -> Iterator[str]:
        """Yield what rows contradict: the tally and, unless ``tally_alone``, the records. Reads all rows."""
        if self.tallied:
            count = Recount(self.known_hashes, tally_alone=tally_alone)
            try:
                for key, value in self._scan(b""):
                    count.add(key, value)
            except ValueError as error:
                yield str(error)
            else:
                yield from count.problems(self._tally)

    # Closing.

    def _end_witness(self, digest: str = CLOSED) -> None:
        """Record the close. Raises OSError."""
        if self._witness is not None and self._accepted and self._tally.closed:
            self._witness.close(self._tally, digest)

    def _release_witness(self) -> None:
        """Close the file. A second call does nothing."""
        if self._witness is not None:
            self._witness.release()
            self._witness = None

    def _gone(self, witness: Witness) -> StoreError:
        left = witness.newest
        begin = Path(self.location) if Path(self.location).is_dir() else witness.path
        return self.damaged(
            f"its database is missing or empty, but its witness {witness.path} records {left.pages:,} pages. Restore "
            f"{self.parts(self.location)}. To begin again there, delete {begin}"
        )
