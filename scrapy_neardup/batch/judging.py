"""Judge the pages of one part, as a small crawl that begins with the rows that it is given."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from scrapy_neardup.batch.pages import BatchOptions, StoredPage, stored_pages
from scrapy_neardup.batch.tables import ROWS, Topic
from scrapy_neardup.errors import AnyReason
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.memory import Memory
from scrapy_neardup.methods import Method
from scrapy_neardup.model import NO_SENTENCES, Fingerprint, Kind, Likeness, Match, Page, SiteCounts, Verdict
from scrapy_neardup.state.boilerplate import ALL_PAGES, COMMON_BITS, COMMON_HERE, number_of_site, site_bit
from scrapy_neardup.state.evidence import Evidence, Keep
from scrapy_neardup.state.exact_counts import ExactCounts, numbers_on_site
from scrapy_neardup.state.layout import last_id
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.sentence_counts import Sentences
from scrapy_neardup.untrusted import line_logger

N = TypeVar("N", np.uint16, np.bool_)
logger = line_logger(__name__)
#: Flags in ``count`` of a verdict's row: the sentences of the page count for its site, and everywhere; the page counts
#: among the forms of its site or the others, and it is a form.
HERE, EVERYWHERE, FORMED, FORM = 1, 2, 4, 8


def judge_part(
    options: BatchOptions,
    part: int,
    pages: Iterable[pa.RecordBatch],
    given: pa.Table,
    memory: dict[int, KnownJudgement] | None = None,
) -> pa.Table:
    """Judge the pages of a part, and return what they ask and leave behind.

    ``pages``: PAGES in the order of their ranks. ``given``: GIVEN rows for this part, in any order. ``memory``: what an
    earlier round judged, by rank, to be repeated where all answers are still the same. It is brought up to date.
    """
    method = options.make_method()
    store = PartStore(method, options, given)
    policy = replace(options.config.make_policy(), keep=Keep.NOTHING)
    detector = Detector(method, store, who="batch", policy=policy)
    memory = {} if memory is None else memory
    for batch in pages:
        some = list(stored_pages(batch))
        store.prepare(some)
        for stored in some:
            store.begin_page(stored.rank)
            known = memory.pop(stored.rank, None)
            if known is not None and store.answers_alike(known.questions):
                store.repeat(known.effects)
            else:
                known = KnownJudgement(pack_verdict(_judge(detector, stored)), store.questions, store.effects)
            if known.has_candidates:
                memory[stored.rank] = known
            store.verdicts[stored.rank] = known.verdict
    return store.rows_of(part)


#: A call of a method of ``PartStore`` or its counts: name and arguments.
_Call = tuple[str, tuple[Any, ...]]
#: A question, and its answer.
_Question = tuple[_Call, Any]


@dataclass(frozen=True, slots=True)
class KnownJudgement:
    """The verdict on a page, all that was asked for it with the answers, and what was written.

    It stays true while the answers do.
    """

    verdict: bytes
    questions: list[_Question]
    effects: list[_Call]

    @property
    def has_candidates(self) -> bool:
        """Whether earlier pages were compared, which takes most of the time."""
        return any(call[0] == "records_of" for call, _ in self.questions)


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


@dataclass(frozen=True, slots=True)
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
    """Exact counts that note all that is asked: each number, with 0 for an unknown one, and each question.

    ``prepare`` hashes the sentences of many pages together, which takes a tenth of the time. In questions None stands
    for the sentences of the page itself.
    """

    def __init__(self, hashes: Keyed) -> None:
        super().__init__()
        self._hashes = hashes
        self.questions: list[_Question] = []
        self._own: Sentences | None = None
        self._own_numbers: list[int] = []
        self._prepared: dict[int, tuple[Sentences, list[int]]] = {}

    def prepare(self, pages: Sequence[StoredPage]) -> None:
        """The next pages are these."""
        made = [(one.rank, one.page.site, one.fingerprint.sentences) for one in pages if one.fingerprint is not None]
        lengths = [len(sentences) for _, _, sentences in made]
        sites = np.repeat([np.uint64(number_of_site(site, self._hashes)) for _, site, _ in made], lengths)
        joined = np.concatenate([NO_SENTENCES, *(sentences for _, _, sentences in made)])
        numbers, end = self._hashes.numbers(joined.astype(np.uint64) ^ sites.astype(np.uint64)).tolist(), 0
        self._prepared.clear()
        for (rank, _, sentences), length in zip(made, lengths, strict=True):
            self._prepared[rank] = sentences, numbers[end : end + length]
            end += length

    def begin_page(self, rank: int, questions: list[_Question]) -> None:
        """The page that is judged has this rank; note its questions in this list."""
        self.questions = questions
        self._own, self._own_numbers = self._prepared.get(rank, (None, []))

    def get(self, numbers: Iterable[int]) -> list[int]:
        note = self.numbers.setdefault
        return [note(number, 0) for number in numbers]

    def get_bits(self, sentences: Iterable[int]) -> list[int]:
        note = self.bits.setdefault
        return [note(sentence, 0) for sentence in sentences]

    def note(
        self, sentences: Sentences, site: str, hashes: Keyed, *, everywhere: bool, page: int | None = None
    ) -> bool:
        if sentences is not self._own:
            return super().note(sentences, site, hashes, everywhere=everywhere)
        self.add({*self._own_numbers, _all_pages(site, hashes)})
        if everywhere:
            self.add_bits(sentences.tolist(), 1 << site_bit(site, hashes))
        return True

    def stood_on(self, sentences: Sentences, site: str, hashes: Keyed) -> npt.NDArray[np.uint16]:
        return self._note(super().stood_on(sentences, site, hashes), "stood_on", sentences, site)

    def is_own(self, sentences: Sentences, site: str, hashes: Keyed) -> npt.NDArray[np.bool_]:
        return self._note(super().stood_on(sentences, site, hashes) >= COMMON_HERE, "is_own", sentences, site)

    def is_common(self, sentences: Sentences, site: str, hashes: Keyed) -> npt.NDArray[np.bool_]:
        if sentences is self._own and len(sentences):
            here, bits = self.get(self._own_numbers), self.get_bits(sentences.tolist())
            is_any = max(here) >= COMMON_HERE or max(map(int.bit_count, bits)) >= COMMON_BITS
        else:
            is_any = True
        if is_any:
            common = super().stood_on(sentences, site, hashes) >= COMMON_HERE
            common |= self.is_common_everywhere(sentences)
        else:
            common = np.zeros(len(sentences), np.bool_)
        return self._note(common, "is_common", sentences, site)

    def share_of_forms(self, site: str, hashes: Keyed) -> float:
        share = super().share_of_forms(site, hashes)
        self.questions.append((("share_of_forms", (site,)), share))
        return share

    def _note(self, answer: npt.NDArray[N], name: str, sentences: Sentences, site: str) -> npt.NDArray[N]:
        self.questions.append(((name, (self.noted(sentences), site)), answer.tobytes()))
        return answer

    def noted(self, sentences: Sentences) -> Sentences | None:
        """Return sentences as questions have them: None for those of the page."""
        return None if sentences is self._own else sentences

    def own(self, noted: Sentences | None) -> Sentences:
        """Return the sentences that ``noted`` returned."""
        return noted if noted is not None else NO_SENTENCES if self._own is None else self._own

    def ask(self, name: str, *arguments: Any) -> Any:
        """Ask a question that was noted."""
        if name == "share_of_forms":
            return self.share_of_forms(arguments[0], self._hashes)
        answer = getattr(self, name)(self.own(arguments[0]), arguments[1], self._hashes)
        return answer.tobytes()


@lru_cache(maxsize=10_000)
def _all_pages(site: str, hashes: Keyed) -> int:
    """Return the number that counts the pages of a site."""
    return numbers_on_site(ALL_PAGES, site, hashes)[0]


class PartStore(PageStore):
    """The state of one part, in memory. It notes what its pages ask and write.

    The id of a page is its rank. Pages are neither sealed nor removed; nobody reads when they were seen.
    """

    def __init__(self, method: Method, options: BatchOptions, given: pa.Table) -> None:
        self._counts = AskedCounts(method.hashes)
        super().__init__(Memory(), method.recipe(), options.secret, 0)
        self.use_exact_counts(self._counts)
        self.begin_page(0)
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

    def begin_page(self, rank: int) -> None:
        """The next page to be judged has this rank."""
        self.rank = rank
        self.questions: list[_Question] = []
        self.effects: list[_Call] = []
        self._counts.begin_page(rank, self.questions)

    def prepare(self, pages: Sequence[StoredPage]) -> None:
        """The next pages are these."""
        self._counts.prepare(pages)

    def answers_alike(self, questions: Sequence[_Question]) -> bool:
        """Whether all questions have the same answers now."""
        return all(self._ask(*call) == answer for call, answer in questions)

    def _ask(self, name: str, arguments: tuple[Any, ...]) -> Any:
        return (getattr(self, name, None) or partial(self._counts.ask, name))(*arguments)

    def repeat(self, effects: Iterable[_Call]) -> None:
        """Write what a page wrote when it was judged."""
        for name, arguments in effects:
            getattr(self, name)(*arguments)

    # What is asked.

    def new_id(self) -> int:
        return self.rank

    def find(self, url: str) -> Record | None:
        self._urls.setdefault(self._hash(url), 0)
        found = super().find(url)
        self.questions.append((("find", (url,)), found))
        return found

    def record(self, id: int) -> Record | None:
        found = super().record(id)
        self.questions.append((("record", (id,)), found))
        return found

    def records_of(self, ids: Sequence[int]) -> list[Record | None]:
        found = super().records_of(ids)
        self.questions.append((("records_of", (ids,)), found))
        return found

    def all_postings(self, keys: Sequence[int], limit: int) -> list[list[int]]:
        self._keys.append(keys)
        found = super().all_postings(keys, limit)
        self.questions.append((("all_postings", (keys, limit)), found))
        return found

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
        changes = Changes()
        self._rows.file(record, changes, 0)
        self._rows.write(changes, sync=False)
        self._written[self.rank] = record, replaces
        self._urls[self._hash(record.url)] = self.rank
        self.effects.append(("_write", (record, replaces)))

    def note(self, sentences: Sentences, site: str, *, everywhere: bool = True, page: int | None = None) -> None:
        self._count(sentences, site, everywhere)

    def _count(self, sentences: Sentences | None, site: str, everywhere: bool) -> None:
        counted = self._counts.own(sentences)
        super().note(counted, site, everywhere=everywhere)
        self._flag(HERE | EVERYWHERE * everywhere)
        self.effects.append(("_count", (self._counts.noted(counted), site, everywhere)))

    def note_form(self, site: str, *, in_form: bool) -> None:
        self._count_form(site, in_form)

    def _count_form(self, site: str, in_form: bool) -> None:
        super().note_form(site, in_form=in_form)
        self._flag(FORMED | FORM * in_form)
        self.effects.append(("_count_form", (site, in_form)))

    def _flag(self, flags: int) -> None:
        self._counted[self.rank] = self._counted.get(self.rank, 0) | flags

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
    """Return a verdict as bytes, none for a unique page like no other. The ids in it are ranks."""
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
