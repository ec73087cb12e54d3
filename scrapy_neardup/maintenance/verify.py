"""Verify a state: every row, and every relation between rows."""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scrapy_neardup.errors import StoreError
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.hashing.keys import keys_of
from scrapy_neardup.judge.drops import Drop
from scrapy_neardup.judge.manual_verdicts import ManualVerdict
from scrapy_neardup.kv.base import Row
from scrapy_neardup.kv.tally import KEY
from scrapy_neardup.maintenance.scan import Ids, Members, Watch, column, unwatched
from scrapy_neardup.maintenance.tables import CRAWLS, FEEDS, SITES
from scrapy_neardup.server.counting import COUNTED
from scrapy_neardup.state.boilerplate import Counts
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.expiry import HANDS
from scrapy_neardup.state.history import DECISIONS_KEY, FORMER_KEY, former_problem, former_recipes
from scrapy_neardup.state.layout import last_id, meta_key, record_key, unpack_block, unpack_id, unpack_seen, url_key
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.postings import is_head, is_posting, is_unreachable, pairs
from scrapy_neardup.state.record import Record

#: Problems to name; the others are counted.
NAMED = 20
#: Rows per batch.
_BATCH = 2**16
#: Lengths of the keys of URLs, evidence and bodies, and of the values of URLs and bodies.
_ID_KEY, _BODY_KEY, _SEEN, _ID = 9, 6, 12, 8
#: More postings than any key has.
_ALL = 2**32
#: First letters of keys; see ``scrapy_neardup.state.layout``.
_PREFIXES = b"bcdefghjkmnorux"
#: Names below ``m``.
_NAMES = frozenset((meta_key("recipe"), meta_key("secret"), DECISIONS_KEY, FORMER_KEY, HANDS, KEY, COUNTED))


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem: its kind, and a description."""

    kind: str
    what: str


@dataclass(slots=True)
class Findings:
    """The result of a check.

    ``pages``, ``keys``, ``urls``: their numbers; ``rows``: numbers of other rows, by the name of ``ROW_KINDS``.
    ``lost``: copies whose original is gone, which is allowed: an updated original leaves its place. ``shared``: pages
    whose URL hash belongs to another page, which is allowed too.
    """

    pages: int = 0
    keys: int = 0
    urls: int = 0
    lost: int = 0
    shared: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def sound(self) -> bool:
        """Whether there is no problem."""
        return not self.counts

    def add(self, kind: str, what: str) -> None:
        """Count a problem, and describe the first few."""
        self.counts[kind] += 1
        if len(self.problems) < NAMED:
            self.problems.append(Problem(kind, what))


class PageColumns:
    """Columns of all records, by id: see ``Members``; hash of the URL, number and sum of the keys."""

    def __init__(self, hashes: Keyed) -> None:
        #: Pages of former recipes.
        self.former: set[int] = set()
        self._hashes = hashes
        self._ids, self._originals, self._urls, self._many, self._sums = (array("Q") for _ in range(5))
        self._judged = array("B")

    @classmethod
    def read(cls, store: PageStore) -> PageColumns:
        """Return the columns of all records."""
        pages = cls(store.hashes)
        for record in store.records():
            pages.add(record)
        pages.end()
        return pages

    def add(self, record: Record) -> None:
        """Add the next record."""
        self._ids.append(record.id)
        self._originals.append(record.original)
        self._judged.append(not record.is_unjudged)
        if record.former:
            self.former.add(record.id)
        self._urls.append(last_id(url_key(record.url, self._hashes)))
        keys = keys_of(record.keys)
        self._many.append(len(keys))
        self._sums.append(sum(keys) & 0xFFFFFFFFFFFFFFFF)

    def end(self) -> None:
        """Finish the columns."""
        self.members = Members(column(self._ids), column(self._originals), np.array(self._judged, np.bool_))
        self.urls, self.many, self.sums = column(self._urls), column(self._many), column(self._sums)

    def place(self, id: int) -> int | None:
        """Return the position of a page; None if there is none."""
        at = bisect_left(self._ids, id)
        return at if at < len(self._ids) and self._ids[at] == id else None

    def has(self, id: int) -> bool:
        """Whether there is a record with this id."""
        return self.place(id) is not None


Unpack = Callable[[bytes, bytes], object]


class RowKind(NamedTuple):
    """Rows that are checked one by one.

    ``unpack`` returns the function that unpacks a row of a state; it raises ValueError for a damaged row. ``fits`` says
    whether the page of a row exists.
    """

    prefix: bytes
    name: str
    unpack: Callable[[PageStore], Unpack]
    fits: Callable[[PageColumns, bytes, bytes], bool] = lambda pages, key, packed: True


def _unpack_evidence(key: bytes, packed: bytes) -> Evidence:
    if len(key) != _ID_KEY:
        raise ValueError(f"{key!r} is no key of evidence")
    return Evidence.unpack(packed)


def _unpack_body(key: bytes, packed: bytes) -> int:
    if len(key) != _BODY_KEY or len(packed) != _ID:
        raise ValueError(f"the row {key!r} is no body row")
    return unpack_id(packed)


def _unpack_counts(counts: Counts, key: bytes, packed: bytes) -> None:
    counts.load(unpack_block(key), packed)


def _unpack_former(key: bytes, packed: bytes, recipes: int) -> None:
    if problem := former_problem(key, packed, recipes):
        raise ValueError(problem)


ROW_KINDS = (
    RowKind(b"x", "body", lambda _: _unpack_body, lambda pages, _, packed: pages.has(unpack_id(packed))),
    RowKind(b"e", "evidence", lambda _: _unpack_evidence, lambda pages, key, _: pages.has(last_id(key))),
    RowKind(
        b"o",
        "former sketch",
        lambda store: partial(_unpack_former, recipes=len(former_recipes(store))),
        lambda pages, key, _: last_id(key) in pages.former,
    ),
    RowKind(b"b", "counts", lambda _: partial(_unpack_counts, Counts())),
    RowKind(b"f", "feed", lambda _: FEEDS.unpack),
    RowKind(b"c", "crawl", lambda _: CRAWLS.unpack),
    RowKind(b"d", "drop", lambda _: Drop.of_row),
    RowKind(b"h", "site", lambda _: SITES.unpack),
    RowKind(b"n", "judgement", lambda store: partial(ManualVerdict.of_row, hashes=store.hashes)),
)


def check(store: PageStore, watch: Watch = unwatched) -> Findings:
    """Read every row of an open state and report problems. It changes nothing.

    It needs about a hundred bytes a page. Postings are compared with the keys of records by number and sum for each
    page; wrong keys with an equal sum escape with a chance of one in 2**64. Every row has a checksum, and the tally has
    their sum.
    """
    checker = _Checker(store, watch)
    steps: list[Callable[[], None]] = [
        checker.check_records,
        checker.check_urls,
        checker.check_postings,
        *(partial(checker.check_rows, kind) for kind in ROW_KINDS),
        checker.check_names,
        checker.check_files,
    ]
    for step in steps:
        checker.try_step(step)
    return checker.found


def unpack_record(key: bytes, packed: bytes) -> Record | None:
    """Return the record of a row; None if it is damaged."""
    try:
        record = Record.unpack(last_id(key), packed)
        return record if key == record_key(record.id) and record.pack() == packed else None
    except ValueError:
        return None


class _Checker:
    def __init__(self, store: PageStore, watch: Watch) -> None:
        self.found = Findings()
        self._store = store
        self._watch = watch
        self._pages = PageColumns(store.hashes)
        self._pages.end()
        #: Whether all records were readable; else a row that names an unknown page may be right.
        self._is_whole = False

    def try_step(self, step: Callable[[], None]) -> None:
        """Report what cannot be read; the next step goes on."""
        try:
            step()
        except StoreError as error:
            self.found.add("unreadable", str(error))

    def check_records(self) -> None:
        """Unpack all records, and pack them again to compare."""
        store, found, pages = self._store, self.found, self._pages
        broken, led = 0, array("Q")
        try:
            for key, packed in self._watch(store.rows(b"r"), total=store.pages):
                found.pages += 1
                record = unpack_record(key, packed)
                if record is None:
                    broken += 1
                    found.add("broken record", f"{last_id(key):016x} cannot be unpacked ({len(packed)} bytes)")
                else:
                    pages.add(record)
                    if record.leads:
                        led.append(record.original)
        finally:
            pages.end()
        self._is_whole = not broken
        if found.pages != store.pages:
            found.add("wrong count", f"the state counts {store.pages:,} pages, but has {found.pages:,}")
        members = pages.members
        copies = members.originals[members.copies]
        at, there = members.place(copies)
        found.lost = int((~there & ~np.isin(copies, column(led))).sum())
        chained = there & (members.copies[at] | ~members.judged[at])
        for id in members.ids[members.copies][chained].tolist():
            found.add("copy of a copy", f"{id:016x} names an original that is a copy or unjudged")

    def check_urls(self) -> None:
        """Verify that URLs and pages name each other."""
        store, found, pages = self._store, self.found, self._pages
        named = np.zeros(len(pages.urls), np.bool_)
        for key, seen in self._watch(store.rows(b"u"), total=store.pages, what="URLs"):
            found.urls += 1
            if len(key) != _ID_KEY or len(seen) != _SEEN:
                found.add("unknown row", f"the row {key!r} is no URL row")
                continue
            id = unpack_seen(seen)[0]
            at = pages.place(id)
            if at is None:
                if self._is_whole:
                    found.add("URL without page", f"the row {key!r} names the page {id:016x}, which is missing")
            elif int(pages.urls[at]) != last_id(key):
                found.add("wrong URL", f"the row {key!r} names the page {id:016x}, which has another URL")
            else:
                named[at] = True
        for id in pages.members.ids[~named].tolist():
            self._explain_unnamed(id)

    def _explain_unnamed(self, id: int) -> None:
        """Say why no URL names a page. Another URL may have the same hash."""
        found, record = self.found, self._record(id)
        if record is None:
            return
        seen = self._store.value(url_key(record.url, self._store.hashes))
        if seen is None:
            found.add("page without URL", f"the URL of {id:016x} does not lead to it: {record.url}")
        elif len(seen) == _SEEN and (other := self._record(unpack_seen(seen)[0])) is not None:
            if other.url != record.url:
                found.shared += 1
            else:
                found.add("two pages of a URL", f"{id:016x} and {other.id:016x} both have the URL {record.url}")

    def _record(self, id: int) -> Record | None:
        packed = self._store.value(record_key(id))
        return None if packed is None else unpack_record(record_key(id), packed)

    def check_postings(self) -> None:
        """Verify that each page is filed under exactly its keys."""
        store, found, pages = self._store, self.found, self._pages
        many, sums = np.zeros_like(pages.many), np.zeros_like(pages.sums)
        rows = self._watch(store.rows(b"k"), what="keys")
        for keys, ids in self._postings(self._reachable(rows) if store.has_one_row_per_key else rows):
            found.keys += len(ids)
            at, there = pages.members.place(ids)
            if self._is_whole:
                for id in ids[~there].tolist():
                    found.add("key without page", f"a key names the page {id:016x}, which is missing")
            np.add.at(many, at[there], np.uint64(1))
            np.add.at(sums, at[there], keys[there])
        wrong = (many != pages.many) | (sums != pages.sums)
        for id, filed in zip(pages.members.ids[wrong].tolist(), many[wrong].tolist(), strict=True):
            record = self._record(id)
            own = keys_of(record.keys) if record else ()
            right = sum(id in ids for ids in store.all_postings(own, _ALL))
            if right < len(own):
                found.add("page without key", f"{id:016x} is not filed under {len(own) - right} of its {len(own)} keys")
            if filed > right:
                found.add("wrong key", f"{id:016x} is filed under {filed - right} keys that are not its own")

    def _postings(self, rows: Iterable[Row]) -> Iterator[tuple[Ids, Ids]]:
        """Yield keys and ids of all postings, in batches."""
        postings = self._pairs(rows)
        while batch := list(islice(postings, _BATCH)):
            both: npt.NDArray[np.uint64] = np.array(batch, np.uint64)
            yield both[:, 0], both[:, 1]

    def _pairs(self, rows: Iterable[Row]) -> Iterator[tuple[int, int]]:
        for row in rows:
            if is_posting(row):
                yield from pairs(row)
            else:
                self.found.add("unknown row", f"the key {row[0]!r} is no posting key")

    def _reachable(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows, and report those that no look-up reaches."""
        head: Row = (b"", b"")
        for row in rows:
            if is_unreachable(row[0], head):
                self.found.add("posting out of reach", f"the row of its key does not name {row[0]!r}")
            elif is_head(row[0]):
                head = row
            yield row

    def check_rows(self, kind: RowKind) -> None:
        """Verify that rows can be unpacked, and that their pages exist."""
        unpack = kind.unpack(self._store)
        for key, packed in self._watch(self._store.rows(kind.prefix), what=f"rows of {kind.name}"):
            self.found.rows[kind.name] += 1
            try:
                unpack(key, packed)
            except (ValueError, struct.error) as error:
                self.found.add(f"broken {kind.name}", f"the row {key!r}: {error}")
            else:
                if self._is_whole and not kind.fits(self._pages, key, packed):
                    self.found.add(f"{kind.name} without page", f"the page of the row {key!r} is missing")

    def check_names(self) -> None:
        """Verify rows of running crawls, and report unknown rows."""
        store, found = self._store, self.found
        for key, _ in store.rows(b"m"):
            if key not in _NAMES:
                found.add("unknown row", f"this version does not write the key {key!r}")
        for prefix, what in ((b"j", "an unsealed page"), (b"g", "an unsealed crawl")):
            for key, _ in () if store.is_shared else store.rows(prefix):  # others may be at work on it
                found.add(
                    "left over", f"the key {key!r} belongs to {what}, which should be rolled back when the state opens"
                )
        for first in range(256):
            if first not in _PREFIXES:
                for key, _ in store.rows(bytes([first])):
                    found.add("unknown row", f"this version does not write the key {key!r}")
        if (smallest := next(store.rows(b""), None)) is not None and not smallest[0]:
            found.add("unknown row", "a row has an empty key")

    def check_files(self) -> None:
        """Verify the tally, and the files of the engine."""
        for problem in self._store.tally_problems(tally_alone=True):
            self.found.add("wrong tally", problem)
        for problem in self._store.kv.file_problems():
            self.found.add("broken file", problem)
