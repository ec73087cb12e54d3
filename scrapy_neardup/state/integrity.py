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
from scrapy_neardup.state import layout
from scrapy_neardup.state.kv import SETTING, Changes, KeyValueStore
from scrapy_neardup.state.layout import last_id, unpack_id, url_key
from scrapy_neardup.state.postings import is_posting, pairs
from scrapy_neardup.state.recipe import Secret
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.tally import CLOSED, DERIVED, KEY, MASK, RECORD, RowTally, Witness, of_row, of_rows

# ----------------------------------------------------------------------------------------------------------------------
# All rows of a state, counted anew and held against its tally.


class Recount:
    """Rows are taken in byte order; held are 32 bytes a page.

    The tally covers what nothing else tells of. Of postings and URLs the records say which there must be: the postings
    are compared by number and sum, and each record's URL must have a row, each such row name a record.
    """

    def __init__(self, hashes: Keyed | None, *, tally_alone: bool = False) -> None:
        """``hashes``: by what URLs are filed; where that is not known here, these are not looked at.

        ``tally_alone``: leave out what records tell, as somebody else looks at that.
        """
        self._hashes = hashes
        self._tally_alone = tally_alone
        self._last = b""
        self._pages = self._total = 0
        #: Postings less those that the records name: how many, and the sum of keys and ids as one number.
        self._postings = self._filed = 0
        self._ids, self._urls = array("Q"), array("Q")
        self._named, self._known = array("Q"), array("Q")
        self._replaced: set[int] = set()

    def add(self, key: bytes, value: bytes) -> None:
        """Take the next row; raises ValueError if it cannot be there."""
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
        # One that is to go has no row of its own any more if the versions after it were taken back; else theirs is its.
        if self._hashes is not None and record.id not in self._replaced:
            self._urls.append(last_id(url_key(record.url, self._hashes)))
        if record.keys:
            keys = keys_of(record.keys)
            self._postings -= len(keys)
            self._filed -= (sum(keys) << 64) + len(keys) * record.id

    def problems(self, tally: RowTally) -> Iterator[str]:
        """What does not agree, once all rows were taken."""
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


# ----------------------------------------------------------------------------------------------------------------------
# Every write keeps the tally up, and every opening holds the state against its tally and its witness.


class Tallied(KeyValueStore):
    """Ordered bytes that notice when some of them are missing or have changed.

    A backend that has a witness calls ``_meet_witness`` before it opens its database, ``_end_witness`` when that is
    closed and ``_release_witness`` in any case, all under its lock.
    """

    #: Whether there is anything to keep up; a state that ends with its process has no tally.
    tallied: ClassVar[bool] = True
    #: What hashes under the secret of the state; None where that is not known here.
    known_hashes: Keyed | None = None
    #: Of the keys under which pages are filed.
    _tally: RowTally
    _witness: Witness | None = None
    #: Whether the files are those that were left at a clean close, as far as the backend can tell without all rows.
    _untouched = False
    #: Whether the state was held against its tally; until then nothing of it may be changed.
    _accepted = False
    _ending = False

    @abstractmethod
    def _apply(self, changes: Changes, *, sync: bool) -> None:
        """Apply all changes or none; with ``sync`` they, and all before them, survive a power cut."""

    def _accept(self) -> None:
        """The state is whole, and will be written to."""

    def _settle(self) -> None:
        """It says now that it is open: see that a copy of its largest file alone says so too."""

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
        """That of the state once these are written. Called for every page, so it looks up only what it must."""
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
        """Before the database is opened; ``new``: there is none. Raises StoreDamaged if there must be one."""
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
        """After the database is opened: it must be as new as its witness."""
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
        """After its recipe is known: unless it was closed, its rows must be those that its tally tells of."""
        if not self.tallied:
            return
        if not self._tally.sequence:
            raise self.damaged("it has a recipe, but its tally is missing")
        witness = self._witness
        if not (self._untouched and witness is not None and witness.was_closed(self._tally)):
            for problem in (*self.tally_problems(), *self.file_problems()):
                raise self.damaged(problem)

    def _take_up(self) -> None:
        """After all that must be read to open it: from here on the state may change, and says that it is open."""
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
        """Have the witness hold it too, if it is the state's own."""
        if self._witness is not None and secret is not None and secret.is_own:
            with suppress(OSError):
                self._witness.keep(secret.value)

    def tally_problems(self, *, tally_alone: bool = False) -> Iterator[str]:
        """What the tally, and unless it is alone what the records tell against the rows; reads all of them."""
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
        """The database is closed. Raises OSError."""
        if self._witness is not None and self._accepted and self._tally.closed:
            self._witness.close(self._tally, digest)

    def _release_witness(self) -> None:
        """Let go of the file; a second time does nothing."""
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
