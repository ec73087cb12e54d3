"""Read all records of a state in one pass."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.layout import last_id, unpack_seen
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record

# ----------------------------------------------------------------------------------------------------------------------
# Reading a state from end to end: records with their evidence, and who watches how far it has come.


T = TypeVar("T")


class Watch(Protocol):
    """Sees items go by, to show how far the work has come."""

    def __call__(self, iterable: Iterable[T], total: int | None = None, what: str = "pages") -> Iterable[T]:
        """The same items."""


def unwatched(iterable: Iterable[T], total: int | None = None, what: str = "pages") -> Iterable[T]:
    """The items, watched by nobody."""
    return iterable


def with_evidence(store: PageStore, watch: Watch = unwatched) -> Iterator[tuple[Record, Evidence | None]]:
    """All records with what can be told of their pages, by id; two scans side by side, not a look-up for each."""
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


# ----------------------------------------------------------------------------------------------------------------------
# Which page is whose copy, for all pages of a state at once, in columns of numbers: 17 bytes a page.


Ids = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Members:
    """Of each record its id, its original's (its own, if it is no copy), and whether it could be judged; by id."""

    ids: Ids
    originals: Ids
    judged: Flags

    @property
    def copies(self) -> Flags:
        """Which records are copies."""
        differ: Flags = self.originals != self.ids
        return differ

    def place(self, wanted: Ids) -> tuple[npt.NDArray[np.intp], Flags]:
        """Where each of these ids stands, and whether it is there; the place of one that is not means nothing."""
        return place(self.ids, wanted)

    def groups(self, least: int = 2) -> Iterator[tuple[int, list[int]]]:
        """Original and members, by id, of each group of at least so many pages; the largest first, then the oldest.

        Those of an original that is gone are still a group: they have that much in common.
        """
        ids, originals = self.ids[self.judged], self.originals[self.judged]
        order = np.lexsort((ids, originals))
        ids = ids[order]
        names, first, sizes = np.unique(originals[order], return_index=True, return_counts=True)
        largest = np.lexsort((names, -sizes))
        for at in largest[sizes[largest] >= least]:
            yield int(names[at]), ids[first[at] : first[at] + sizes[at]].tolist()


class Collector:
    """Takes one record after the other."""

    def __init__(self) -> None:
        self._ids = array("Q")
        self._originals = array("Q")
        self._judged = array("B")

    def add(self, record: Record) -> None:
        """Take the next record; they come in the order of their ids."""
        self._ids.append(record.id)
        self._originals.append(record.original)
        self._judged.append(record.original != record.id or record.similarity > 0)

    def members(self) -> Members:
        """All that were taken."""
        return Members(column(self._ids), column(self._originals), np.array(self._judged, np.bool_))


def place(ids: Ids, wanted: Ids) -> tuple[npt.NDArray[np.intp], Flags]:
    """Where each of some ids stands among others in their order; see ``Members.place``."""
    if not len(ids):
        return np.zeros(len(wanted), np.intp), np.zeros(len(wanted), np.bool_)
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return at, ids[at] == wanted


def column(numbers: array[int]) -> Ids:
    """An array of 64-bit numbers as a column."""
    return np.array(numbers, np.uint64)


def members(records: Iterable[Record]) -> Members:
    """The columns of these records, which come by id."""
    found = Collector()
    for record in records:
        found.add(record)
    return found.members()


def last_seen(store: PageStore, of: Members) -> npt.NDArray[np.uint64]:
    """When each page was last judged, in seconds since 1970; when it was first seen, if its URL tells nothing."""
    ids, seconds = array("Q"), array("Q")
    for _, seen in store.rows(b"u"):
        id, when = unpack_seen(seen)
        ids.append(id)
        seconds.append(when)
    found: npt.NDArray[np.uint64] = of.ids // np.uint64(10**9)
    at, there = of.place(column(ids))
    found[at[there]] = column(seconds)[there]
    return found
