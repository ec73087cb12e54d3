"""Judge the pages of a part, as a small crawl judges its pages.

A part holds consecutive pages of an archive: see the package. Its state begins with answers of earlier parts. A page is
*doubtful* if it may be more than a new original, for example by a key of an earlier page. The detector judges
doubtful pages. All others are new originals: they are only counted, and stay in the arrays of ``PartPages``.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from scrapy_neardup.batch.counts import ExactCounts
from scrapy_neardup.batch.pages import stored_pages
from scrapy_neardup.batch.part_pages import PartPages
from scrapy_neardup.batch.rows import Records, Topic, answers_on, is_among, make_rows, make_table, numbers, sorted_set
from scrapy_neardup.batch.runs import EVERYWHERE, FORM, FORMED, HERE, JUDGED, TAG, ArchivePart, BatchOptions, digest_of
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.records import JudgeNow, judge_with_hash
from scrapy_neardup.kv.memory import Memory
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Outcome, Page, Verdict
from scrapy_neardup.page.item import ItemFields
from scrapy_neardup.state.boilerplate import Sentences
from scrapy_neardup.state.layout import kept_url
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import Secret
from scrapy_neardup.state.record import Evidence, Keep, Record
from scrapy_neardup.untrusted import line_logger

logger = line_logger(__name__)

#: Without a record: the id of the written record, the id that it replaces, its bytes.
_NOTHING: tuple[int, int, bytes | None] = 0, 0, None
_tag_of = itemgetter(*TAG.names)


class PartStore(PageStore):
    """The state of one part, in memory. It notes the hashes that pages look up, and everything that they write.

    The id of a page is its rank; 0 means no page. Pages are never sealed or removed, because all of a run becomes
    permanent at its end. Nobody reads when they were seen.
    """

    def __init__(
        self, recipe: dict[str, Any], secret: Secret | None, pages: PartPages, answers: pa.Table, records: Records
    ) -> None:
        super().__init__(Memory(), recipe, secret, 0)
        self._pages = pages
        self._counts = ExactCounts(pages.numbers, pages.sentences)
        self.use_exact_counts(self._counts.on_site)
        self._counts.numbers.begin(*answers_on(Topic.COUNT, answers))
        self._counts.bits.begin(*answers_on(Topic.BITS, answers))
        self._begun_forms = dict(zip(*(one.tolist() for one in answers_on(Topic.FORM, answers)), strict=True))
        self._counts.forms = dict.fromkeys(pages.questions[Topic.FORM].tolist(), 0) | self._begun_forms
        self._counts.numbers.before_look = self._counts.bits.before_look = self._count
        self._uncounted = list[slice]()
        #: Of earlier parts and doubtful pages: packed records by id.
        self._records = dict[int, bytes]()
        #: Ids by key, in ascending order.
        self._filed = defaultdict[int, list[int]](list)
        #: The id of the newest page by the hash of its URL.
        self._newest = dict[int, int]()
        for id, packed in records:
            record, is_new = self.unpack_record(id, packed), id not in self._records
            self._keep(id, packed, self._hash(record.url), record.keys if is_new else ())
        for ids in self._filed.values():
            ids.sort()
        filed, newest = (np.sort(np.fromiter(one, np.uint64, len(one))) for one in (self._filed, self._newest))
        #: 1 for each doubtful page.
        self.doubtful = bytearray(pages.find_doubtful(filed, newest, self._counts))
        #: The judged page: its number in the part, its rank, the flags of JUDGED, and what it wrote.
        self._page, self._rank, self._flags, self._written = -1, 0, 0, _NOTHING
        #: Its fingerprint as it was read; None if a sentence of it is boilerplate by now.
        self.stored: Fingerprint | None = None
        #: The rows of JUDGED that doubtful pages have.
        self._judged = dict[int, tuple[Any, ...]]()
        #: For later parts, three columns: a hash, the doubtful page that is filed under it, the original of this page.
        self._left = {topic: (array("Q"), array("q"), array("q")) for topic in (Topic.KEY, Topic.URL)}
        #: The hashes that doubtful pages looked up.
        self._questions = {topic: array("Q") for topic in self._left}

    # Pages, one after the other.

    def begin_page(self, page: int) -> None:
        """Count the new originals before a doubtful page, and begin with it; after the last one only count."""
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

    def end_page(self, verdict: Verdict) -> None:
        match = verdict.match.id if verdict.match else 0
        self._judged[self._page] = self._flags, *self._written, match, *_tag_of(verdict.as_tag())

    # Questions.

    def new_id(self) -> int:
        return self._rank

    def find(self, url: str) -> Record | None:
        hashed = self._hash(url)
        self._questions[Topic.URL].append(hashed)
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
        self._questions[Topic.KEY].extend(keys)
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
        """Return the id of the first page that has a hash if it is not doubtful, or 0.

        A page with the hash of an earlier one, of this part or another, is doubtful. So at most the first page of all
        is not, and its id is the lowest.
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
        new = self._pages.filed(~np.frombuffer(self.doubtful, bool))
        for topic, filed in self._left.items():
            columns = zip((*new[topic], np.zeros(len(new[topic][0]), np.int64)), filed, strict=True)
            hashes, ranks, originals = (np.append(one, np.array(other, one.dtype)) for one, other in columns)
            asked = sorted_set(np.append(self._pages.questions[topic], np.array(self._questions[topic], np.uint64)))
            rows = make_rows(topic, part, hashes, ranks, originals)
            yield pa.concat_tables([rows, make_rows(topic, part, asked[~is_among(asked, np.sort(hashes))])])
        for topic, table in (Topic.COUNT, self._counts.numbers), (Topic.BITS, self._counts.bits):
            yield make_rows(topic, part, *table.added())
        forms = {number: count - self._begun_forms.get(number, 0) for number, count in self._counts.forms.items()}
        yield make_rows(Topic.FORM, part, np.array([*forms], np.uint64), np.array([*forms.values()], np.int64))


# Judging.


def judge_part(
    options: BatchOptions, part: ArchivePart, pages: PartPages, answers: pa.Table, records: Records
) -> tuple[Iterator[pa.Table], pa.Table]:
    """Judge the pages of a part, and return its ROWS of each topic, and JUDGED.

    ``answers``: to the questions of the part. ``records``: they are named by the answers; older ones come first.
    """
    method = options.make_method()
    store = PartStore(method.recipe(), options.secret, pages, answers, records)
    policy = replace(options.config.make_policy(), keep=Keep.NOTHING)
    detector = PartDetector(method, store, who="batch", policy=policy)
    judge, fields, first = partial(detector.judge_now, sealed=False), ItemFields(options.fields), 0
    for batch in part.batches():
        end = first + len(batch)
        read = dict[int, tuple[Page, str, str]]()
        while (at := store.doubtful.find(1, first, end)) >= 0:
            if at not in read:  # a page may become doubtful later
                rows = np.flatnonzero(np.frombuffer(store.doubtful[at:end], bool))
                wanted = batch.take(pa.array(rows + at - (end - len(batch))))
                read = dict(zip((rows + at).tolist(), stored_pages(wanted), strict=True))
            store.begin_page(at)
            store.end_page(_judge_page(judge, fields, *read.pop(at)))
            first = at + 1
        first = end
    store.begin_page(first)
    return store.rows_to_leave(part.number), store.judged()


def _judge_page(judge: JudgeNow, fields: ItemFields, page: Page, failed: str, rest: str) -> Verdict:
    if failed:
        return Verdict(Outcome.UNJUDGED, page.url, reason=failed)  # type: ignore[arg-type]  # it is a reason
    try:
        return judge_with_hash(judge, page, lambda: fields.hash_rest(rest, page.text, page.url) if rest else page.html)
    except Exception:  # one page must not end the part
        logger.exception("%s could not be judged. This is a bug; please report it with the traceback.", page.url)
        return Verdict(Outcome.UNJUDGED, page.url, reason="method_failed")


class PartDetector(Detector):
    """Judges the pages of a part. A stored fingerprint is used if no sentence of the page is boilerplate now."""

    store: PartStore

    def shared(self, page: Page, sketch: bytes) -> tuple[Any, ...]:
        return (sketch,)  # see ``find_shared``

    def fingerprint(self, page: Page, *others: Any) -> Fingerprint | None:
        made = self.store.stored
        if made is None:
            return super().fingerprint(page)
        site = self.store.on_site(page.site)
        title = _LateTitle(lambda: self.method.for_state(page, site).title)
        return Fingerprint(made.keys, made.sketch, made.sentences, own=made.own, site=site, title=title)


def find_shared(options: BatchOptions, part: ArchivePart) -> None:
    """Write the shared sentences of a judged part, unless they are there. No verdict depends on them."""
    if digest_of(part.shared) == part.digest():
        return
    method, judged = options.make_method(), part.judged_pages()
    known, sketches = numbers(judged["rank"]), iter(judged["shared"])
    chosen = (batch.filter(pa.array(is_among(numbers(batch["rank"]), known))) for batch in part.batches())
    part.write_shared(
        [_find_shared(method, page, *next(sketches).as_py()) for page, *_ in stored_pages(batch)] for batch in chosen
    )


def _find_shared(method: Method, page: Page, sketch: bytes = b"") -> tuple[str, ...]:
    try:
        return method.shared(page, sketch) if sketch else ()
    except Exception:  # one page must not end the run
        logger.exception("%s has no shared sentences. This is a bug; please report it with the traceback.", page.url)
        return ()


class _LateTitle:
    """``Fingerprint.title``, made at its first use: many decisions do without."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = cache(make)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._make(), name)
