"""Read all records of a state in one pass."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

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
    kept = store.rows(b"e")
    key, packed = next(kept, (b"", b""))
    for record in watch(store.records(), store.pages):
        while key and last_id(key) < record.id:
            key, packed = next(kept, (b"", b""))
        yield record, _unpacked(store, packed) if key and last_id(key) == record.id else None


def _unpacked(store: PageStore, packed: bytes) -> Evidence:
    try:
        return Evidence.unpack(packed)
    except ValueError as error:
        raise store.damaged(str(error)) from None


Ids = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
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


def column(numbers: array[int]) -> Ids:
    """View an array of 64-bit numbers as a column."""
    return np.array(numbers, np.uint64)


def members(records: Iterable[Record]) -> Members:
    """Return the columns of records that come by id."""
    ids, originals, judged = array("Q"), array("Q"), array("B")
    for record in records:
        ids.append(record.id)
        originals.append(record.original)
        judged.append(not record.is_unjudged)
    return Members(column(ids), column(originals), np.array(judged, np.bool_))
