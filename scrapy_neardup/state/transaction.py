"""Writes kept in memory above a state that does not change."""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from scrapy_neardup.errors import StoreDamaged, StoreError
from scrapy_neardup.kv.base import SETTING, Changes, Row
from scrapy_neardup.kv.checkpoint import Moving
from scrapy_neardup.kv.tally import RowTally, Witness
from scrapy_neardup.state import layout
from scrapy_neardup.state.journal import TakenBack
from scrapy_neardup.state.memory import bucket, is_in_one
from scrapy_neardup.state.pages import PageStore, Pending
from scrapy_neardup.state.recipe import Secret

#: Attempts to read a state that another process changes, and seconds between them.
_TRIES, _PAUSE = 200, 0.02


class Overlay(PageStore):
    """A snapshot of a state, with writes in memory. The state does not change, and crawls can go on.

    If there is no state, none is made. Each engine has a subclass that opens a snapshot (``_look``).
    """

    #: Whether there was no state.
    _is_empty = True

    def __init__(
        self,
        location: str,
        recipe: Mapping[str, Any] | None,
        named_by: str = SETTING,
        secret: Secret | None = None,
        *,
        is_written: bool = False,
    ) -> None:
        """``is_written``: for a dry run; else writing is a programming error.

        A dry run rolls abandoned unsealed pages back, in memory; otherwise they show as ``pending``.
        """
        self.is_written = is_written
        self.as_of = time.time()
        #: Pages in the snapshot.
        self.pages_found = 0
        self._above: dict[bytes, dict[bytes, bytes | None]] = {}
        super().__init__(location, recipe, named_by, secret)

    def pending(self) -> Pending:
        try:
            names = [str(json.loads(about)["who"]) for _, about in self._scan_below(b"g")]
        except (ValueError, TypeError, KeyError):
            raise self.damaged("the row of a crawl cannot be read") from None
        return Pending(sum(1 for _ in self._scan_below(b"j")), tuple(names))

    def is_pending(self, id: int) -> bool:
        crawls = (layout.last_id(key) for key, _ in self._scan_below(b"g"))
        return any(self._get_below(layout.journal_key(crawl, id)) is not None for crawl in crawls)

    # An engine implements these.

    @abstractmethod
    def _look(self) -> None:
        """Open a snapshot. Raises Moving if the files changed, StoreDamaged, StoreError."""

    @abstractmethod
    def _close_look(self) -> None:
        """Undo ``_look``, as far as it came. A second call does nothing."""

    @abstractmethod
    def _is_in_use(self) -> bool:
        """Whether somebody holds the lock of the state."""

    @abstractmethod
    def _get_below(self, key: bytes) -> bytes | None: ...

    @abstractmethod
    def _scan_below(self, prefix: bytes, *, reverse: bool = False) -> Iterator[Row]: ...

    # Opening makes, repairs and takes over nothing.

    def _connect(self) -> None:
        for left in reversed(range(_TRIES)):
            try:
                self.is_held = self._is_in_use()
                self._release_witness()
                self._witness = self._found_witness()
                self._look()
                return
            except (Moving, StoreDamaged) as error:
                self._close_look()
                # A crawl may have begun or ended meanwhile, which can look like damage.
                moves = self.is_held or self._is_in_use()
                if not (left and (moves or isinstance(error, Moving))):
                    self._release_witness()
                    raise error if isinstance(error, StoreDamaged) else self._restless() from None
            except BaseException:
                self._close_look()
                self._release_witness()
                raise
            time.sleep(_PAUSE)

    def _disconnect(self) -> None:
        self._release_witness()
        self._close_look()

    def _found_witness(self) -> Witness | None:
        """Read the witness first: the state is written before it, so it must be as new."""
        path = self.witness_of(self.location)
        assert path is not None
        try:
            return Witness(path, writable=False)
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise self.damaged(f"its witness {path} cannot be read: {error}") from None
        except OSError as error:
            raise self.out_of_reach(error) from error

    def _is_begun(self) -> bool:
        """Whether the witness knows of rows."""
        return self._witness is not None and self._witness.newest.sequence > 0

    def _hold_against_witness(self, tally: bytes | None) -> None:
        """Raise Moving if the snapshot of an active state misses a write."""
        if self.is_held and self._witness is not None and self._is_begun():
            try:
                sequence = RowTally.unpack(tally or b"").sequence
            except ValueError:
                raise Moving from None
            if sequence < self._witness.newest.sequence:
                raise Moving

    def _read_tally(self) -> None:
        super()._read_tally()
        self.pages_found = self._tally.pages

    def _hold_against_tally(self) -> None:
        # An active process has verified its rows when necessary.
        if not self.is_held and not self._is_empty:
            super()._hold_against_tally()

    def _take_back(self) -> TakenBack:
        self._release_witness()
        if self.is_written and not self.is_held:
            return super()._take_back()
        return TakenBack(0, ())

    def _take_up(self) -> None:
        """Change nothing."""

    def _list_for_jobs(self, journals: Iterable[bytes], jobs: Mapping[int, str]) -> None:
        """Nothing was rolled back permanently."""

    def _restless(self) -> StoreError:
        if self.is_held:
            return StoreError(f"The state at {self.location} changes too fast to be read. Try again in a moment.")
        return self.damaged("its file CURRENT, or the manifest that it names, is missing or changing")

    def close(self) -> None:
        """Close the snapshot. A second call does nothing."""
        if not self._closed:
            self._closed = True
            self._above = {}
            self._disconnect()

    def _check_recipe(self, recipe: Mapping[str, Any] | None, secret: Secret | None) -> dict[str, Any]:
        if self._get(layout.meta_key("recipe")) is None:
            self._release_witness()  # which knows nothing yet, and is not to know of what is written here
            recipe = recipe if self.is_written else None
        return super()._check_recipe(recipe, secret)

    # Rows in memory hide rows below.

    def _get(self, key: bytes) -> bytes | None:
        above = self._above.get(bucket(key))
        if above is not None and key in above:
            return above[key]
        return self._get_below(key)

    def _get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self._get(key) for key in keys]  # what a kind of store has instead looks below alone

    def _scan(self, prefix: bytes, *, reverse: bool = False) -> Iterator[Row]:
        above = sorted(self._above_with(prefix), reverse=reverse)
        below = self._scan_below(prefix, reverse=reverse)
        found = next(below, None)
        for key, value in above:
            while found is not None and found[0] != key and (found[0] < key) is not reverse:
                yield found
                found = next(below, None)
            if found is not None and found[0] == key:
                found = next(below, None)
            if value is not None:
                yield key, value
        while found is not None:
            yield found
            found = next(below, None)

    def _rows_from(self, low: bytes, prefix: bytes) -> Iterator[Row]:
        return (row for row in self._scan(prefix) if row[0] >= low)

    def _above_with(self, prefix: bytes) -> list[tuple[bytes, bytes | None]]:
        if is_in_one(prefix):
            found: Iterable[dict[bytes, bytes | None]] = (self._above.get(bucket(prefix), {}),)
        else:
            found = (rows for name, rows in self._above.items() if name.startswith(prefix[: len(name)]))
        return [row for rows in found for row in rows.items() if row[0].startswith(prefix)]

    def _apply(self, changes: Changes, *, sync: bool) -> None:
        if not self.is_written:
            raise RuntimeError(f"The state at {self.location} is open for reading only.")
        for key in changes.deletes:
            self._above.setdefault(bucket(key), {})[key] = None
        for key, value in changes.puts.items():
            self._above.setdefault(bucket(key), {})[key] = value

    def compact(self) -> None:
        """Do nothing; the state belongs to another process."""
