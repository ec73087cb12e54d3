"""One part of an archive: the questions of its pages, its state, and its judging, as a small crawl.

The state begins with answers of earlier parts. It notes all questions, and everything that pages write.

Most pages are surely unique: no page before them has their URL or one of their keys, and no sentence of theirs becomes
boilerplate. They are found and filed as arrays. The detector judges the others.
"""

from __future__ import annotations

import json
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from scrapy_neardup.batch.counts import (
    ExactCounts,
    Hashes,
    count_bits,
    number_of_form_pages,
    numbers_of_forms,
    numbers_on_sites,
)
from scrapy_neardup.batch.pages import PAGES, decode, stored_pages
from scrapy_neardup.batch.rows import Asked, Topic, is_first, make_rows, signed, sorted_set, unsigned
from scrapy_neardup.batch.runs import JUDGED, ArchivePart, BatchOptions
from scrapy_neardup.errors import AnyReason
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.kv.memory import Memory
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Kind, Likeness, Match, Page, Verdict
from scrapy_neardup.state.boilerplate import ALL_PAGES, COMMON_BITS, COMMON_HERE, number_of_site, site_bit
from scrapy_neardup.state.evidence import Evidence, Keep
from scrapy_neardup.state.layout import kept_url
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.sentence_counts import Sentences
from scrapy_neardup.untrusted import line_logger

logger = line_logger(__name__)

#: Flags of a judged page: its sentences count for its site, and everywhere; it counts among the pages of its site that
#: are forms or not, and it is a form.
HERE, EVERYWHERE, FORMED, FORM = 1, 2, 4, 8


class _Lists:
    """A column of lists: all ``members``, where the list of each row ``starts`` and the last one ends."""

    def __init__(self, members: npt.NDArray[Any], starts: npt.NDArray[np.int64]) -> None:
        self.members, self.starts = members, starts

    @classmethod
    def of(cls, column: pa.ListArray) -> _Lists:
        starts = column.offsets.to_numpy().astype(np.int64)
        return cls(column.flatten().to_numpy(), starts - starts[0])

    @cached_property
    def rows(self) -> npt.NDArray[np.int64]:
        """The row of each member."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def span(self, begin: int, end: int) -> slice:
        """Return the places of the members of some rows."""
        return slice(self.starts[begin], self.starts[end])

    def of_row(self, row: int) -> npt.NDArray[Any]:
        return self.members[self.span(row, row + 1)]


class PartPages:
    """The pages of a part as arrays, and the questions that they ask in any case."""

    _COLUMNS = ("rank", "url", "site", "canonical", "keys", "sketch", "sentences", "own")

    def __init__(self, options: BatchOptions, part: ArchivePart) -> None:
        self._hashes = hashes = options.make_method().hashes
        table = pa.Table.from_batches(part.batches(self._COLUMNS), pa.schema(map(PAGES.field, self._COLUMNS)))
        columns = {name: table[name].combine_chunks() for name in self._COLUMNS}
        self.ranks: npt.NDArray[np.int64] = columns["rank"].to_numpy()
        self._urls, self._sketches, self._own = columns["url"], columns["sketch"], columns["own"]
        own = self._own.to_numpy(False)  # not a number if there is none
        self._is_made = self._sketches.is_valid().to_numpy(False) & ~(own < options.config.min_letters)
        #: Pages with a fingerprint, and no sentence that may become boilerplate in this part: see ``find_sure``.
        self._is_clean = self._is_made.copy()
        self._has_canonical = pc.binary_length(columns["canonical"]).to_numpy() > 0
        self.urls = hashes.each([kept_url(decode(one)) for one in self._urls.to_pylist()])
        of_canonicals = hashes.each([kept_url(decode(one)) for one in columns["canonical"].to_pylist() if one])
        self.keys, self.sentences = _Lists.of(columns["keys"]), _Lists.of(columns["sentences"])
        different = columns["site"].dictionary_encode()
        sites, site = [decode(one) for one in different.dictionary.to_pylist()], different.indices.to_numpy()
        self._bits = np.array([1 << site_bit(one, hashes) for one in sites], np.uint32)[site]
        self._form_pages = {one: number_of_form_pages(one, hashes) for one in sites}
        self.form_pages = np.array([*self._form_pages.values()], np.uint64)[site]
        # The numbers of sentences on their sites, and one for all pages of each site.
        of_sites = np.array([number_of_site(one, hashes) for one in sites], np.uint64)
        here = numbers_on_sites(self.sentences.members, of_sites[site][self.sentences.rows], hashes)
        all_pages = numbers_on_sites(np.repeat(ALL_PAGES, len(sites)), of_sites, hashes)
        self.numbers, places = np.unique(np.concatenate((here, all_pages)), return_inverse=True)
        self.everywhere, of_sentences = np.unique(self.sentences.members.astype(np.uint64), return_inverse=True)
        #: The places of each page's sentences in ``numbers`` and ``everywhere``.
        self._here = _Lists(places[: len(here)].astype(np.uint32), self.sentences.starts)
        self._everywhere = _Lists(of_sentences.astype(np.uint32), self.sentences.starts)
        #: The places in ``numbers`` that a page adds to, each once: its sentences, and the pages of its site.
        counted = np.flatnonzero(np.diff(self.sentences.starts))
        added = np.concatenate((self._here.members, places[len(here) :][site[counted]])).astype(np.int64)
        pairs = sorted_set(np.concatenate((self.sentences.rows, counted)) << 32 | added)
        self._added = _Lists(pairs & (1 << 32) - 1, np.searchsorted(pairs >> 32, np.arange(len(site) + 1)))
        self.asked: Asked = {
            Topic.KEY: sorted_set(signed(self.keys.members)),
            Topic.URL: sorted_set(signed(np.concatenate((self.urls, of_canonicals)))),
            Topic.COUNT: np.sort(signed(self.numbers)),
            Topic.BITS: signed(self.everywhere),
            Topic.FORM: np.sort(signed(np.array([*self._form_pages.values()], np.uint64))),
        }

    def asked_of_forms(self, given: pa.Table) -> Asked:
        """Return what the pages ask about forms, once it is known how many pages of their sites were counted so."""
        known = dict(zip(*(one.tolist() for one in answers_on(Topic.FORM, given)), strict=True))
        counted = [(site, known[number]) for site, number in self._form_pages.items() if number in known]
        numbers = {one for site, pages in counted for one in numbers_of_forms(site, pages, self._hashes)}
        return {Topic.FORM: np.sort(signed(np.array([*numbers], np.uint64)))}

    def find_sure(self, given: pa.Table, counts: ExactCounts) -> npt.NDArray[np.bool_]:
        """Return which pages are surely unique, whatever becomes of the others. ``counts``: of earlier parts."""
        most = counts.numbers.counts + np.bincount(self._added.members, minlength=len(self.numbers) + 1)
        bits = counts.bits.counts.copy()
        np.bitwise_or.at(bits, self._everywhere.members, self._bits[self.sentences.rows])
        is_common = (most >= COMMON_HERE)[self._here.members]
        is_common |= (count_bits(bits) >= COMMON_BITS)[self._everywhere.members]
        self._is_clean[self.sentences.rows[is_common]] = False
        is_sure: npt.NDArray[np.bool_]
        is_sure = self._is_clean & ~self._has_canonical & _is_new(self.urls, answers_on(Topic.URL, given)[0])
        is_sure[self.keys.rows[~_is_new(self.keys.members, answers_on(Topic.KEY, given)[0])]] = False
        return is_sure

    def fingerprint(self, page: int, counts: ExactCounts) -> Fingerprint | None:
        """Return the fingerprint of a page without boilerplate; None if it has none, or some boilerplate by now."""
        if not self._is_made[page]:
            return None
        if not self._is_clean[page]:
            is_common = counts.numbers.counts[self._here.of_row(page)] >= COMMON_HERE
            if is_common.any() or (count_bits(counts.bits.counts[self._everywhere.of_row(page)]) >= COMMON_BITS).any():
                return None
        keys, sentences = tuple(self.keys.of_row(page).tolist()), self.sentences.of_row(page)
        return Fingerprint(keys, self._sketches[page].as_py(), sentences, own=self._own[page].as_py())

    def record(self, page: int) -> Record:
        """Return the record of an original."""
        rank = int(self.ranks[page])
        keys, sketch = tuple(self.keys.of_row(page).tolist()), self._sketches[page].as_py()
        return Record(rank, decode(self._urls[page].as_py()), rank, 1.0, keys, sketch)

    def count_sentences(self, begin: int, end: int, counts: ExactCounts, *, everywhere: bool) -> None:
        """Count the sentences of consecutive pages."""
        np.add.at(counts.numbers.counts, self._added.members[self._added.span(begin, end)], np.uint32(1))
        if everywhere:
            members = self.sentences.span(begin, end)
            bits = self._bits[self.sentences.rows[members]]
            np.bitwise_or.at(counts.bits.counts, self._everywhere.members[members], bits)


def _is_new(hashes: Hashes, known: Hashes) -> npt.NDArray[np.bool_]:
    """Return which hashes are not ``known``, and stand at their first place."""
    order = np.argsort(hashes, kind="stable")
    found = np.empty(len(hashes), bool)
    found[order] = is_first(hashes[order])
    return found & ~np.isin(hashes, known)


def answers_on(topic: Topic, given: pa.Table) -> tuple[Hashes, npt.NDArray[np.uint32]]:
    """Return the hashes and values of answers."""
    is_of = given["topic"].to_numpy() == topic
    return unsigned(given["hash"].to_numpy()[is_of]), given["value"].to_numpy()[is_of].astype(np.uint32)


class PartStore(PageStore):
    """The state of one part, in memory. It notes the questions of its pages, and everything that they write.

    The id of a page is its rank. Pages are never sealed or removed, and nobody reads when they were seen.
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
        self._pages, count = pages, len(pages.ranks)
        self._counts = ExactCounts(pages.numbers, pages.everywhere)
        self.use_exact_counts(self._counts.on_site)
        self._counts.numbers.begin(*answers_on(Topic.COUNT, given))
        self._counts.bits.begin(*answers_on(Topic.BITS, given))
        self._begun_forms = dict(zip(*(one.tolist() for one in answers_on(Topic.FORM, given)), strict=True))
        self._counts.forms = dict.fromkeys(unsigned(pages.asked[Topic.FORM]).tolist(), 0) | self._begun_forms
        self.is_sure = pages.find_sure(given, self._counts)
        sure = np.flatnonzero(self.is_sure)
        #: The keys of sure pages in ascending order, and their pages; the sure page at each URL.
        members = np.flatnonzero(self.is_sure[pages.keys.rows])
        members = members[np.argsort(pages.keys.members[members])]
        self._sure_keys, self._sure_pages = pages.keys.members[members], pages.keys.rows[members]
        self._sure_urls = dict(zip(pages.urls[sure].tolist(), sure.tolist(), strict=True))
        #: Of other pages: packed records by id; ids in ascending order by key; the newest id by the hash of its URL.
        self._records = dict[int, bytes]()
        self._filed = defaultdict[int, list[int]](list)
        self._newest = dict[int, int]()
        for id, packed in records:
            record, is_new = self.unpack_record(id, packed), id not in self._records
            self._keep(id, packed, self._hash(record.url), record.keys if is_new else ())
        for ids in self._filed.values():
            ids.sort()
        #: The page that is judged, its stored fingerprint, and the first page whose sentences do not count yet.
        self._page = self._uncounted = 0
        self.stored: Fingerprint | None = None
        #: What JUDGED says of each page. ``judged`` adds the sure pages.
        self._flags, self._ids, self._replaced = np.zeros((3, count), np.int64)
        self._verdicts, self._written = [b""] * count, list[bytes | None]([None]) * count
        #: What pages were filed under: hashes, ranks of pages and of originals. Then hashes that were looked up.
        self._left = {topic: (array("Q"), array("q"), array("q")) for topic in (Topic.KEY, Topic.URL)}
        self._asked = {topic: array("Q") for topic in self._left}

    def begin(self, who: str, job: str = "") -> int:
        return 0

    # Pages, one after the other.

    def begin_page(self, page: int) -> None:
        """Begin with a page that is not sure. All pages before it are sure, or judged; their sentences count."""
        pages, sure = self._pages, slice(self._uncounted, page)
        pages.count_sentences(sure.start, page, self._counts, everywhere=True)
        for number in pages.form_pages[sure].tolist():
            self._counts.forms[number] += 1
        self._page, self._uncounted = page, page + 1
        self.stored = pages.fingerprint(page, self._counts) if page < len(self.is_sure) else None

    def end_page(self, verdict: bytes) -> None:
        """The page got this verdict, packed."""
        self._verdicts[self._page] = verdict

    # Questions.

    def new_id(self) -> int:
        return int(self._pages.ranks[self._page])

    def find(self, url: str) -> Record | None:
        hashed = self._hash(url)
        self._asked[Topic.URL].append(hashed)
        sure = self._sure_urls.get(hashed, self._page)
        if hashed not in self._newest and sure < self._page and self.is_sure[sure]:
            record: Record | None = self._pages.record(sure)
        else:
            record = self.record(self._newest.get(hashed, 0))
        return record if record is not None and record.url == kept_url(url) else None

    def record(self, id: int) -> Record | None:
        if (packed := self._records.get(id)) is not None:
            return self.unpack_record(id, packed)
        page = np.searchsorted(self._pages.ranks, id)
        is_sure = page < self._page and self._pages.ranks[page] == id and self.is_sure[page]
        return self._pages.record(int(page)) if is_sure else None

    def records_of(self, ids: Sequence[int]) -> list[Record | None]:
        return [*map(self.record, ids)]

    def all_postings(self, keys: Sequence[int], limit: int) -> list[list[int]]:
        self._asked[Topic.KEY].extend(keys)
        found = [self._filed.get(key, []) for key in keys]
        for at, page in self._sure_under(keys):
            if page < self._page:  # it is the first page with this key
                found[at] = [int(self._pages.ranks[page]), *found[at]]
        return [ids[-limit:][::-1] for ids in found]

    def _sure_under(self, keys: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield the places of keys that a sure page has, each with that page."""
        places = np.searchsorted(self._sure_keys, np.array(keys, np.uint64))
        for at, (key, place) in enumerate(zip(keys, places.tolist(), strict=True)):
            if place < len(self._sure_keys) and self._sure_keys[place] == key and self.is_sure[self._sure_pages[place]]:
                yield at, int(self._sure_pages[place])

    def postings(self, key: int, limit: int) -> list[int]:
        """Return nothing: only groups are asked for so, and no page replaces the first one of its group."""
        return []

    # Changes.

    def add(self, record: Record, evidence: Evidence | None = None, *, replaces: int = 0, **others: Any) -> None:
        self._write(record, record.keys, replaces)

    def touch(self, record: Record, *others: Any, renewed: Record | None = None, **more: Any) -> None:
        if renewed is not None and renewed != record:
            self._write(renewed)

    def _write(self, record: Record, keys: Sequence[int] = (), replaces: int = 0) -> None:
        """Write a record; file it under these ``keys``, which it did not have before."""
        page, original = self._page, record.original if record.original != record.id else 0
        packed, url = record.pack(), self._hash(record.url)
        self._ids[page], self._replaced[page], self._written[page] = record.id, replaces, packed
        self._keep(record.id, packed, url, keys)
        for topic, filed in (Topic.KEY, keys), (Topic.URL, (url,)):
            hashes, ranks, originals = self._left[topic]
            hashes.extend(filed)
            ranks.extend([self.new_id()] * len(filed))
            originals.extend([original] * len(filed))
        for _, later in self._sure_under(keys):
            if later > page:  # boilerplate that was left out has given this page a key of a later one
                self.is_sure[later] = False

    def _keep(self, id: int, packed: bytes, url: int, keys: Iterable[int]) -> None:
        self._records[id] = packed
        self._newest[url] = id
        for key in keys:
            self._filed[key].append(id)

    def note(self, sentences: Sentences, site: str, *, everywhere: bool = True, page: int | None = None) -> None:
        if np.array_equal(sentences, self._pages.sentences.of_row(self._page)):
            self._pages.count_sentences(self._page, self._page + 1, self._counts, everywhere=everywhere)
        else:
            super().note(sentences, site, everywhere=everywhere)
        if len(sentences):
            self._flags[self._page] |= HERE | EVERYWHERE * everywhere

    def note_form(self, site: str, *, in_form: bool) -> None:
        super().note_form(site, in_form=in_form)
        self._flags[self._page] |= FORMED | FORM * in_form

    def _hash(self, url: str) -> int:
        return self.hashes.of(kept_url(url))

    # What the part leaves, once its last page is judged.

    def judged(self) -> pa.Table:
        """Return JUDGED."""
        sure = np.flatnonzero(self.is_sure)
        self._ids[sure], self._flags[sure] = self._pages.ranks[sure], FORMED
        self._flags[self.is_sure & (np.diff(self._pages.sentences.starts) > 0)] |= HERE | EVERYWHERE
        for page in sure.tolist():
            self._written[page] = self._pages.record(page).pack()
        columns = (self._pages.ranks, self._flags, self._verdicts, self._ids, self._replaced, self._written)
        return pa.table([pa.array(one, field.type) for one, field in zip(columns, JUDGED, strict=True)], JUDGED)

    def rows_to_leave(self, part: int) -> Iterator[pa.Table]:
        """Yield the ROWS of each topic."""
        pages, keys = self._pages, self._pages.keys
        of_sure = self.is_sure[keys.rows]
        sure = {
            Topic.KEY: (keys.members[of_sure], pages.ranks[keys.rows[of_sure]]),
            Topic.URL: (pages.urls[self.is_sure], pages.ranks[self.is_sure]),
        }
        for topic, filed in self._left.items():
            hashes, ranks, originals = (np.array(column).view(np.int64) for column in filed)
            hashes = np.concatenate((signed(sure[topic][0]), hashes))
            ranks = np.concatenate((sure[topic][1], ranks))
            originals = np.concatenate((np.zeros_like(sure[topic][1]), originals))
            asked = np.concatenate((pages.asked[topic], np.array(self._asked[topic]).view(np.int64)))
            rows = make_rows(topic, part, hashes, ranks, originals)
            yield pa.concat_tables([rows, make_rows(topic, part, np.setdiff1d(asked, hashes))])
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
    detector, number = PartDetector(method, store, who="batch", policy=policy), 0
    for batch in part.batches():
        for row in range(len(batch)):
            if not store.is_sure[number]:
                store.begin_page(number)
                ((page, failed),) = stored_pages(batch.slice(row, 1))
                store.end_page(pack_verdict(_judge(detector, page, failed)))
            number += 1
    store.begin_page(number)
    return store.rows_to_leave(part.number), store.judged()


def _judge(detector: Detector, page: Page, failed: str) -> Verdict:
    if failed:
        return Verdict(Kind.UNJUDGED, page.url, reason=failed)  # type: ignore[arg-type]  # it is a reason
    try:
        return detector.judge_now(page, sealed=False)
    except Exception:  # one page must not end the part
        logger.exception("%s could not be judged. This is a bug; please report it with the traceback.", page.url)
        return Verdict(Kind.UNJUDGED, page.url, reason="method_failed")


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
    if verdict.kind is Kind.UNIQUE and match is None:
        return b""
    packed = [
        *(verdict.kind.value, verdict.id, verdict.reason, verdict.kind_of_likeness, verdict.reader, verdict.group),
        match and [match.id, match.url, match.similarity, match.containment, match.shared],
    ]
    return json.dumps(packed).encode()


def unpack_verdict(rank: int, url: str, reader: str, packed: bytes) -> Verdict:
    """Return a verdict that ``pack_verdict`` packed, or that on a unique page like no other. Matches have no time."""
    if not packed:
        return Verdict(Kind.UNIQUE, url, rank, reader=reader)
    kind, id, reason, likeness, reader, group, about = json.loads(packed)
    match = Match(about[0], about[1], 0.0, about[2], about[3], tuple(about[4])) if about else None
    why: AnyReason = reason
    return Verdict(Kind(kind), url, id, match, why, Likeness(likeness) if likeness else None, reader, group)
