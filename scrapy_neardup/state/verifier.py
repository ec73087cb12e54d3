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
from scrapy_neardup.state.layout import last_id, unpack_id, url_key
from scrapy_neardup.state.postings import is_posting, pairs
from scrapy_neardup.state.record import Record


def row_problems(
    kv: KeyValueStore, tally: RowTally, hashes: Keyed | None, *, tally_alone: bool = False
) -> Iterator[str]:
    """Yield where rows disagree with the tally and, unless ``tally_alone``, with the records. Reads all rows."""
    count = RowCount(hashes, tally_alone=tally_alone)
    try:
        for key, value in kv.scan(b""):
            count.add(key, value)
    except ValueError as error:
        yield str(error)
    else:
        yield from count.problems(tally)


class RowCount:
    """Counts all rows in byte order, in 32 bytes a page.

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
