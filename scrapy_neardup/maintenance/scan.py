"""Read all records of a state in one pass, as rows or as columns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from scrapy_neardup.kv.base import Changes, Row
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.layout import last_id
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record

T = TypeVar("T")


class Watch(Protocol):
    """A progress bar: it passes items through."""

    def __call__(self, iterable: Iterable[T], total: int | None = None, what: str = "pages") -> Iterable[T]:
        """Yield the items unchanged."""


def unwatched(iterable: Iterable[T], total: int | None = None, what: str = "pages") -> Iterable[T]:
    """Show no progress."""
    return iterable


def with_evidence(store: PageStore, watch: Watch = unwatched) -> Iterator[tuple[Record, Evidence | None]]:
    """Yield every record with its evidence, by id. It scans two tables side by side instead of looking each page up."""
    kept = store.unpacked(b"e", lambda key, packed: (last_id(key), Evidence.unpack(packed)))
    id, evidence = next(kept, (0, None))
    for record in watch(store.records(), store.pages):
        while evidence is not None and id < record.id:
            id, evidence = next(kept, (0, None))
        yield record, evidence if id == record.id else None


#: Rows per batch.
_BATCH = 20_000


def write_rows(store: PageStore, rows: Iterable[Row]) -> None:
    """Write rows that are no records, in batches."""
    rows = iter(rows)
    while batch := dict(islice(rows, _BATCH)):
        store.write(Changes(batch))


Ids = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]


def columns(rows: Iterable[tuple[int, ...]], *kinds: type[np.generic]) -> list[npt.NDArray[Any]]:
    """Return the columns of rows, one array of each kind. Memory is that of the arrays, twice for a moment."""
    table = np.fromiter(rows, np.dtype([(f"column {number}", kind) for number, kind in enumerate(kinds)]))
    return [np.ascontiguousarray(table[name]) for name in table.dtype.names or ()]


@dataclass(frozen=True)
class Members:
    """Columns of all records, by id, in 17 bytes a page: id, original (its own id if it is no copy), whether it was
    judged.
    """

    ids: Ids
    originals: Ids
    judged: Flags

    @property
    def copies(self) -> Flags:
        """A mask of the copies."""
        differ: Flags = self.originals != self.ids
        return differ

    def place(self, wanted: Ids) -> tuple[npt.NDArray[np.intp], Flags]:
        """Return the positions of ids, and a mask of those that exist. Other positions mean nothing."""
        return place(self.ids, wanted)

    def groups(self, least: int = 2) -> Iterator[tuple[int, list[int]]]:
        """Yield original and members of each group with at least ``least`` pages, the largest first, then the oldest.

        Members whose original is gone are still a group.
        """
        ids, originals = self.ids[self.judged], self.originals[self.judged]
        order = np.lexsort((ids, originals))
        ids = ids[order]
        names, first, sizes = np.unique(originals[order], return_index=True, return_counts=True)
        largest = np.lexsort((names, -sizes))
        for at in largest[sizes[largest] >= least]:
            yield int(names[at]), ids[first[at] : first[at] + sizes[at]].tolist()


def place(ids: Ids, wanted: Ids) -> tuple[npt.NDArray[np.intp], Flags]:
    """Return the positions of sorted ids in a sorted column; see ``Members.place``."""
    if not len(ids):
        return np.zeros(len(wanted), np.intp), np.zeros(len(wanted), np.bool_)
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return at, ids[at] == wanted


def place_of(ids: Ids, id: int) -> int | None:
    """Return the position of one id in a sorted column; None if it is not there."""
    numbers = ids.data  # half the time of an array for single numbers
    at = bisect_left(numbers, id)
    return at if at < len(numbers) and numbers[at] == id else None


def members(records: Iterable[Record]) -> Members:
    """Return the columns of records that come by id."""
    rows = ((one.id, one.original, not one.is_unjudged) for one in records)
    return Members(*columns(rows, np.uint64, np.uint64, np.bool_))
