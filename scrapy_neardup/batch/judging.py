"""Judge the pages of one part, as a small crawl that begins with the rows that it is given."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from scrapy_neardup.batch.pages import BatchOptions, StoredPage, stored_pages
from scrapy_neardup.batch.tables import ROWS, Topic
from scrapy_neardup.errors import AnyReason
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.kv.base import Changes, Row
from scrapy_neardup.kv.memory import Memory
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Kind, Likeness, Match, Page, SiteCounts, Verdict
from scrapy_neardup.state.evidence import Evidence, Keep
from scrapy_neardup.state.exact_counts import ExactCounts
from scrapy_neardup.state.layout import last_id
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.sentence_counts import Sentences
from scrapy_neardup.untrusted import line_logger

logger = line_logger(__name__)
#: Flags in ``count`` of a verdict's row: the sentences of the page count for its site, and everywhere; the page counts
#: among the forms of its site or the others, and it is a form.
HERE, EVERYWHERE, FORMED, FORM = 1, 2, 4, 8


def judge_part(options: BatchOptions, part: int, pages: Iterable[pa.RecordBatch], given: pa.Table) -> pa.Table:
    """Judge the pages of a part, and return what they ask and leave behind.

    ``pages``: PAGES in the order of their ranks. ``given``: GIVEN rows for this part, in any order.
    """
    method = options.make_method()
    store = PartStore(method, options, given)
    policy = replace(options.config.make_policy(), keep=Keep.NOTHING)
    detector = Detector(method, store, who="batch", policy=policy)
    for batch in pages:
        for stored in stored_pages(batch):
            store.rank = stored.rank
            verdict = _judge(detector, stored)
            if verdict.kind is not Kind.UNIQUE or verdict.match is not None:
                store.verdicts[stored.rank] = pack_verdict(verdict)
            else:
                store.verdicts[stored.rank] = b""
    return store.rows_of(part)


def _judge(detector: Detector, stored: StoredPage) -> Verdict:
    page = stored.page
    if stored.failed:
        return Verdict(Kind.UNJUDGED, page.url, reason=stored.failed)  # type: ignore[arg-type]  # as it was stored
    prepared = StoredFingerprint(stored.fingerprint) if stored.fingerprint is not None else None
    try:
        return detector.judge_now(page, sealed=False, prepared=prepared)
    except Exception:  # as ``judge.records.Batch.judge`` does
        logger.exception("%s could not be judged. This is a bug; please report it with the traceback.", page.url)
        return Verdict(Kind.UNJUDGED, page.url, reason="method_failed")


@dataclass(frozen=True)
class StoredFingerprint:
    """A fingerprint made without boilerplate, which counts if none of its sentences is boilerplate."""

    fingerprint: Fingerprint

    def verified(self, page: Page, counts: SiteCounts, method: Method) -> Fingerprint:
        """See ``detector.PreparedFingerprint``."""
        made = self.fingerprint
        if counts.is_common(made.sentences).any():
            return method.for_state(page, counts)
        return replace(made, site=counts, title=_LateTitle(page, counts, method))


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


class AskedCounts(ExactCounts):
    """Exact counts that note all that is asked, with 0 for what is unknown."""

    def get(self, numbers: Iterable[int]) -> list[int]:
        note = self.numbers.setdefault
        return [note(number, 0) for number in numbers]

    def get_bits(self, sentences: Iterable[int]) -> list[int]:
        note = self.bits.setdefault
        return [note(sentence, 0) for sentence in sentences]


class PartStore(PageStore):
    """The state of one part, in memory. It notes what its pages ask and write.

    The id of a page is its rank. Pages are neither sealed nor removed; nobody reads when they were seen.
    """

    def __init__(self, method: Method, options: BatchOptions, given: pa.Table) -> None:
        self._counts = AskedCounts()
        super().__init__(Memory(), method.recipe(), options.secret, 0)
        self.use_exact_counts(self._counts)
        #: The rank of the page that is judged.
        self.rank = 0
        #: The verdicts by rank, packed; empty for a unique page that is like no other.
        self.verdicts: dict[int, bytes] = {}
        self._written: dict[int, tuple[Record, int]] = {}
        self._counted: dict[int, int] = {}
        self._keys: list[Sequence[int]] = []
        self._urls: dict[int, int] = {}
        self._seed(given)

    def _seed(self, given: pa.Table) -> None:
        records = given.filter(pc.equal(given["kind"], int(Topic.RECORD))).sort_by("source")
        for id, packed in zip(records["hash"].to_pylist(), records["payload"].to_pylist(), strict=True):
            changes = Changes()
            self._rows.file(Record.unpack(id, packed), changes, 0)
            self._rows.write(changes, sync=False)
        for topic, known in ((Topic.COUNT, self._counts.numbers), (Topic.BITS, self._counts.bits)):
            rows = given.filter(pc.equal(given["kind"], int(topic)))
            known.update(zip(rows["hash"].to_pylist(), rows["count"].to_pylist(), strict=True))
        self._given = dict(self._counts.numbers), dict(self._counts.bits)

    def begin(self, who: str, job: str = "") -> int:
        return 0

    # What is asked.

    def new_id(self) -> int:
        return self.rank

    def find(self, url: str) -> Record | None:
        self._urls.setdefault(self._hash(url), 0)
        return super().find(url)

    def all_postings(self, keys: Sequence[int], limit: int) -> list[list[int]]:
        self._keys.append(keys)
        return super().all_postings(keys, limit)

    def postings(self, key: int, limit: int) -> list[int]:
        """Return nothing: only groups are asked for so, and no page replaces the first one of its group."""
        return []

    # What is written.

    def add(
        self,
        record: Record,
        evidence: Evidence | None = None,
        *,
        generation: int = 0,
        replaces: int = 0,
        seen: float | None = None,
        copied_from: Collection[Record] = (),
        extra_rows: Collection[Row] = (),
    ) -> None:
        changes = Changes()
        self._rows.file(record, changes, 0)
        self._rows.write(changes, sync=False)
        self._note_record(record, replaces)

    def touch(
        self,
        record: Record,
        seen: float | None = None,
        copied_from: Collection[Record] = (),
        extra_rows: Collection[Row] = (),
        renewed: Record | None = None,
    ) -> None:
        if renewed is not None and renewed != record:
            changes = Changes()
            self._rows.put(renewed, changes)
            self._rows.write(changes, sync=False)
            self._note_record(renewed, 0)

    def note(self, sentences: Sentences, site: str, *, everywhere: bool = True, page: int | None = None) -> None:
        super().note(sentences, site, everywhere=everywhere, page=page)
        self._flag(HERE | EVERYWHERE * everywhere)

    def note_form(self, site: str, *, in_form: bool) -> None:
        super().note_form(site, in_form=in_form)
        self._flag(FORMED | FORM * in_form)

    def _flag(self, flags: int) -> None:
        self._counted[self.rank] = self._counted.get(self.rank, 0) | flags

    def _note_record(self, record: Record, replaces: int) -> None:
        self._written[self.rank] = record, replaces
        self._urls[self._hash(record.url)] = self.rank

    def _hash(self, url: str) -> int:
        return last_id(self._rows.url_key(url))

    # The table.

    def rows_of(self, part: int) -> pa.Table:
        """Return ROWS."""
        tables = [self._record_rows(), self._key_rows(), self._url_rows(), self._verdict_rows()]
        for topic, known, before in zip(
            (Topic.COUNT, Topic.BITS), (self._counts.numbers, self._counts.bits), self._given, strict=True
        ):
            hashes, counts = _numbers(known), _numbers(known.values())
            given = _numbers([before.get(one, 0) for one in known] if before else [0] * len(known))
            counts = counts - given if topic is Topic.COUNT else counts & ~given
            tables.append(_table(topic, len(hashes), hash=hashes, count=counts, asked=True))
        rows = pa.concat_tables(tables)
        return rows.set_column(ROWS.get_field_index("part"), "part", pa.array(np.full(len(rows), part, np.uint32)))

    def _original(self, record: Record) -> int:
        return record.original if record.original != record.id else 0

    def _record_rows(self) -> pa.Table:
        written = self._written
        return _table(
            Topic.RECORD,
            len(written),
            source=_numbers(written),
            hash=_numbers([record.id for record, _ in written.values()]),
            original=_numbers([self._original(record) for record, _ in written.values()]),
            count=_numbers([replaces for _, replaces in written.values()]),
            payload=[record.pack() for record, _ in written.values()],
        )

    def _key_rows(self) -> pa.Table:
        filed = [
            (key, record.id, self._original(record))
            for rank, (record, _) in self._written.items()
            if record.id == rank
            for key in record.keys
        ]
        keys, sources, originals = _numbers(filed).reshape(-1, 3).T
        asked = np.setdiff1d(np.concatenate([_numbers(()), *map(_numbers, self._keys)]), keys)
        nothing = np.zeros(len(asked), np.uint64)
        return _table(
            Topic.KEY,
            len(keys) + len(asked),
            hash=np.concatenate((keys, asked)),
            source=np.concatenate((sources, nothing)),
            original=np.concatenate((originals, nothing)),
            asked=True,
        )

    def _url_rows(self) -> pa.Table:
        sources = [*self._urls.values()]
        originals = [self._original(self._written[rank][0]) if rank else 0 for rank in sources]
        return _table(
            Topic.URL,
            len(sources),
            hash=_numbers(self._urls),
            source=_numbers(sources),
            original=_numbers(originals),
            asked=True,
        )

    def _verdict_rows(self) -> pa.Table:
        verdicts = self.verdicts
        counted = _numbers([self._counted.get(rank, 0) for rank in verdicts])
        return _table(
            Topic.VERDICT, len(verdicts), source=_numbers(verdicts), count=counted, payload=[*verdicts.values()]
        )


def _numbers(values: Any) -> Any:
    return np.array(values if isinstance(values, (list, tuple)) else [*values], np.uint64)


def _table(topic: Topic, length: int, *, asked: bool = False, **columns: Any) -> pa.Table:
    """Return ROWS of one kind with these columns, and nothing in the others."""
    columns |= {"kind": np.full(length, int(topic), np.uint8), "asked": np.full(length, asked)}
    nothing = pa.nulls(length, pa.binary()) if "payload" not in columns else None
    zeros = np.zeros(length, np.uint64)
    values = {"payload": nothing, **columns}
    return pa.table([pa.array(values.get(field.name, zeros)).cast(field.type) for field in ROWS], ROWS)


# Verdicts, as rows hold them.


def pack_verdict(verdict: Verdict) -> bytes:
    """Return a verdict as bytes. The ids in it are ranks."""
    match = verdict.match
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
