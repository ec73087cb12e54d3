"""One part of an archive: what its pages ask, its state, and its judging, as a small crawl.

The state begins with given rows. It notes the hashes that are asked for, and all rows that are written.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from scrapy_neardup.batch.pages import BatchOptions, StoredPage, decode, stored_pages
from scrapy_neardup.batch.routing import ASKED, ROWS, Topic
from scrapy_neardup.errors import AnyReason
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.memory import Memory
from scrapy_neardup.methods import Method
from scrapy_neardup.model import NO_SENTENCES, Fingerprint, Kind, Likeness, Match, Page, SiteCounts, Verdict
from scrapy_neardup.state import layout
from scrapy_neardup.state.boilerplate import ALL_PAGES, COMMON_BITS, COMMON_HERE, number_of_site, site_bit
from scrapy_neardup.state.evidence import Evidence, Keep
from scrapy_neardup.state.exact_counts import ExactCounts, number_of_form_pages, numbers_of_forms, numbers_on_sites
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.sentence_counts import Sentences
from scrapy_neardup.untrusted import line_logger

logger = line_logger(__name__)

Hashes = npt.NDArray[np.uint64]
#: Flags in ``count`` of a verdict's row: the sentences of the page count for its site, and everywhere; the page counts
#: among the forms of its site or the others, and it is a form.
HERE, EVERYWHERE, FORMED, FORM = 1, 2, 4, 8


class PartQuestions:
    """What the pages of a part ask by their addresses, keys and sentences, before anything is known of other pages.

    ``hashes``: of each topic, sorted, each once.
    """

    #: The columns of PAGES that it takes.
    COLUMNS = ("url", "site", "canonical", "keys", "sentences")

    def __init__(self, hashes: Keyed, pages: Iterable[pa.RecordBatch]) -> None:
        self._keyed = hashes
        urls, keys, sites = list[bytes](), [np.zeros(0, np.uint64)], list[bytes]()
        sentences, lengths = [NO_SENTENCES], [np.zeros(0, np.int64)]
        for batch in pages:
            urls += batch.column("url").to_pylist()
            urls += filter(None, batch.column("canonical").to_pylist())
            sites += batch.column("site").to_pylist()
            keys.append(batch.column("keys").flatten().to_numpy())
            sentences.append(batch.column("sentences").flatten().to_numpy())
            lengths.append(np.diff(batch.column("sentences").offsets.to_numpy()))
        each = np.concatenate(lengths)
        names = {one: decode(one) for one in set(sites)}
        site_numbers = {one: number_of_site(name, hashes) for one, name in names.items()}
        by_site = np.array([site_numbers[one] for one in sites], np.uint64)
        joined = np.concatenate(sentences)
        here = numbers_on_sites(joined, np.repeat(by_site, each), hashes)
        pages_of_sites = numbers_on_sites(np.repeat(ALL_PAGES, len(sites)), by_site, hashes)
        #: Of each site the number that counts its pages by their form, which is odd.
        self._form_pages = {site: number_of_form_pages(site, hashes) for site in names.values()}
        self.forms = np.array(sorted(self._form_pages.values()), np.uint64)
        self.counted, places = _unique(np.concatenate((here, pages_of_sites)))
        self.sentences, self._bit_places = _unique(joined)
        #: Of each page the first of its sentences among all; the places of their numbers, and of the sites' own.
        self._starts = np.concatenate(([0], np.cumsum(each))).tolist()
        self._places, self._site_places = places[: len(here)], places[len(here) :].tolist()
        of_urls = hashes.each([layout.kept_url(decode(one)) for one in urls])
        self.hashes: dict[Topic, Hashes] = {
            Topic.KEY: sorted_set(np.concatenate(keys)),
            Topic.URL: sorted_set(of_urls),
            Topic.COUNT: np.sort(np.concatenate((self.counted, self.forms))),
            Topic.BITS: self.sentences.astype(np.uint64),
        }

    def places(self, page: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], int]:
        """Return where the numbers of a page's sentences stand, their bits, and the number of its site's pages."""
        low, high = self._starts[page], self._starts[page + 1]
        return self._places[low:high], self._bit_places[low:high], self._site_places[page]

    def of_forms(self, given: pa.Table) -> dict[Topic, Hashes]:
        """Return what the pages ask about forms, once it is known how many pages of their sites were counted so."""
        rows = given.filter(pc.equal(given["kind"], int(Topic.COUNT)))
        known = dict(zip(rows["hash"].to_pylist(), rows["count"].to_pylist(), strict=True))
        numbers = [
            number
            for site, form_pages in self._form_pages.items()
            if (pages := known.get(form_pages, 0))
            for number in numbers_of_forms(site, pages, self._keyed)
        ]
        return {Topic.COUNT: np.unique(np.array(numbers, np.uint64))}


def sorted_set(hashes: Hashes) -> Hashes:
    """Return the different hashes in order; faster than ``numpy.unique``, which fills a table first."""
    hashes = np.sort(hashes)
    is_new = np.ones(len(hashes), bool)
    is_new[1:] = hashes[1:] != hashes[:-1]
    return hashes[is_new]


def _unique(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint32]]:
    """Return the different values in order, and the place of each value among them."""
    different, places = np.unique(values, return_inverse=True)
    return different, places.astype(np.uint32)


class NotedCounts:
    """Counts by hash. It holds each hash that was asked for, with 0 for an unknown one.

    Those that the pages of the part are known to ask for stand in an array, in order; others in a dictionary.
    """

    def __init__(self, hashes: npt.NDArray[Any], others: Iterable[int] = ()) -> None:
        self.counts = np.zeros(len(hashes), np.uint32)
        self._hashes = hashes
        self._others = dict.fromkeys(others, 0)
        self._given: tuple[npt.NDArray[np.uint32], dict[int, int]] = self.counts.copy(), {}

    def begin(self, hashes: Hashes, counts: Hashes) -> None:
        """Begin with the counts that earlier parts leave."""
        places = np.minimum(np.searchsorted(self._hashes, hashes), max(0, len(self._hashes) - 1))
        is_known = self._hashes[places] == hashes if len(self._hashes) else np.zeros(len(hashes), bool)
        self.counts[places[is_known]] = counts[is_known]
        self._others.update(zip(hashes[~is_known].tolist(), counts[~is_known].tolist(), strict=True))
        self._given = self.counts.copy(), dict(self._others)

    def get(self, hash: int, default: int = 0) -> int:
        """Return the count of a hash."""
        known = self._others.get(hash)
        if known is not None:
            return known
        place = self._place(hash)
        return int(self.counts[place]) if place >= 0 else self._others.setdefault(hash, default)

    def __setitem__(self, hash: int, count: int) -> None:
        place = -1 if hash in self._others else self._place(hash)
        if place >= 0:
            self.counts[place] = count
        else:
            self._others[hash] = count

    def _place(self, hash: int) -> int:
        place = int(np.searchsorted(self._hashes, self._hashes.dtype.type(hash)))
        return place if place < len(self._hashes) and self._hashes[place] == hash else -1

    def added(self, less: np.ufunc) -> tuple[Hashes, Hashes]:
        """Return all hashes, and the counts ``less`` what they were in the beginning."""
        given, given_others = self._given
        hashes = np.fromiter(self._others, np.uint64, len(self._others))
        more = [int(less(count, given_others.get(one, 0))) for one, count in self._others.items()]
        counts = less(self.counts, given).astype(np.uint64), np.array(more, np.uint64)
        return np.concatenate((self._hashes.astype(np.uint64), hashes)), np.concatenate(counts)


class PartCounts(ExactCounts):
    """Exact counts of a part. The sentences of the judged page have known places, so they need no search."""

    numbers: NotedCounts
    bits: NotedCounts

    def __init__(self, questions: PartQuestions) -> None:
        super().__init__()
        self._questions = questions
        self.numbers = NotedCounts(questions.counted, questions.forms.tolist())
        self.bits = NotedCounts(questions.sentences)
        self._own: Sentences | None = None

    def by_topic(self) -> tuple[tuple[Topic, NotedCounts], ...]:
        """Return the counts of both kinds."""
        return (Topic.COUNT, self.numbers), (Topic.BITS, self.bits)

    def begin_page(self, page: int, sentences: Sentences | None) -> None:
        """The page with this number in the part is judged next; these are its sentences, if it has any."""
        self._own = sentences
        self._places, self._bit_places, self._site_place = self._questions.places(page)

    def note(
        self, sentences: Sentences, site: str, hashes: Keyed, *, everywhere: bool, page: int | None = None
    ) -> bool:
        if sentences is not self._own:
            return super().note(sentences, site, hashes, everywhere=everywhere)
        self.numbers.counts[self._places] += 1  # a sentence that stands twice counts once
        self.numbers.counts[self._site_place] += 1
        if everywhere:
            self.bits.counts[self._bit_places] |= 1 << site_bit(site, hashes)
        return True

    def stood_on(self, sentences: Sentences, site: str, hashes: Keyed) -> npt.NDArray[np.uint16]:
        if sentences is not self._own:
            return super().stood_on(sentences, site, hashes)
        return np.minimum(self.numbers.counts[self._places], COMMON_HERE).astype(np.uint16)

    def is_common(self, sentences: Sentences, site: str, hashes: Keyed) -> npt.NDArray[np.bool_]:
        if sentences is not self._own:
            return super().is_common(sentences, site, hashes)
        common: npt.NDArray[np.bool_] = self.numbers.counts[self._places] >= COMMON_HERE
        bits = self.bits.counts[self._bit_places]
        if bits.any():
            common |= np.array([one.bit_count() >= COMMON_BITS for one in bits.tolist()])
        return common


class PartStore(PageStore):
    """The state of one part, in memory. It notes what its pages ask and write.

    The id of a page is its rank. Pages are neither sealed nor removed; nobody reads when they were seen.
    """

    def __init__(self, method: Method, options: BatchOptions, given: pa.Table, questions: PartQuestions) -> None:
        super().__init__(Memory(), method.recipe(), options.secret, 0)
        self._questions = questions
        self.part_counts = PartCounts(questions)
        self.use_exact_counts(self.part_counts)
        self.rank = 0
        #: The ranks of the judged pages, and their verdicts, packed; empty for a unique page that is like no other.
        self.ranks, self.verdicts = array("Q"), list[bytes]()
        self._flags: dict[int, int] = {}
        #: By the rank of the page that wrote it: id, original unless that is the id, replaced record, packed record.
        self._written: dict[int, tuple[int, int, int, bytes]] = {}
        self._asked_keys, self._filed_keys, self._filed_by = array("Q"), array("Q"), array("Q")
        self._urls: dict[int, int] = {}
        self._seed(given)

    def _seed(self, given: pa.Table) -> None:
        records = given.filter(pc.equal(given["kind"], int(Topic.RECORD))).sort_by("source")
        for id, packed in zip(records["hash"].to_pylist(), records["payload"].to_pylist(), strict=True):
            changes = Changes()
            self.file(Record.unpack(id, packed), changes, 0)
            self.apply(changes, sync=False)
        for topic, counts in self.part_counts.by_topic():
            rows = given.filter(pc.equal(given["kind"], int(topic)))
            counts.begin(rows["hash"].to_numpy(), rows["count"].to_numpy())

    def begin(self, who: str, job: str = "") -> int:
        return 0

    def begin_page(self, rank: int, sentences: Sentences | None) -> None:
        """The next page to be judged has this rank, and these sentences, if it has any."""
        self.rank = rank
        self.part_counts.begin_page(len(self.ranks), sentences)

    def end_page(self, verdict: bytes) -> None:
        """The page got this verdict, packed."""
        self.ranks.append(self.rank)
        self.verdicts.append(verdict)

    # What is asked.

    def new_id(self) -> int:
        return self.rank

    def find(self, url: str) -> Record | None:
        self._urls.setdefault(self._hash(url), 0)
        return super().find(url)

    def all_postings(self, keys: Sequence[int], limit: int) -> list[list[int]]:
        self._asked_keys.extend(keys)
        return super().all_postings(keys, limit)

    def postings(self, key: int, limit: int) -> list[int]:
        """Return nothing: only groups are asked for so, and no page replaces the first one of its group."""
        return []

    # What is written.

    def add(self, record: Record, evidence: Evidence | None = None, *, replaces: int = 0, **others: Any) -> None:
        self._write(record, replaces)

    def touch(self, record: Record, *others: Any, renewed: Record | None = None, **more: Any) -> None:
        if renewed is not None and renewed != record:
            self._write(renewed, 0)

    def _write(self, record: Record, replaces: int) -> None:
        changes, id, rank = Changes(), record.id, self.rank
        self.file(record, changes, 0)
        self.apply(changes, sync=False)
        original = record.original if record.original != id else 0
        self._written[rank] = id, original, replaces, changes.puts[layout.record_key(id)]
        if id == rank:
            self._filed_keys.extend(record.keys)
            self._filed_by.extend([rank] * len(record.keys))
        self._urls[self._hash(record.url)] = rank

    def note(self, sentences: Sentences, site: str, *, everywhere: bool = True, page: int | None = None) -> None:
        super().note(sentences, site, everywhere=everywhere)
        self._flag(HERE | EVERYWHERE * everywhere)

    def note_form(self, site: str, *, in_form: bool) -> None:
        super().note_form(site, in_form=in_form)
        self._flag(FORMED | FORM * in_form)

    def _flag(self, flags: int) -> None:
        self._flags[self.rank] = self._flags.get(self.rank, 0) | flags

    def _hash(self, url: str) -> int:
        return layout.last_id(self.url_key(url))

    # The table.

    def rows_of(self, part: int) -> Iterator[pa.Table]:
        """Yield the ROWS of each topic, in the order of their hashes, or else of the pages that wrote them."""
        written, asked = self._written, self._questions.hashes[Topic.KEY]
        ids, originals, replaced, packed = zip(*written.values(), strict=True) if written else ((), (), (), ())
        ranks, of_ranks = np.fromiter(written, np.uint64, len(written)), np.array([*originals, 0], np.uint64)
        filed, by = (np.array(column, np.uint64) for column in (self._filed_keys, self._filed_by))
        asked = sorted_set(np.concatenate((asked, np.array(self._asked_keys, np.uint64))))
        asked = np.setdiff1d(asked, sorted_set(filed), assume_unique=True)
        yield _table(
            part,
            Topic.KEY,
            hash=np.concatenate((filed, asked)),
            source=np.concatenate((by, np.zeros(len(asked), np.uint64))),
            original=np.concatenate((of_ranks[np.searchsorted(ranks, by)], np.zeros(len(asked), np.uint64))),
        )
        urls, by = (np.fromiter(column, np.uint64, len(self._urls)) for column in (self._urls, self._urls.values()))
        originals_of_urls = np.where(by > 0, of_ranks[np.searchsorted(ranks, by)], 0)
        yield _table(part, Topic.URL, hash=urls, source=by, original=originals_of_urls)
        for topic, counts in self.part_counts.by_topic():
            hashes, added = counts.added(np.subtract if topic is Topic.COUNT else np.bitwise_xor)
            yield _table(part, topic, hash=hashes, count=added)
        records = {"hash": ids, "source": ranks, "original": originals, "count": replaced, "payload": packed}
        yield _table(part, Topic.RECORD, **records)
        flags = [self._flags.get(rank, 0) for rank in self.ranks]
        yield _table(part, Topic.VERDICT, source=np.array(self.ranks), count=flags, payload=self.verdicts)


def mere_questions(part: int, hashes: Mapping[Topic, Hashes]) -> pa.Table:
    """Return the ROWS of a part that asks for these hashes and leaves nothing behind."""
    return pa.concat_tables([_table(part, topic, hash=some) for topic, some in hashes.items()])


def _table(part: int, topic: Topic, **columns: Any) -> pa.Table:
    """Return ROWS of one topic with these columns, and nothing in the others. All hashes are asked for."""
    length = len(next(iter(columns.values())))
    zeros = np.zeros(length, np.uint64)
    values: dict[str, Any] = {
        **dict.fromkeys(("hash", "source", "original", "count"), zeros),
        "kind": np.full(length, int(topic)),
        "part": np.full(length, part),
        "asked": np.ones(length, bool),
        "payload": pa.nulls(length, pa.binary()),
        **columns,
    }
    rows = pa.table([pa.array(values[field.name], field.type) for field in ROWS], ROWS)
    return rows.take(pa.array(np.argsort(values["hash"], kind="stable"))) if topic in ASKED else rows


# Judging.


def judge_part(
    options: BatchOptions, part: int, pages: Iterable[pa.RecordBatch], given: pa.Table, questions: PartQuestions
) -> Iterator[pa.Table]:
    """Judge the pages of a part, and return what they ask and leave behind, as ROWS of each topic.

    ``pages``: PAGES in the order of their ranks. ``given``: GIVEN rows for this part, in any order. ``questions``: of
    these pages.
    """
    method = options.make_method()
    store = PartStore(method, options, given, questions)
    policy = replace(options.config.make_policy(), keep=Keep.NOTHING)
    detector = Detector(method, store, who="batch", policy=policy)
    for batch in pages:
        for stored in stored_pages(batch):
            made = stored.fingerprint
            store.begin_page(stored.rank, made.sentences if made is not None else None)
            store.end_page(pack_verdict(_judge(detector, stored)))
    return store.rows_of(part)


def _judge(detector: Detector, stored: StoredPage) -> Verdict:
    page = stored.page
    if stored.failed:
        return Verdict(Kind.UNJUDGED, page.url, reason=stored.failed)  # type: ignore[arg-type]  # as it was stored
    prepared = StoredFingerprint(stored.fingerprint) if stored.fingerprint is not None else None
    try:
        return detector.judge_now(page, sealed=False, prepared=prepared)
    except Exception:  # one page must not end the part
        logger.exception("%s could not be judged. This is a bug; please report it with the traceback.", page.url)
        return Verdict(Kind.UNJUDGED, page.url, reason="method_failed")


@dataclass(frozen=True, slots=True)
class StoredFingerprint:
    """A fingerprint made before boilerplate was known. It is used if no sentence of it is boilerplate now."""

    fingerprint: Fingerprint

    def verified(self, page: Page, counts: SiteCounts, method: Method) -> Fingerprint:
        """See ``detector.PreparedFingerprint``."""
        made = self.fingerprint
        if counts.is_common(made.sentences).any():
            return method.for_state(page, counts)
        title = _LateTitle(page, counts, method)
        return Fingerprint(
            made.keys, made.sketch, made.sentences, own=made.own, site=counts, title=title, quoted=made.quoted
        )


class _LateTitle:
    """``Fingerprint.title``, made at the first access: most pages are compared with none."""

    def __init__(self, *about: Any) -> None:
        self._about = about

    @cached_property
    def _title(self) -> Any:
        page, counts, method = self._about
        return method.for_state(page, counts).title

    def __getattr__(self, name: str) -> Any:
        return getattr(self._title, name)


# Verdicts, as rows hold them.


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
