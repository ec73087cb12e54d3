"""One part of an archive: the questions of its pages, its state, and its judging, as a small crawl.

The state begins with answers of earlier parts. It notes all questions, and everything that pages write.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from scrapy_neardup.batch.counts import (
    ExactCounts,
    Hashes,
    count_bits,
    number_of_form_pages,
    numbers_of_forms,
    numbers_on_sites,
)
from scrapy_neardup.batch.pages import stored_pages
from scrapy_neardup.batch.rows import (
    Asked,
    Topic,
    is_among,
    make_rows,
    make_table,
    numbers,
    rows_on,
    signed,
    sorted_set,
    unsigned,
)
from scrapy_neardup.batch.runs import (
    EVERYWHERE,
    FORM,
    FORMED,
    HERE,
    JUDGED,
    PAGES,
    ArchivePart,
    BatchOptions,
    decode,
    new_record,
)
from scrapy_neardup.errors import AnyReason
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.kv.memory import Memory
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Kind, Match, Outcome, Page, Verdict
from scrapy_neardup.state.boilerplate import ALL_PAGES, COMMON_BITS, COMMON_HERE, Sentences, number_of_site, site_bit
from scrapy_neardup.state.layout import kept_url
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Evidence, Keep, Record
from scrapy_neardup.untrusted import line_logger

logger = line_logger(__name__)

_ONE = np.uint32(1)  # faster than 1
_ADDRESSES = "url", "canonical"
#: What a page wrote that wrote no record: no id, nothing that it replaces, nothing.
_NOTHING: tuple[int, int, bytes | None] = 0, 0, None


class PartPages:
    """The pages of a part as arrays, and the questions that they ask in any case."""

    _COLUMNS = ("rank", "url", "site", "canonical", "keys", "sketch", "sentences", "own")

    def __init__(self, options: BatchOptions, part: ArchivePart) -> None:
        self._hashes = hashes = options.make_method().hashes
        table = pa.Table.from_batches(part.batches(self._COLUMNS), pa.schema(map(PAGES.field, self._COLUMNS)))
        columns = {name: table[name].combine_chunks() for name in self._COLUMNS}
        self.ranks: list[int] = columns["rank"].to_pylist()
        urls, canonicals = ([kept_url(decode(one)) for one in columns[name].to_pylist()] for name in _ADDRESSES)
        self._urls, self.urls = urls, np.array(hashes.every(urls), np.uint64)
        self._sketches, self._own = columns["sketch"].to_pylist(), columns["own"].to_pylist()
        least = options.config.min_letters
        #: Whether the stored fingerprint of each page may be used.
        self.is_judged = [
            sketch is not None and (own is None or own >= least)
            for sketch, own in zip(self._sketches, self._own, strict=True)
        ]
        self.is_alone = np.array(self.is_judged, bool) & ~np.array([*map(bool, canonicals)], bool)
        # Members of lists, and where the list of each page begins. A sentence that stands twice counts once.
        self.keys, self._key_starts = _lists(columns["keys"])
        pages = np.arange(len(table))
        #: By topic: hashes of keys and URLs in order, each with the first page that has it; the same for each page.
        self._firsts = dict[Topic, tuple[Hashes, npt.NDArray[np.intp]]]()
        self._first = dict[Topic, npt.NDArray[np.intp]]()
        self._page_of_key = np.repeat(pages, np.diff(self._key_starts))
        for topic, found, of in (Topic.KEY, self.keys, self._page_of_key), (Topic.URL, self.urls, pages):
            known, at, places = np.unique(found, return_index=True, return_inverse=True)
            self._firsts[topic] = known, of[at]
            self._first[topic] = of[at][places]
        sentences, starts = _lists(columns["sentences"])
        begins = pages.astype(np.uint64) << np.uint64(32)
        of_pages = np.unique(np.repeat(begins, np.diff(starts)) | sentences)
        self._sentences = of_pages.astype(np.uint32)
        self._starts = np.append(np.searchsorted(of_pages, begins), len(of_pages))
        self.lengths = np.diff(self._starts)
        different = columns["site"].dictionary_encode()
        sites, site = [decode(one) for one in different.dictionary.to_pylist()], numbers(different.indices)
        self._bits = np.array([1 << site_bit(one, hashes) for one in sites], np.uint32)[site]
        self._form_pages = {one: number_of_form_pages(one, hashes) for one in sites}
        self._form_page = [[*self._form_pages.values()][one] for one in site.tolist()]
        # The numbers of sentences on their sites, and one for all pages of each site.
        of_sites = np.array([number_of_site(one, hashes) for one in sites], np.uint64)
        here = numbers_on_sites(self._sentences, np.repeat(of_sites[site], self.lengths), hashes)
        all_pages = numbers_on_sites(np.repeat(ALL_PAGES, len(sites)), of_sites, hashes)
        self.numbers, places = np.unique(np.concatenate((here, all_pages)), return_inverse=True)
        self._here, self._all_pages = places[: len(here)].astype(np.uint32), places[len(here) :][site]
        self.sentences, places = np.unique(self._sentences.astype(np.uint64), return_inverse=True)
        self._bit_places = places.astype(np.uint32)
        asked_urls = np.array([*self.urls, *hashes.every([*filter(None, canonicals)])], np.uint64)
        self.asked: Asked = {
            Topic.KEY: np.sort(signed(self._firsts[Topic.KEY][0])),
            Topic.URL: sorted_set(signed(asked_urls)),
            Topic.COUNT: np.sort(signed(self.numbers)),
            Topic.BITS: signed(self.sentences),
            Topic.FORM: np.sort(signed(np.array([*self._form_pages.values()], np.uint64))),
        }

    def asked_of_forms(self, given: pa.Table) -> Asked:
        """Return what the pages ask about forms, once it is known how many pages of their sites were counted so."""
        known = dict(zip(*(one.tolist() for one in answers_on(Topic.FORM, given)), strict=True))
        counted = [(site, known[number]) for site, number in self._form_pages.items() if number in known]
        numbers = {one for site, pages in counted for one in numbers_of_forms(site, pages, self._hashes)}
        return {Topic.FORM: np.sort(signed(np.array([*numbers], np.uint64)))}

    def find_doubtful(self, filed: Hashes, newest: Hashes, counts: ExactCounts) -> npt.NDArray[np.bool_]:
        """Return the pages that may be more than a new original.

        Others have a stored fingerprint, no known canonical address, a URL and keys that no earlier page has, and no
        sentence that is boilerplate, even if all pages of the part count. ``filed``, ``newest``: hashes of the keys and
        URLs of earlier parts, in order.
        """
        count = len(self.ranks)
        bits = count_bits(counts.bits.counts) + np.bincount(self._bit_places, minlength=len(counts.bits.counts))
        here = counts.numbers.counts + np.bincount(self._here, minlength=len(counts.numbers.counts))
        pages_of = self._page_of_key, np.repeat(np.arange(count), self.lengths)
        is_key_known = (self._first[Topic.KEY] < self._page_of_key) | is_among(self.keys, filed)
        is_common = (here >= COMMON_HERE)[self._here] | (bits >= COMMON_BITS)[self._bit_places]
        has_key, self.may_be_common = (
            np.bincount(pages[is_known], minlength=count) > 0
            for pages, is_known in zip(pages_of, (is_key_known, is_common), strict=True)
        )
        doubtful: npt.NDArray[np.bool_] = (
            ~self.is_alone | (self._first[Topic.URL] < np.arange(count)) | is_among(self.urls, newest)
        )
        return doubtful | has_key | self.may_be_common

    def fingerprint(self, page: int, counts: ExactCounts) -> Fingerprint | None:
        """Return the fingerprint of a page without boilerplate; None if it has none, or some boilerplate by now."""
        members = slice(self._starts[page], self._starts[page + 1])
        if not self.is_judged[page] or (self.may_be_common[page] and self._has_common(members, counts)):
            return None
        return Fingerprint(self.keys_of(page), self._sketches[page], self._sentences[members], own=self._own[page])

    def _has_common(self, members: slice, counts: ExactCounts) -> bool:
        here, bits = counts.numbers.now[self._here[members]], counts.bits.now[self._bit_places[members]]
        return bool((here >= COMMON_HERE).any() or (count_bits(bits) >= COMMON_BITS).any())

    def keys_of(self, page: int) -> tuple[int, ...]:
        """Return the keys of a page."""
        return tuple(self.keys[self._key_starts[page] : self._key_starts[page + 1]].tolist())

    def first_with(self, topic: Topic, hash: int) -> int:
        """Return the first page that has this hash, or a number above all pages."""
        known, pages = self._firsts[topic]
        place = int(known.searchsorted(np.uint64(hash)))
        return int(pages[place]) if place < len(known) and known[place] == hash else len(self.ranks)

    def first_with_keys_of(self, page: int) -> list[int]:
        """Return the first page that has each of the keys of a page."""
        found: list[int] = self._first[Topic.KEY][self._key_starts[page] : self._key_starts[page + 1]].tolist()
        return found

    def filed(self, is_new: npt.NDArray[np.bool_]) -> dict[Topic, tuple[Hashes, npt.NDArray[np.int64]]]:
        """Return the keys and URLs of new pages as hashes in order, each with the rank of its page."""
        ranks, found = np.array(self.ranks, np.int64), dict[Topic, tuple[Hashes, npt.NDArray[np.int64]]]()
        for topic, (known, pages) in self._firsts.items():
            is_filed = is_new[pages]
            found[topic] = known[is_filed], ranks[pages[is_filed]]
        return found

    def record(self, page: int) -> Record:
        """Return the record of an original."""
        return new_record(self.ranks[page], self._urls[page], self.keys_of(page), self._sketches[page])

    def count_pages(self, pages: slice, counts: ExactCounts) -> None:
        """Count new originals among the pages of their sites."""
        for number in self._form_page[pages]:
            counts.forms[number] += 1

    def count_sentences(self, pages: slice, counts: ExactCounts, *, everywhere: bool) -> None:
        """Count the sentences of pages."""
        members, lengths = slice(self._starts[pages.start], self._starts[pages.stop]), self.lengths[pages]
        np.add.at(counts.numbers.counts, self._all_pages[pages][lengths > 0], _ONE)
        np.add.at(counts.numbers.counts, self._here[members], _ONE)
        if everywhere:
            np.bitwise_or.at(counts.bits.counts, self._bit_places[members], np.repeat(self._bits[pages], lengths))


def _lists(column: pa.ListArray) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:
    """Return the members of all lists, and where each list starts; at last where the last one ends."""
    starts = numbers(column.offsets)
    return numbers(column.flatten()), starts - starts[0]


def answers_on(topic: Topic, given: pa.Table) -> tuple[Hashes, npt.NDArray[np.uint32]]:
    """Return the hashes and values of answers."""
    rows = rows_on(topic, given)
    return unsigned(numbers(rows["hash"])), numbers(rows["value"]).astype(np.uint32)


class PartStore(PageStore):
    """The state of one part, in memory. It notes the questions of its pages, and everything that they write.

    The id of a page is its rank. Pages are never sealed or removed, and nobody reads when they were seen. Pages that
    are not ``doubtful`` are filed as arrays.
    """

    def __init__(
        self,
        method: Method,
        options: BatchOptions,
        pages: PartPages,
        given: pa.Table,
        records: Iterable[tuple[int, bytes]],
    ) -> None:
        super().__init__(Memory(), method.recipe(), options.secret, 0)
        self._pages = pages
        self._counts = ExactCounts(pages.numbers, pages.sentences)
        self.use_exact_counts(self._counts.on_site)
        self._counts.numbers.begin(*answers_on(Topic.COUNT, given))
        self._counts.bits.begin(*answers_on(Topic.BITS, given))
        self._begun_forms = dict(zip(*(one.tolist() for one in answers_on(Topic.FORM, given)), strict=True))
        self._counts.forms = dict.fromkeys(unsigned(pages.asked[Topic.FORM]).tolist(), 0) | self._begun_forms
        self._counts.numbers.before_look = self._counts.bits.before_look = self._count
        self._uncounted = list[slice]()
        #: Packed records by id; ids in ascending order by key; the id of the newest page by the hash of its URL.
        self._records = dict[int, bytes]()
        self._filed = defaultdict[int, list[int]](list)
        self._newest = dict[int, int]()
        for id, packed in records:
            record, is_new = self.unpack_record(id, packed), id not in self._records
            self._keep(id, packed, self._hash(record.url), record.keys if is_new else ())
        for ids in self._filed.values():
            ids.sort()
        filed, newest = (np.sort(np.fromiter(one, np.uint64, len(one))) for one in (self._filed, self._newest))
        #: 1 for each doubtful page.
        self.doubtful = bytearray(pages.find_doubtful(filed, newest, self._counts))
        #: The judged page and its rank, its fingerprint without boilerplate, if it has none, its flags, what it wrote.
        self._page, self._rank, self._flags, self._written = -1, 0, 0, _NOTHING
        self.stored: Fingerprint | None = None
        #: The rows of JUDGED that doubtful pages have.
        self._judged = dict[int, tuple[Any, ...]]()
        #: What doubtful pages were filed under: hashes, ranks of pages and of originals. Then the hashes that they
        #: looked up.
        self._left = {topic: (array("Q"), array("q"), array("q")) for topic in (Topic.KEY, Topic.URL)}
        self._asked = {topic: array("Q") for topic in self._left}

    def begin(self, who: str, job: str = "") -> int:
        return 0

    # Pages, one after the other.

    def begin_page(self, page: int) -> None:
        """Count the pages before a doubtful one, and begin with it."""
        pages, before = self._pages, slice(self._page + 1, page)
        if before.start < before.stop:
            pages.count_pages(before, self._counts)
            self._uncounted.append(before)
        self._page, self._flags, self._written = page, 0, _NOTHING
        if page < len(pages.ranks):
            self._rank, self.stored = pages.ranks[page], pages.fingerprint(page, self._counts)

    def _count(self) -> None:
        """Count the sentences of new originals; only boilerplate and the pages of one site ask for the counts."""
        for pages in self._uncounted:
            self._pages.count_sentences(pages, self._counts, everywhere=True)
        self._uncounted.clear()

    def end_page(self, verdict: bytes) -> None:
        """The page got this verdict, packed."""
        self._judged[self._page] = self._flags, verdict, *self._written

    # Questions.

    def new_id(self) -> int:
        return self._rank

    def find(self, url: str) -> Record | None:
        hashed = self._hash(url)
        self._asked[Topic.URL].append(hashed)
        id = self._newest.get(hashed) or self._new_original(self._pages.first_with(Topic.URL, hashed))
        record = self.record(id)
        return record if record is not None and record.url == kept_url(url) else None

    def record(self, id: int) -> Record | None:
        packed, ranks = self._records.get(id), self._pages.ranks
        if packed is not None:
            return self.unpack_record(id, packed)
        page = bisect_left(ranks, id, 0, max(0, self._page))
        return self._pages.record(page) if ranks[page] == id and not self.doubtful[page] else None

    def records_of(self, ids: Sequence[int]) -> list[Record | None]:
        return [*map(self.record, ids)]

    def all_postings(self, keys: Sequence[int], limit: int) -> list[list[int]]:
        self._asked[Topic.KEY].extend(keys)
        if self.stored is not None and keys == self.stored.keys:
            firsts = self._pages.first_with_keys_of(self._page)
        else:
            firsts = [self._pages.first_with(Topic.KEY, key) for key in keys]
        found = list[list[int]]()
        for key, first in zip(keys, firsts, strict=True):
            filed, new = self._filed.get(key, []), self._new_original(first)
            found.append(([new, *filed] if new else filed)[-limit:][::-1])
        return found

    def _new_original(self, first: int) -> int:
        """Return the id of the first page that has a hash, if it is filed as an array, or 0.

        A page with the hash of an earlier one is doubtful. So at most the first one is filed so, and before all others.
        """
        return self._pages.ranks[first] if first < self._page and not self.doubtful[first] else 0

    def postings(self, key: int, limit: int) -> list[int]:
        """Return nothing: only groups are asked for so, and no page replaces the first one of its group."""
        return []

    # Changes.

    def add(self, record: Record, evidence: Evidence | None = None, *, replaces: int = 0, **others: Any) -> None:
        own = self._pages.keys_of(self._page)
        for key in {*record.keys}.difference(own):
            first = self._pages.first_with(Topic.KEY, key)
            if self._page < first < len(self.doubtful):
                self.doubtful[first] = True
        self._write(record, self._hash(record.url), record.keys, replaces)

    def touch(self, record: Record, *others: Any, renewed: Record | None = None, **more: Any) -> None:
        if renewed is not None and renewed != record:
            self._write(renewed, self._hash(renewed.url))

    def _write(self, record: Record, url: int, keys: Sequence[int] = (), replaces: int = 0) -> None:
        """Write a record; file it under these ``keys``, which it did not have before."""
        packed, original = record.pack(), record.original if record.original != record.id else 0
        self._written = record.id, replaces, packed
        self._keep(record.id, packed, url, keys)
        for topic, filed in (Topic.KEY, keys), (Topic.URL, (url,)):
            hashes, ranks, originals = self._left[topic]
            hashes.extend(filed)
            ranks.extend([self._rank] * len(filed))
            originals.extend([original] * len(filed))

    def _keep(self, id: int, packed: bytes, url: int, keys: Iterable[int]) -> None:
        self._records[id] = packed
        self._newest[url] = id
        for key in keys:
            self._filed[key].append(id)

    def note(self, sentences: Sentences, site: str, *, everywhere: bool = True, page: int | None = None) -> None:
        if self.stored is not None and sentences is self.stored.sentences:
            one = slice(self._page, self._page + 1)
            self._pages.count_sentences(one, self._counts, everywhere=everywhere)
        else:
            super().note(sentences, site, everywhere=everywhere)
        self._flags |= HERE | EVERYWHERE * everywhere

    def note_form(self, site: str, *, in_form: bool) -> None:
        super().note_form(site, in_form=in_form)
        self._flags |= FORMED | FORM * in_form

    def _hash(self, url: str) -> int:
        return self.hashes.of(kept_url(url))

    # Results.

    def judged(self) -> pa.Table:
        """Return JUDGED, once all pages are judged."""
        rows = [(self._pages.ranks[page], *row) for page, row in self._judged.items()]
        return make_table(zip(*rows, strict=True) if rows else [()] * len(JUDGED), JUDGED)

    def rows_to_leave(self, part: int) -> Iterator[pa.Table]:
        """Yield the ROWS of each topic."""
        new = self._pages.filed(~np.frombuffer(self.doubtful, bool))
        for topic, filed in self._left.items():
            columns = zip((*new[topic], np.zeros(len(new[topic][0]), np.int64)), filed, strict=True)
            hashes, ranks, originals = (np.append(signed(one), signed(np.array(other))) for one, other in columns)
            asked = sorted_set(np.append(self._pages.asked[topic], signed(np.array(self._asked[topic]))))
            rows = make_rows(topic, part, hashes, ranks, originals)
            yield pa.concat_tables([rows, make_rows(topic, part, asked[~is_among(asked, np.sort(hashes))])])
        for topic, table in (Topic.COUNT, self._counts.numbers), (Topic.BITS, self._counts.bits):
            counted, now, before = table.added()
            yield make_rows(topic, part, signed(counted), now - before if topic is Topic.COUNT else now ^ before)
        forms = {number: count - self._begun_forms.get(number, 0) for number, count in self._counts.forms.items()}
        yield make_rows(Topic.FORM, part, signed(np.array([*forms], np.uint64)), np.array([*forms.values()], np.int64))


# Judging.


def judge_part(
    options: BatchOptions,
    part: ArchivePart,
    pages: PartPages,
    given: pa.Table,
    records: Iterable[tuple[int, bytes]],
) -> tuple[Iterator[pa.Table], pa.Table]:
    """Judge the pages of a part, and return its ROWS of each topic, and JUDGED.

    ``given``: the answers to what it asks. ``records``: the records that these name, the older ones first.
    """
    method = options.make_method()
    store = PartStore(method, options, pages, given, records)
    policy = replace(options.config.make_policy(), keep=Keep.NOTHING)
    detector, first = PartDetector(method, store, who="batch", policy=policy), 0
    for batch in part.batches():
        end = first + len(batch)
        read = dict[int, tuple[Page, str]]()
        while (at := store.doubtful.find(1, first, end)) >= 0:
            if at not in read:  # a page may become doubtful later
                rows = np.flatnonzero(np.frombuffer(store.doubtful[at:end], bool))
                wanted = batch.take(pa.array(rows + at - (end - len(batch))))
                read = dict(zip((rows + at).tolist(), stored_pages(wanted), strict=True))
            store.begin_page(at)
            store.end_page(pack_verdict(_judge(detector, *read.pop(at))))
            first = at + 1
        first = end
    store.begin_page(first)
    return store.rows_to_leave(part.number), store.judged()


def _judge(detector: Detector, page: Page, failed: str) -> Verdict:
    if failed:
        return Verdict(Outcome.UNJUDGED, page.url, reason=failed)  # type: ignore[arg-type]  # it is a reason
    try:
        return detector.judge_now(page, sealed=False)
    except Exception:  # one page must not end the part
        logger.exception("%s could not be judged. This is a bug; please report it with the traceback.", page.url)
        return Verdict(Outcome.UNJUDGED, page.url, reason="method_failed")


class PartDetector(Detector):
    """Judges the pages of a part. A stored fingerprint is used if no sentence of the page is boilerplate now."""

    store: PartStore

    def fingerprint(self, page: Page, *others: Any) -> Fingerprint | None:
        made = self.store.stored
        if made is None:
            return super().fingerprint(page)
        site = self.store.on_site(page.site)
        title = _LateTitle(lambda: self.method.for_state(page, site).title)
        return Fingerprint(made.keys, made.sketch, made.sentences, own=made.own, site=site, title=title)


class _LateTitle:
    """``Fingerprint.title``, made at its first use: many decisions do without."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    @cached_property
    def _title(self) -> Any:
        return self._make()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._title, name)


# Verdicts, as JUDGED holds them.


def pack_verdict(verdict: Verdict) -> bytes:
    """Return a verdict as bytes; no bytes for a unique page without a match. The ids in it are ranks."""
    match = verdict.match
    if verdict.outcome is Outcome.UNIQUE and match is None:
        return b""
    packed = [
        *(verdict.outcome.value, verdict.id, verdict.reason, verdict.kind_name, verdict.reader, verdict.group),
        match and [match.id, match.url, match.similarity, match.containment, match.shared],
    ]
    return json.dumps(packed).encode()


def unpack_verdict(rank: int, url: str, reader: str, packed: bytes) -> Verdict:
    """Return a verdict that ``pack_verdict`` packed, or that on a unique page like no other. Matches have no time."""
    if not packed:
        return Verdict(Outcome.UNIQUE, url, rank, reader=reader)
    outcome, id, reason, kind, reader, group, about = json.loads(packed)
    match = Match(about[0], about[1], 0.0, about[2], about[3], tuple(about[4])) if about else None
    why: AnyReason = reason
    return Verdict(Outcome(outcome), url, id, match, why, Kind(kind) if kind else None, reader, group)
