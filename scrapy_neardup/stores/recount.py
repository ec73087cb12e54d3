"""All rows of a state, counted anew and held against its tally."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.hashing.width import KeyWidth
from scrapy_neardup.stores.layout import last_id, unpack_id, url_key
from scrapy_neardup.stores.postings import is_posting, pairs
from scrapy_neardup.stores.record import Record
from scrapy_neardup.stores.tally import KEY, MASK, RowTally, of_row


class Recount:
    """Rows are taken in byte order; held are 32 bytes a page.

    The tally covers what nothing else tells of. Of postings and URLs the records say which there must be: the postings
    are compared by number and sum, and each record's URL must have a row, each such row name a record.
    """

    def __init__(self, hashes: Keyed | None, width: KeyWidth, *, tally_alone: bool = False) -> None:
        """``hashes``: by what URLs are filed; where that is not known here, these are not looked at.

        ``width``: of the keys of the state.
        ``tally_alone``: leave out what records tell, as somebody else looks at that.
        """
        self._hashes = hashes
        self._width = width
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
            keys = self._width.keys(record.keys)
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
