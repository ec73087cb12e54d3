"""Records, URLs and postings of a state, each against the others."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.states.check.findings import Findings
from scrapy_neardup.states.members import Collector, Ids, Members, column
from scrapy_neardup.states.reading import Watch
from scrapy_neardup.stores import Record, Store
from scrapy_neardup.stores.changes import Row
from scrapy_neardup.stores.layout import last_id, record_key, unpack_seen, url_key
from scrapy_neardup.stores.postings import is_head, is_posting, is_unreachable, pairs
from scrapy_neardup.stores.record import width_of

#: Rows that are compared at once.
_BATCH = 2**16
#: Lengths of keys, and of a URL's value.
_ID_KEY, _SEEN = 9, 12
#: More postings than any key has.
_ALL = 2**32


class Pages:
    """What is held of every record: see ``Members``; hash of its URL, number and sum of its keys.

    ``whole`` says whether all could be read: if not, what names another page may be right. ``former``: ids of the pages
    of a former recipe.
    """

    def __init__(self, hashes: Keyed) -> None:
        self.whole = False
        self.former = array("Q")
        self._hashes = hashes
        self._collector = Collector()
        self._ids = array("Q")
        self._urls = array("Q")
        self._many = array("Q")
        self._sums = array("Q")
        self._done()

    def add(self, record: Record) -> None:
        """Take the next record, by id."""
        self._collector.add(record)
        self._ids.append(record.id)
        if record.former:
            self.former.append(record.id)
        self._urls.append(last_id(url_key(record.url, self._hashes)))
        keys = self._hashes.width.keys(record.keys)
        self._many.append(len(keys))
        self._sums.append(sum(keys) & 0xFFFFFFFFFFFFFFFF)

    def end(self, *, whole: bool) -> None:
        """There are no more."""
        self._done()
        self.whole = whole

    def place(self, id: int) -> int | None:
        """Where the page with this id stands among all; None if there is none."""
        at = bisect_left(self._ids, id)
        return at if at < len(self._ids) and self._ids[at] == id else None

    def _done(self) -> None:
        self.members: Members = self._collector.members()
        self.urls, self.many, self.sums = column(self._urls), column(self._many), column(self._sums)


def read_pages(store: Store, found: Findings, pages: Pages, watch: Watch) -> None:
    """Unpack all records; what was written must come out when it is packed again."""
    whole, led = True, array("Q")
    try:
        for key, packed in watch(store.rows(b"r"), total=store.pages):
            found.pages += 1
            record = unpacked(key, packed)
            if record is None:
                whole = False
                found.add("broken record", f"{last_id(key):016x} cannot be unpacked ({len(packed)} bytes)")
            else:
                pages.add(record)
                if record.leads:
                    led.append(record.original)
    except BaseException:
        whole = False
        raise
    finally:
        pages.end(whole=whole)
    if found.pages != store.pages:
        found.add("wrong count", f"the state counts {store.pages:,} pages, but has {found.pages:,}")
    members = pages.members
    copies = members.originals[members.copies]
    at, there = members.place(copies)
    found.lost = int((~there & ~np.isin(copies, column(led))).sum())
    chained = there & (members.copies[at] | ~members.judged[at])
    for id in members.ids[members.copies][chained].tolist():
        found.add("copy of a copy", f"{id:016x} names an original that is a copy or unjudged")


def unpacked(key: bytes, packed: bytes) -> Record | None:
    """The record of a row; None if it cannot be what was written."""
    try:
        record = Record.unpack(last_id(key), packed)
        return record if key == record_key(record.id) and record.pack(width_of(packed)) == packed else None
    except ValueError:
        return None


def _record(store: Store, id: int) -> Record | None:
    key = record_key(id)
    packed = store.value(key)
    return None if packed is None else unpacked(key, packed)


def check_urls(store: Store, found: Findings, pages: Pages, watch: Watch) -> None:
    """Each URL names a page with that URL, and each page is named by its URL."""
    named = np.zeros(len(pages.urls), np.bool_)
    for key, seen in watch(store.rows(b"u"), total=store.pages, what="URLs"):
        found.urls += 1
        if len(key) != _ID_KEY or len(seen) != _SEEN:
            found.add("unknown row", f"the row {key!r} is no URL row")
            continue
        id = unpack_seen(seen)[0]
        at = pages.place(id)
        if at is None:
            if pages.whole:
                found.add("URL without page", f"the row {key!r} names the page {id:016x}, which is missing")
        elif int(pages.urls[at]) != last_id(key):
            found.add("wrong URL", f"the row {key!r} names the page {id:016x}, which has another URL")
        else:
            named[at] = True
    for id in pages.members.ids[~named].tolist():
        _unnamed(store, found, id)


def _unnamed(store: Store, found: Findings, id: int) -> None:
    """Why a page is not named by its URL; if another URL has the same hash, that is no mistake."""
    record = _record(store, id)
    if record is None:
        return
    seen = store.value(url_key(record.url, store.hashes))
    if seen is None:
        found.add("page without URL", f"the URL of {id:016x} does not lead to it: {record.url}")
    elif len(seen) == _SEEN and (other := _record(store, unpack_seen(seen)[0])) is not None:
        if other.url != record.url:
            found.shared += 1
        else:
            found.add("two pages of a URL", f"{id:016x} and {other.id:016x} both have the URL {record.url}")


def check_postings(store: Store, found: Findings, pages: Pages, watch: Watch) -> None:
    """Each page is filed under its keys, and under no others."""
    many, sums = np.zeros_like(pages.many), np.zeros_like(pages.sums)
    rows = watch(store.rows(b"k"), what="keys")
    for keys, ids in _postings(_reachable(rows, found) if store.has_lists else rows, found):
        found.keys += len(ids)
        at, there = pages.members.place(ids)
        if pages.whole:
            for id in ids[~there].tolist():
                found.add("key without page", f"a key names the page {id:016x}, which is missing")
        np.add.at(many, at[there], np.uint64(1))
        np.add.at(sums, at[there], keys[there])
    wrong = (many != pages.many) | (sums != pages.sums)
    for id, filed in zip(pages.members.ids[wrong].tolist(), many[wrong].tolist(), strict=True):
        record = _record(store, id)
        own = store.width.keys(record.keys) if record else ()
        right = sum(id in ids for ids in store.all_postings(own, _ALL))
        if right < len(own):
            found.add("page without key", f"{id:016x} is not filed under {len(own) - right} of its {len(own)} keys")
        if filed > right:
            found.add("wrong key", f"{id:016x} is filed under {filed - right} keys that are not its own")


def _postings(rows: Iterable[Row], found: Findings) -> Iterator[tuple[Ids, Ids]]:
    """Keys and ids of all postings, in batches."""
    postings = _pairs(rows, found)
    while batch := list(islice(postings, _BATCH)):
        both: npt.NDArray[np.uint64] = np.array(batch, np.uint64)
        yield both[:, 0], both[:, 1]


def _pairs(rows: Iterable[Row], found: Findings) -> Iterator[tuple[int, int]]:
    for row in rows:
        if is_posting(row):
            yield from pairs(row)
        else:
            found.add("unknown row", f"the key {row[0]!r} is no posting key")


def _reachable(rows: Iterable[Row], found: Findings) -> Iterator[Row]:
    """The rows; of those that no look-up comes to it is told."""
    head: Row = (b"", b"")
    for row in rows:
        if is_unreachable(row[0], head):
            found.add("posting out of reach", f"the row of its key does not name {row[0]!r}")
        elif is_head(row[0]):
            head = row
        yield row
