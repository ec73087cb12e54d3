"""One part of an archive: the questions of its pages, its state, and its judging, as a small crawl.

The state begins with answers of earlier parts. It notes all questions, and everything that pages write.
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

from scrapy_neardup.batch.counts import (
    ExactCounts,
    Hashes,
    count_bits,
    number_of_form_pages,
    numbers_of_forms,
    numbers_on_sites,
)
from scrapy_neardup.batch.pages import PAGES, decode, stored_pages
from scrapy_neardup.batch.rows import Asked, Topic, make_rows, signed, sorted_set, unsigned
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
#: What a page wrote that wrote no record: no id, nothing that it replaces, nothing.
_NOTHING: tuple[int, int, bytes | None] = 0, 0, None


class PartPages:
    """The pages of a part as arrays, and the questions that they ask in any case."""

    _COLUMNS = ("rank", "url", "site", "canonical", "keys", "sketch", "sentences", "own")

    def __init__(self, options: BatchOptions, part: ArchivePart) -> None:
        self._hashes = hashes = options.make_method().hashes
        self._min_letters = options.config.min_letters
        table = pa.Table.from_batches(part.batches(self._COLUMNS), pa.schema(map(PAGES.field, self._COLUMNS)))
        columns = {name: table[name].combine_chunks() for name in self._COLUMNS}
        self.ranks: list[int] = columns["rank"].to_pylist()
        self._urls, self._sketches, self._own = columns["url"], columns["sketch"], columns["own"]
        self.canonicals = columns["canonical"].to_pylist()
        of_urls = hashes.each([kept_url(decode(one)) for one in self._urls.to_pylist()])
        of_canonicals = hashes.each([kept_url(decode(one)) for one in self.canonicals if one])
        self.urls: list[int] = of_urls.tolist()
        keys, self._key_starts = _lists(columns["keys"])
        self._keys = keys.tolist()
        self._sentences, self._starts = _lists(columns["sentences"])
        different = columns["site"].dictionary_encode()
        sites, site = [decode(one) for one in different.dictionary.to_pylist()], different.indices.to_numpy()
        self._bits = np.array([1 << site_bit(one, hashes) for one in sites], np.uint32)[site]
        self._form_pages = {one: number_of_form_pages(one, hashes) for one in sites}
        self.form_pages = [[*self._form_pages.values()][one] for one in site.tolist()]
        # The numbers of sentences on their sites, and one for all pages of each site.
        of_sites = np.array([number_of_site(one, hashes) for one in sites], np.uint64)
        here = numbers_on_sites(self._sentences, np.repeat(of_sites[site], np.diff(self._starts)), hashes)
        all_pages = numbers_on_sites(np.repeat(ALL_PAGES, len(sites)), of_sites, hashes)
        self.numbers, places = np.unique(np.concatenate((here, all_pages)), return_inverse=True)
        self._here, self._all_pages = places[: len(here)].astype(np.uint32), places[len(here) :][site]
        self.sentences, places = np.unique(self._sentences.astype(np.uint64), return_inverse=True)
        self._bit_places = places.astype(np.uint32)
        self.asked: Asked = {
            Topic.KEY: sorted_set(signed(keys)),
            Topic.URL: sorted_set(signed(np.concatenate((of_urls, of_canonicals)))),
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

    def sentences_of(self, page: int) -> Sentences:
        """Return the sentences of a page."""
        return self._sentences[self._starts[page] : self._starts[page + 1]]

    def fingerprint(self, page: int, counts: ExactCounts) -> Fingerprint | None:
        """Return the fingerprint of a page without boilerplate; None if it has none, or some boilerplate by now."""
        sketch, own = self._sketches[page].as_py(), self._own[page].as_py()
        if sketch is None or (own is not None and own < self._min_letters):
            return None
        members = slice(self._starts[page], self._starts[page + 1])
        bits = counts.bits.counts[self._bit_places[members]]
        is_common = counts.numbers.counts[self._here[members]] >= COMMON_HERE
        if is_common.any() or (bits.any() and (count_bits(bits) >= COMMON_BITS).any()):
            return None
        keys = tuple(self._keys[self._key_starts[page] : self._key_starts[page + 1]])
        return Fingerprint(keys, sketch, self._sentences[members], own=own)

    def record(self, page: int, made: Fingerprint) -> Record:
        """Return the record of an original."""
        return Record(self.ranks[page], decode(self._urls[page].as_py()), self.ranks[page], 1.0, made.keys, made.sketch)

    def count_sentences(self, page: int, counts: ExactCounts, *, everywhere: bool) -> int:
        """Count the sentences of a page, and return its flags."""
        members = slice(self._starts[page], self._starts[page + 1])
        if members.start == members.stop:
            return 0
        counts.numbers.counts[self._all_pages[page]] += 1
        counts.numbers.counts[self._here[members]] += 1  # a sentence that stands twice counts once
        if everywhere:
            counts.bits.counts[self._bit_places[members]] |= self._bits[page]
        return HERE | EVERYWHERE * everywhere


def _lists(column: pa.ListArray) -> tuple[npt.NDArray[Any], list[int]]:
    """Return the members of all lists, and where each list starts; at last where the last one ends."""
    starts = column.offsets.to_numpy()
    return column.flatten().to_numpy(), (starts - starts[0]).tolist()


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
        self._pages = pages
        self._counts = ExactCounts(pages.numbers, pages.sentences)
        self.use_exact_counts(self._counts.on_site)
        self._counts.numbers.begin(*answers_on(Topic.COUNT, given))
        self._counts.bits.begin(*answers_on(Topic.BITS, given))
        self._begun_forms = dict(zip(*(one.tolist() for one in answers_on(Topic.FORM, given)), strict=True))
        self._counts.forms = dict.fromkeys(unsigned(pages.asked[Topic.FORM]).tolist(), 0) | self._begun_forms
        #: Packed records by id; ids in ascending order by key; the id of the newest page by the hash of its URL.
        self._records = dict[int, bytes]()
        self._filed = defaultdict[int, list[int]](list)
        self._newest = dict[int, int]()
        for id, packed in records:
            record, is_new = self.unpack_record(id, packed), id not in self._records
            self._keep(id, packed, self._hash(record.url), record.keys if is_new else ())
        for ids in self._filed.values():
            ids.sort()
        #: The judged page and its rank, its fingerprint without boilerplate, if it has none, its flags, what it wrote.
        self._page, self._rank, self._flags, self._written = -1, 0, 0, _NOTHING
        self.stored: Fingerprint | None = None
        #: The rows of JUDGED.
        self.judged = list[tuple[Any, ...]]()
        #: What pages were filed under: hashes, ranks of pages and of originals. Then hashes that were looked up.
        self._left = {topic: (array("Q"), array("q"), array("q")) for topic in (Topic.KEY, Topic.URL)}
        self._asked = {topic: array("Q") for topic in self._left}

    def begin(self, who: str, job: str = "") -> int:
        return 0

    # Pages, one after the other.

    def file_if_new(self, page: int) -> bool:
        """Begin with a page, and file it if it is surely unique: return whether it is.

        Most pages are. No earlier page has their URL or one of their keys, and no sentence of theirs is boilerplate.
        """
        pages = self._pages
        made, url = pages.fingerprint(page, self._counts), pages.urls[page]
        self._page, self._rank, self.stored, self._flags, self._written = page, pages.ranks[page], made, 0, _NOTHING
        if made is None or pages.canonicals[page] or url in self._newest:
            return False
        if not self._filed.keys().isdisjoint(made.keys):
            return False
        self._write(pages.record(page, made), url, made.keys)
        self._counts.forms[pages.form_pages[page]] += 1
        self._flags = FORMED | pages.count_sentences(page, self._counts, everywhere=True)
        self.end_page(b"")
        return True

    def end_page(self, verdict: bytes) -> None:
        """The page got this verdict, packed."""
        self.judged.append((self._rank, self._flags, verdict, *self._written))

    # Questions.

    def new_id(self) -> int:
        return self._rank

    def find(self, url: str) -> Record | None:
        hashed = self._hash(url)
        self._asked[Topic.URL].append(hashed)
        record = self.record(self._newest.get(hashed, 0))
        return record if record is not None and record.url == kept_url(url) else None

    def record(self, id: int) -> Record | None:
        packed = self._records.get(id)
        return None if packed is None else self.unpack_record(id, packed)

    def records_of(self, ids: Sequence[int]) -> list[Record | None]:
        return [*map(self.record, ids)]

    def all_postings(self, keys: Sequence[int], limit: int) -> list[list[int]]:
        self._asked[Topic.KEY].extend(keys)
        return [self._filed.get(key, [])[-limit:][::-1] for key in keys]

    def postings(self, key: int, limit: int) -> list[int]:
        """Return nothing: only groups are asked for so, and no page replaces the first one of its group."""
        return []

    # Changes.

    def add(self, record: Record, evidence: Evidence | None = None, *, replaces: int = 0, **others: Any) -> None:
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
        if np.array_equal(sentences, self._pages.sentences_of(self._page)):
            self._flags |= self._pages.count_sentences(self._page, self._counts, everywhere=everywhere)
        else:
            super().note(sentences, site, everywhere=everywhere)
            self._flags |= HERE | EVERYWHERE * everywhere

    def note_form(self, site: str, *, in_form: bool) -> None:
        super().note_form(site, in_form=in_form)
        self._flags |= FORMED | FORM * in_form

    def _hash(self, url: str) -> int:
        return self.hashes.of(kept_url(url))

    def rows_to_leave(self, part: int) -> Iterator[pa.Table]:
        """Yield the ROWS of each topic."""
        for topic, filed in self._left.items():
            hashes, ranks, originals = (np.array(column).view(np.int64) for column in filed)
            asked = np.concatenate((self._pages.asked[topic], np.array(self._asked[topic]).view(np.int64)))
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
    detector = PartDetector(method, store, who="batch", policy=policy)
    for batch in part.batches():
        for row in range(len(batch)):
            if not store.file_if_new(len(store.judged)):
                ((page, failed),) = stored_pages(batch.slice(row, 1))
                store.end_page(pack_verdict(_judge(detector, page, failed)))
    columns = zip(*store.judged, strict=True) if store.judged else [()] * len(JUDGED)
    judged = [pa.array(column, field.type) for column, field in zip(columns, JUDGED, strict=True)]
    return store.rows_to_leave(part.number), pa.table(judged, JUDGED)


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
