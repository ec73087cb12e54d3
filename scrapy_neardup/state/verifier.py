"""Whether all rows of a state fit together, and fit its tally."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.hashing.keys import keys_of
from scrapy_neardup.kv.base import KeyValueStore
from scrapy_neardup.kv.tally import KEY, MASK, RowTally, of_row
from scrapy_neardup.state.layout import last_id, unpack_id, unpack_seen, url_key
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.records import is_posting, pairs

#: Rows that records imply.
_DERIVED = (b"k", b"u")


def row_problems(kv: KeyValueStore, tally: RowTally, hashes: Keyed | None) -> Iterator[str]:
    """Yield where rows disagree with each other or with the tally. Reads all rows."""
    count = RowCount(hashes)
    try:
        for key, value in kv.scan(b""):
            count.add(key, value)
    except ValueError as error:
        yield str(error)
    else:
        yield from count.problems(tally)


class RowCount:
    """Counts all rows, in 32 bytes a page.

    The tally covers rows that no other row implies. Records imply postings and URLs: postings are compared by number
    and sums, and each record needs its URL row and vice versa.
    """

    def __init__(self, hashes: Keyed | None) -> None:
        """``hashes``: of URLs; None skips these."""
        self._hashes = hashes
        self._last = b""
        self._pages = self._total = 0
        #: Sums over postings less those over records, so 0 in the end: of ids, and of key times id. The second finds
        #: exchanged ids.
        self._ids_filed = self._filed = 0
        #: Id and hash of the URL: of each record, and of each URL row.
        self._ids, self._urls = array("Q"), array("Q")
        self._named, self._known = array("Q"), array("Q")
        #: Superseded pages may have no URL row: later versions were rolled back, or have it.
        self._superseded: set[int] = set()

    def add(self, key: bytes, value: bytes) -> None:
        """Add the next row in byte order. Raises ValueError if it cannot exist."""
        if key < self._last:
            raise ValueError(f"its rows are not in order at the key {key!r:.60}")
        self._last = key
        self.count(key, value)
        first = key[:1]
        if first == b"k":
            self.add_postings(pairs((key, value)) if is_posting((key, value)) else [(1, 1)])
        elif first == b"u":
            self.add_url(last_id(key), _named_by(key, value))
        elif first == b"r":
            self.add_record(_record(key, value))

    def count(self, key: bytes, value: bytes) -> None:
        """Count a row only for the tally."""
        first = key[:1]
        if first not in _DERIVED and key != KEY:
            self._total += of_row(key, value)
            self._pages += first == b"r"
            if first == b"j":
                self._superseded.add(unpack_id(value))

    def add_postings(self, postings: Iterable[tuple[int, int]]) -> None:
        """Add keys and ids."""
        for key, id in postings:
            self._ids_filed += id
            self._filed += key * id

    def add_url(self, url: int, id: int) -> None:
        """Add a URL row, with the hash of its URL."""
        self._known.append(url)
        self._named.append(id)

    def add_record(self, record: Record) -> None:
        """Add a record."""
        self._ids.append(record.id)
        if self._hashes is not None:
            self._urls.append(last_id(url_key(record.url, self._hashes)))
        if record.keys:
            keys = keys_of(record.keys)
            self._ids_filed -= len(keys) * record.id
            self._filed -= sum(keys) * record.id

    @property
    def ids(self) -> npt.NDArray[np.uint64]:
        """The ids of all records."""
        return column(self._ids)

    def unnamed(self) -> list[int]:
        """Return the ids of pages without a URL row: theirs names another page."""
        urls, named = column(self._urls), column(self._named) ^ column(self._known)
        is_unnamed = np.isin(urls, column(self._known)) & ~np.isin(self.ids ^ urls, named)
        return [id for id in self.ids[is_unnamed].tolist() if id not in self._superseded]

    def problems(self, tally: RowTally | None) -> Iterator[str]:
        """Yield what disagrees, after the last row. A URL row may name another URL of the same hash."""
        if tally is not None and self._pages != tally.pages:
            yield f"it has {self._pages:,} pages, but had {tally.pages:,} after its last write"
        elif tally is not None and self._total & MASK != tally.total:
            yield f"its {self._pages:,} pages are there, but some rows have changed, are missing or are extra"
        if self._ids_filed or self._filed:
            yield "its postings do not match its records"
        if self._hashes is None:
            return
        urls = column(self._urls)
        if any(id not in self._superseded for id in self.ids[~np.isin(urls, column(self._known))].tolist()):
            yield "the URL row of a page is missing"
        if not np.isin(column(self._named) ^ column(self._known), self.ids ^ urls).all():
            yield "a URL row names a page that is missing, or has another URL"


def column(values: array[int]) -> npt.NDArray[np.uint64]:
    """Return numbers of 64 bits as an array, without a copy."""
    return np.frombuffer(values, np.uint64) if values else np.empty(0, np.uint64)


def _named_by(key: bytes, seen: bytes) -> int:
    try:
        return unpack_seen(seen)[0]
    except struct.error as error:
        raise ValueError(f"the URL row {last_id(key):016x} cannot be read ({error})") from None


def _record(key: bytes, packed: bytes) -> Record:
    try:
        return Record.unpack(last_id(key), packed)
    except ValueError as error:
        raise ValueError(f"the record {last_id(key):016x} cannot be read ({error})") from None
