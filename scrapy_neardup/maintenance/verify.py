"""Verify a state: every row, and every relation between rows."""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
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
from scrapy_neardup.maintenance.scan import Collector, Ids, Members, Watch, column, unwatched
from scrapy_neardup.maintenance.tables import unpacked_crawl, unpacked_delivery, unpacked_site_drops
from scrapy_neardup.server.counting import COUNTED
from scrapy_neardup.state.boilerplate import Counts
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.expiry import HANDS
from scrapy_neardup.state.history import DECISIONS_KEY as DECISIONS
from scrapy_neardup.state.history import FORMER_KEY as FORMER
from scrapy_neardup.state.history import former_problem, former_recipes
from scrapy_neardup.state.layout import last_id, meta_key, record_key, unpack_block, unpack_id, unpack_seen, url_key
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.postings import is_head, is_posting, is_unreachable, pairs
from scrapy_neardup.state.record import Record

#: Problems to name; the others are counted.
NAMED = 20


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem: its kind, and a description."""

    kind: str
    what: str


@dataclass(slots=True)
class Findings:
    """The result of a check.

    ``lost``: copies whose original is gone, which is allowed: an updated original leaves its place. ``shared``: pages
    whose URL hash belongs to another page, which is allowed too. The other numbers count rows of each sort.
    """

    pages: int = 0
    keys: int = 0
    urls: int = 0
    evidence: int = 0
    blocks: int = 0
    judgements: int = 0
    lost: int = 0
    shared: int = 0
    problems: list[Problem] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def sound(self) -> bool:
        """Whether there is no problem."""
        return not self.counts

    def add(self, kind: str, what: str, many: int = 1) -> None:
        """Count a problem, and describe the first few."""
        self.counts[kind] += many
        if len(self.problems) < NAMED:
            self.problems.append(Problem(kind, what))


class KeptRows(NamedTuple):
    """Rows of a small table; ``unpack`` raises ValueError for a damaged one."""

    prefix: bytes
    what: str
    unpack: Callable[[bytes, bytes], object]


KEPT = (
    KeptRows(b"f", "feed", unpacked_delivery),
    KeptRows(b"c", "crawl", unpacked_crawl),
    KeptRows(b"d", "drop", Drop.of_row),
    KeptRows(b"h", "site", unpacked_site_drops),
)


#: Rows per batch.
_BATCH = 2**16
#: Lengths of keys, and of a URL row.
_ID_KEY, _SEEN = 9, 12
#: More postings than any key has.
_ALL = 2**32


class Pages:
    """Columns of all records: see ``Members``; hash of the URL, number and sum of the keys.

    ``whole``: all records were readable; else a row that names an unknown page may be right. ``former``: pages of
    former recipes.
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
        """Add the next record, by id."""
        self._collector.add(record)
        self._ids.append(record.id)
        if record.former:
            self.former.append(record.id)
        self._urls.append(last_id(url_key(record.url, self._hashes)))
        keys = keys_of(record.keys)
        self._many.append(len(keys))
        self._sums.append(sum(keys) & 0xFFFFFFFFFFFFFFFF)

    def end(self, *, whole: bool) -> None:
        """Finish the columns."""
        self._done()
        self.whole = whole

    def place(self, id: int) -> int | None:
        """Return the position of a page; None if there is none."""
        at = bisect_left(self._ids, id)
        return at if at < len(self._ids) and self._ids[at] == id else None

    def _done(self) -> None:
        self.members: Members = self._collector.members()
        self.urls, self.many, self.sums = column(self._urls), column(self._many), column(self._sums)


def read_pages(store: PageStore, found: Findings, pages: Pages, watch: Watch) -> None:
    """Unpack all records, and pack them again to compare."""
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
    """Return the record of a row; None if it is damaged."""
    try:
        record = Record.unpack(last_id(key), packed)
        return record if key == record_key(record.id) and record.pack() == packed else None
    except ValueError:
        return None


def _record(store: PageStore, id: int) -> Record | None:
    key = record_key(id)
    packed = store.value(key)
    return None if packed is None else unpacked(key, packed)


def check_urls(store: PageStore, found: Findings, pages: Pages, watch: Watch) -> None:
    """Verify that URLs and pages name each other."""
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


def _unnamed(store: PageStore, found: Findings, id: int) -> None:
    """Say why no URL names a page; empty if another URL has the same hash."""
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


def check_postings(store: PageStore, found: Findings, pages: Pages, watch: Watch) -> None:
    """Verify that each page is filed under exactly its keys."""
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
        own = keys_of(record.keys) if record else ()
        right = sum(id in ids for ids in store.all_postings(own, _ALL))
        if right < len(own):
            found.add("page without key", f"{id:016x} is not filed under {len(own) - right} of its {len(own)} keys")
        if filed > right:
            found.add("wrong key", f"{id:016x} is filed under {filed - right} keys that are not its own")


def _postings(rows: Iterable[Row], found: Findings) -> Iterator[tuple[Ids, Ids]]:
    """Yield keys and ids of all postings, in batches."""
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
    """Yield the rows, and report those that no look-up reaches."""
    head: Row = (b"", b"")
    for row in rows:
        if is_unreachable(row[0], head):
            found.add("posting out of reach", f"the row of its key does not name {row[0]!r}")
        elif is_head(row[0]):
            head = row
        yield row


#: First letters of keys; see ``scrapy_neardup.state.layout``.
_PREFIXES = b"bcdefghjkmnorux"
#: Names below ``m``.
_NAMES = frozenset((meta_key("recipe"), meta_key("secret"), DECISIONS, FORMER, HANDS, KEY, COUNTED))
#: Length of a key below ``e``.
_EVIDENCE = 9
#: Lengths of a key below ``x``, and of its value.
_BODY, _ID = 6, 8


def check(store: PageStore, watch: Watch = unwatched) -> Findings:
    """Read every row of an open state and report problems. It changes nothing.

    It needs about a hundred bytes a page. Postings are compared with the keys of records by number and sum for each
    page; wrong keys with an equal sum escape with a chance of one in 2**64. Every row has a checksum, and the tally has
    their sum.
    """
    found = Findings()
    pages = Pages(store.hashes)
    steps: tuple[Callable[[], None], ...] = (
        lambda: read_pages(store, found, pages, watch),
        lambda: check_urls(store, found, pages, watch),
        lambda: check_postings(store, found, pages, watch),
        lambda: _check_bodies(store, found, pages),
        lambda: _check_evidence(store, found, pages, watch),
        lambda: _check_former(store, found, pages),
        lambda: _check_blocks(store, found),
        lambda: _check_kept(store, found),
        lambda: _check_judgements(store, found),
        lambda: _check_rest(store, found),
        lambda: _check_tally(store, found),
        lambda: _check_file(store, found),
    )
    for step in steps:
        _go_on(step, found)
    return found


def _go_on(step: Callable[[], None], found: Findings) -> None:
    """Report what cannot be read, and go on with the next step."""
    try:
        step()
    except StoreError as error:
        found.add("unreadable", str(error))


def _check_evidence(store: PageStore, found: Findings, pages: Pages, watch: Watch) -> None:
    for key, packed in watch(store.rows(b"e"), what="rows of evidence"):
        found.evidence += 1
        if len(key) != _EVIDENCE:
            found.add("unknown row", f"the key {key!r} is no evidence key")
            continue
        if pages.whole and pages.place(last_id(key)) is None:
            found.add("evidence without page", f"there is evidence for {last_id(key):016x}, which is no page")
        try:
            Evidence.unpack(packed)
        except ValueError as error:
            found.add("broken evidence", f"that of {last_id(key):016x}: {error}")


def _check_former(store: PageStore, found: Findings, pages: Pages) -> None:
    """Verify sketches of former recipes."""
    recipes = len(former_recipes(store))
    former = frozenset(pages.former)
    for key, packed in store.rows(b"o"):
        if wrong := former_problem(key, packed, recipes):
            found.add("broken former sketch", wrong)
        elif pages.whole and last_id(key) not in former:
            found.add("former sketch without page", f"{last_id(key):016x} is no page of an earlier recipe")


def _check_bodies(store: PageStore, found: Findings, pages: Pages) -> None:
    for key, id in store.rows(b"x"):
        if len(key) != _BODY or len(id) != _ID:
            found.add("unknown row", f"the row {key!r} is no body row")
        elif pages.whole and pages.place(unpack_id(id)) is None:
            found.add("body without page", f"the row {key!r} names the page {unpack_id(id):016x}, which is missing")


def _check_blocks(store: PageStore, found: Findings) -> None:
    counts = Counts()
    for key, packed in store.rows(b"b"):
        found.blocks += 1
        try:
            counts.load(unpack_block(key), packed)
        except (ValueError, struct.error) as error:
            found.add("broken counts", str(error))


def _check_kept(store: PageStore, found: Findings) -> None:
    for kept in KEPT:
        for key, packed in store.rows(kept.prefix):
            if wrong := _broken(key, packed, kept.unpack):
                found.add(f"broken {kept.what}", wrong)


def _check_judgements(store: PageStore, found: Findings) -> None:
    for key, packed in store.rows(b"n"):
        found.judgements += 1
        try:
            ManualVerdict.of_row(key, packed, store.hashes)
        except ValueError as error:
            found.add("broken judgement", str(error))


def _broken(key: bytes, packed: bytes, unpack: Callable[[bytes, bytes], object]) -> str:
    try:
        unpack(key, packed)
    except ValueError as error:
        return str(error)
    return ""


def _check_rest(store: PageStore, found: Findings) -> None:
    """Verify rows of running crawls, and report unknown rows."""
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


def _check_tally(store: PageStore, found: Findings) -> None:
    for problem in store.tally_problems(tally_alone=True):
        found.add("wrong tally", problem)


def _check_file(store: PageStore, found: Findings) -> None:
    for problem in store.kv.file_problems():
        found.add("broken file", problem)
