"""Verify a state: every row, and every relation between rows."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from scrapy_neardup.errors import StoreError
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.hashing.keys import keys_of
from scrapy_neardup.judge.drops import Drop
from scrapy_neardup.judge.manual_verdicts import ManualVerdict
from scrapy_neardup.judge.recipes import DECISIONS_KEY
from scrapy_neardup.kv.tally import KEY
from scrapy_neardup.maintenance.scan import Ids, Members, Watch, columns, place_of, unwatched
from scrapy_neardup.maintenance.tables import CRAWLS, SITES
from scrapy_neardup.server.counting import COUNTED
from scrapy_neardup.state.boilerplate import Counts
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.expiry import HANDS
from scrapy_neardup.state.layout import last_id, meta_key, record_key, unpack_block, unpack_id, unpack_seen, url_key
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.postings import is_head, is_posting, is_unreachable, pairs
from scrapy_neardup.state.record import Record

#: Problems to name; the others are counted.
NAMED = 20
#: Postings per batch.
_BATCH = 2**16
#: Lengths of the keys of URLs, evidence and bodies, and of the values of URLs and bodies.
_ID_KEY, _BODY_KEY, _SEEN, _ID = 9, 6, 12, 8
#: More postings than any key has.
_ALL = 2**32
#: First letters of keys; see ``scrapy_neardup.state.layout``.
_PREFIXES = b"bcdefghjkmnrux"
#: Names below ``m``.
_NAMES = frozenset((meta_key("recipe"), meta_key("secret"), DECISIONS_KEY, HANDS, KEY, COUNTED))


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


@dataclass(frozen=True)
class PageColumns(Members):
    """More columns of all records: hash of the URL, number and sum of the keys."""

    urls: Ids
    many: Ids
    sums: Ids

    def has(self, id: int) -> bool:
        """Whether there is a record with this id."""
        return place_of(self.ids, id) is not None


def page_columns(records: Iterable[Record], hashes: Keyed) -> PageColumns:
    """Return the columns of records that come by id."""

    def row(record: Record) -> tuple[int, ...]:
        keys, url = keys_of(record.keys), last_id(url_key(record.url, hashes))
        sum_of_keys = sum(keys) & 0xFFFFFFFFFFFFFFFF
        return record.id, record.original, not record.is_unjudged, url, len(keys), sum_of_keys

    kinds = np.uint64, np.uint64, np.bool_, np.uint64, np.uint64, np.uint64
    return PageColumns(*columns(map(row, records), *kinds))


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


ROW_KINDS = (
    RowKind(b"x", "body", lambda _: _unpack_body, lambda pages, _, packed: pages.has(unpack_id(packed))),
    RowKind(b"e", "evidence", lambda _: _unpack_evidence, lambda pages, key, _: pages.has(last_id(key))),
    RowKind(b"b", "counts", lambda _: partial(_unpack_counts, Counts())),
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
        self._pages = page_columns((), store.hashes)
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
        store, found, led = self._store, self.found, set[int]()
        self._pages = pages = page_columns(self._sound_records(led), store.hashes)
        if found.pages != store.pages and not found.counts["unreadable"]:
            found.add("wrong count", f"the state counts {store.pages:,} pages, but has {found.pages:,}")
        copies = pages.originals[pages.copies]
        at, there = pages.place(copies)
        found.lost = sum(original not in led for original in copies[~there].tolist())
        chained = there & (pages.copies[at] | ~pages.judged[at])
        for id in pages.ids[pages.copies][chained].tolist():
            found.add("copy of a copy", f"{id:016x} names an original that is a copy or unjudged")

    def _sound_records(self, led: set[int]) -> Iterator[Record]:
        """Yield the records that can be unpacked, as far as they are readable; add groups that a better page leads."""
        found = self.found
        try:
            for key, packed in self._watch(self._store.rows(b"r"), total=self._store.pages):
                found.pages += 1
                record = unpack_record(key, packed)
                if record is None:
                    found.add("broken record", f"{last_id(key):016x} cannot be unpacked ({len(packed)} bytes)")
                    continue
                if record.leads:
                    led.add(record.original)
                yield record
        except StoreError as error:
            found.add("unreadable", str(error))
        self._is_whole = not found.counts

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
            at = place_of(pages.ids, id)
            if at is None:
                if self._is_whole:
                    found.add("URL without page", f"the row {key!r} names the page {id:016x}, which is missing")
            elif int(pages.urls[at]) != last_id(key):
                found.add("wrong URL", f"the row {key!r} names the page {id:016x}, which has another URL")
            else:
                named[at] = True
        for id in pages.ids[~named].tolist():
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
        postings = self._postings()
        while len((batch := columns(islice(postings, _BATCH), np.uint64, np.uint64))[0]):
            keys, ids = batch
            found.keys += len(ids)
            at, there = pages.place(ids)
            if self._is_whole:
                for id in ids[~there].tolist():
                    found.add("key without page", f"a key names the page {id:016x}, which is missing")
            np.add.at(many, at[there], np.uint64(1))
            np.add.at(sums, at[there], keys[there])
        wrong = (many != pages.many) | (sums != pages.sums)
        for id, filed in zip(pages.ids[wrong].tolist(), many[wrong].tolist(), strict=True):
            record = self._record(id)
            own = keys_of(record.keys) if record else ()
            right = sum(id in ids for ids in store.all_postings(own, _ALL))
            if right < len(own):
                found.add("page without key", f"{id:016x} is not filed under {len(own) - right} of its {len(own)} keys")
            if filed > right:
                found.add("wrong key", f"{id:016x} is filed under {filed - right} keys that are not its own")

    def _postings(self) -> Iterator[tuple[int, int]]:
        """Yield key and id of each posting, and report rows that are none or that no look-up reaches."""
        has_heads, head = not self._store.is_shared, (b"", b"")
        for row in self._watch(self._store.rows(b"k"), what="keys"):
            if not is_posting(row):
                self.found.add("unknown row", f"the key {row[0]!r} is no posting key")
                continue
            if is_head(row[0]):
                head = row
            elif has_heads and is_unreachable(row[0], head):
                self.found.add("posting out of reach", f"the row of its key does not name {row[0]!r}")
            yield from pairs(row)

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
