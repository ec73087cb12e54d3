"""Whether all rows of a state fit together, and fit its tally."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.hashing.keys import keys_of
from scrapy_neardup.kv.base import KeyValueStore
from scrapy_neardup.kv.tally import KEY, MASK, RowTally, of_row
from scrapy_neardup.state.layout import last_id, unpack_seen, url_key
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.records import ids_of, is_posting, number_of

#: Lengths of the keys of records and URL rows, and of the values of these.
_ID_KEY, _SEEN = 9, 12


def row_problems(kv: KeyValueStore, tally: RowTally, hashes: Keyed | None) -> Iterator[str]:
    """Yield where rows disagree with each other or with the tally. Reads all rows."""
    count, last = RowCount(hashes), b""
    try:
        for key, value in kv.scan(b""):
            if key < last:
                raise ValueError(f"its rows are not in order at the key {key!r:.60}")
            last = key
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
        self._pages = self._total = 0
        #: Sums over postings less those over records, so 0 in the end: of ids, and of key times id. The second finds
        #: exchanged ids.
        self._ids_filed = self._filed = 0
        #: Id and hash of the URL: of each record, and of each URL row.
        self._ids, self._urls = array("Q"), array("Q")
        self._named, self._known = array("Q"), array("Q")
        #: Superseded pages may have no URL row: later versions were rolled back, or have it.
        self._superseded: set[int] = set()

    def add(self, key: bytes, value: bytes) -> Record | int:
        """Add a row. Return its record, or the number of its postings. Raises ValueError if it cannot exist."""
        first = key[:1]
        if first == b"k":
            if not is_posting((key, value)):
                raise ValueError(f"the row {key!r} is no row of a key")
            ids = ids_of((key, value))
            self._ids_filed += sum(ids)
            self._filed += number_of(key) * sum(ids)
            return len(ids)
        if first == b"u":
            self._named.append(_named_by(key, value))
            self._known.append(last_id(key))
        elif key != KEY:
            self._total += of_row(key, value)
            self._pages += first == b"r"
            if first == b"j":
                self._superseded.add(last_id(value))
            elif first == b"r":
                return self._add_record(key, value)
        return 0

    def _add_record(self, key: bytes, packed: bytes) -> Record:
        try:
            if len(key) != _ID_KEY:
                raise ValueError("its key has another length")
            record = Record.unpack(last_id(key), packed)
        except ValueError as error:
            raise ValueError(f"the record {last_id(key):016x} cannot be read ({error})") from None
        self._ids.append(record.id)
        if self._hashes is not None:
            self._urls.append(last_id(url_key(record.url, self._hashes)))
        if record.keys:
            keys = keys_of(record.keys)
            self._ids_filed -= len(keys) * record.id
            self._filed -= sum(keys) * record.id
        return record

    @property
    def ids(self) -> npt.NDArray[np.uint64]:
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
    if len(key) != _ID_KEY or len(seen) != _SEEN:
        raise ValueError(f"the URL row {key!r} cannot be read")
    return unpack_seen(seen)[0]
