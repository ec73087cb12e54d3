"""Verify a state: every row, and every relation between rows."""

from __future__ import annotations

import json
import struct
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from scrapy_neardup.errors import StoreError
from scrapy_neardup.judge.lists import Drop, ManualVerdict
from scrapy_neardup.judge.recipes import DECISIONS_KEY
from scrapy_neardup.kv.base import Row
from scrapy_neardup.kv.tally import KEY
from scrapy_neardup.maintenance.scan import Watch, unwatched
from scrapy_neardup.maintenance.tables import CRAWLS, SITES
from scrapy_neardup.server.layout import COUNTED
from scrapy_neardup.state.boilerplate import Counts
from scrapy_neardup.state.expiry import FRONTIER
from scrapy_neardup.state.layout import QUEUE, last_id, record_key, unpack_block
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import RECIPE, SECRET
from scrapy_neardup.state.record import Evidence, Record
from scrapy_neardup.state.records import is_head, is_unreachable
from scrapy_neardup.state.verifier import RowCount, column

#: Problems to name; the others are counted.
NAMED = 20
#: Lengths of the keys of evidence and of the queue, and of the value of the frontier.
_ID_KEY, _PAIR_KEY, _ID = 9, 17, 8
#: Rows below ``m`` that no ``RowKind`` unpacks.
_ABOUT = (RECIPE, SECRET, KEY, COUNTED)
#: Rows of pages by first byte.
_NAMES = {b"r": "record", b"u": "URL", b"k": "key"}


@dataclass(slots=True)
class Findings:
    """The result of a check.

    ``pages``, ``keys``, ``urls``: their numbers; ``rows``: numbers of other rows by the name of their ``RowKind``.
    ``problems`` describes the first ones by ``kind`` and ``what``; ``counts`` has the number of each kind.
    """

    pages: int = 0
    keys: int = 0
    urls: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    problems: list[dict[str, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def sound(self) -> bool:
        return not self.counts

    def add(self, kind: str, what: str) -> None:
        """Count a problem, and describe the first few."""
        self.counts[kind] += 1
        if len(self.problems) < NAMED:
            self.problems.append({"kind": kind, "what": what})


class RowKind(NamedTuple):
    """Rows that are read one by one.

    ``unpack`` returns the function that unpacks a row of a state; it raises ValueError for a damaged row.
    """

    prefix: bytes
    name: str
    unpack: Callable[[PageStore], Callable[[bytes, bytes], object]]


def _unpack_evidence(key: bytes, packed: bytes) -> None:
    if len(key) != _ID_KEY:
        raise ValueError(f"{key!r} is no key of evidence")
    Evidence.unpack(packed)


def _unpack_queue(key: bytes, packed: bytes) -> None:
    if len(packed) != (_ID if key == FRONTIER else 0) or len(key) not in (len(FRONTIER), _PAIR_KEY):
        raise ValueError(f"the row {key!r} is no row of the expiry")


def _unpack_counts(counts: Counts, key: bytes, packed: bytes) -> None:
    counts.load(unpack_block(key), packed)


#: Rows that are written with pages.
_ROWS_OF_PAGES = (
    RowKind(b"e", "evidence", lambda _: _unpack_evidence),
    RowKind(QUEUE, "queue", lambda _: _unpack_queue),
    RowKind(FRONTIER, "frontier", lambda _: _unpack_queue),
)
#: Rows that belong to the state as a whole.
STATE_ROWS = (
    RowKind(b"b", "counts", lambda _: partial(_unpack_counts, Counts())),
    RowKind(b"c", "crawl", lambda _: CRAWLS.unpack),
    RowKind(b"d", "drop", lambda _: Drop.of_row),
    RowKind(b"h", "site", lambda _: SITES.unpack),
    RowKind(b"n", "judgement", lambda store: partial(ManualVerdict.of_row, hashes=store.hashes)),
    RowKind(DECISIONS_KEY, "decision", lambda _: lambda key, packed: json.loads(packed).items()),
)


def unpack_record(key: bytes, packed: bytes) -> Record | None:
    """Return the record of a row; None if it is damaged."""
    try:
        record = Record.unpack(last_id(key), packed)
        return record if key == record_key(record.id) and record.pack() == packed else None
    except ValueError:
        return None


def sound_rows(
    kind: RowKind, store: PageStore, rows: Iterable[Row], damage_error: Callable[[str], StoreError] | None
) -> Iterator[Row]:
    """Yield the rows that can be unpacked as rows of a store.

    ``damage_error`` makes the error for another one; None: it is left out.
    """
    unpack = kind.unpack(store)
    for key, packed in rows:
        try:
            unpack(key, packed)
        except (ValueError, TypeError, AttributeError, struct.error) as error:
            if damage_error is not None:
                raise damage_error(f"the row {key!r}: {error}") from None
            continue
        yield key, packed


def check(store: PageStore, watch: Watch = unwatched) -> Findings:
    """Read every row of an open state and report problems. It changes nothing.

    It needs about fifty bytes a page. How rows imply each other is verified as at an opening: see ``RowCount``.
    """
    checker = _Checker(store, watch)
    for first in range(256):
        checker.read(bytes([first]))
    checker.relate()
    return checker.found


class _Checker:
    def __init__(self, store: PageStore, watch: Watch) -> None:
        self.found = Findings()
        self._store = store
        self._watch = watch
        self._rows = RowCount(store.hashes)
        self._kinds = {kind.prefix: (kind, kind.unpack(store)) for kind in (*_ROWS_OF_PAGES, *STATE_ROWS)}
        #: Ids of originals, of copies, of the originals of these, and of pages with evidence.
        self._originals, self._copies, self._copied, self._explained = (array("Q") for _ in range(4))
        self._head: Row = b"", b""

    def read(self, prefix: bytes) -> None:
        """Read all rows with a first byte. Report what cannot be read; the next step goes on."""
        found, store, name = self.found, self._store, _NAMES.get(prefix)
        try:
            rows: Iterable[Row] = store.rows(prefix)
            if name is not None:
                rows = self._watch(rows, None if prefix == b"k" else store.pages, f"{name}s")
            last = prefix
            for key, packed in rows:
                if key < last and not store.is_shared:
                    raise store.kv.damage_error(f"its rows are not in order at the key {key!r:.60}")
                last = key
                found.pages += prefix == b"r"
                found.urls += prefix == b"u"
                try:
                    added = self._rows.add(key, packed)
                    if isinstance(added, Record):
                        self._read_record(added, packed)
                    elif prefix == b"k":
                        found.keys += added
                        self._read_posting(key, packed)
                    elif name is None:
                        self._read_row(key, packed)
                except ValueError as error:
                    found.add(f"broken {name}", str(error))
        except StoreError as error:
            found.add("unreadable", str(error))

    def _read_record(self, record: Record, packed: bytes) -> None:
        """Pack a record again to compare."""
        if record.pack() != packed:
            raise ValueError(f"the record {record.id:016x} holds bytes that cannot stand there")
        if record.is_original:
            self._originals.append(record.id)
        elif not record.is_unjudged:
            self._copies.append(record.id)
            self._copied.append(record.original)

    def _read_posting(self, key: bytes, packed: bytes) -> None:
        if is_head(key):
            self._head = key, packed
        elif not self._store.is_shared and is_unreachable(key, self._head):
            self.found.add("posting out of reach", f"the row of its key does not name {key!r}")

    def _read_row(self, key: bytes, packed: bytes) -> None:
        """Read a row of another kind."""
        found, prefix = self.found, key[:1]
        if prefix in (b"j", b"g"):
            what = "an unsealed page" if prefix == b"j" else "an unsealed crawl"
            if not self._store.is_shared:  # others may be at work on it
                found.add("left over", f"the key {key!r} belongs to {what}, which should be rolled back at opening")
            return
        kind, unpack = self._kinds.get(key, self._kinds.get(prefix, (None, None)))
        if kind is None or unpack is None:
            if key not in _ABOUT:
                found.add("unknown row", f"this version does not write the key {key!r}")
            return
        found.rows[kind.name] += 1
        try:
            unpack(key, packed)
        except (ValueError, TypeError, AttributeError, struct.error) as error:
            found.add(f"broken {kind.name}", f"the row {key!r}: {error}")
        else:
            if prefix == b"e":
                self._explained.append(last_id(key))

    def relate(self) -> None:
        """Verify that rows name each other, and the files of the engine."""
        store, found, pages = self._store, self.found, self._rows.ids
        if found.pages != store.pages and not found.counts["unreadable"]:
            found.add("wrong count", f"the state counts {store.pages:,} pages, but has {found.pages:,}")
        copied, copies = column(self._copied), column(self._copies)
        # An original may be missing: an updated one leaves its place.
        for id in copies[np.isin(copied, pages) & ~np.isin(copied, column(self._originals))].tolist():
            found.add("copy of a copy", f"{id:016x} names an original that is a copy or unjudged")
        if not found.counts.keys() & {"unreadable", "broken record", "broken URL", "broken key"}:
            for problem in self._rows.problems(store.kv.tally):
                found.add("wrong rows", problem)
            explained = column(self._explained)
            for id in explained[~np.isin(explained, pages)].tolist():
                found.add("evidence without page", f"a row names the page {id:016x}, which is missing")
            for record in filter(None, map(store.record, self._rows.unnamed())):
                if store.find(record.url) is not None:  # else another URL has the same hash, which is allowed
                    found.add("two pages of a URL", f"{record.id:016x} is no longer the page of its URL {record.url}")
        for problem in store.kv.file_problems():
            found.add("broken file", problem)
