"""The state of one part of an archive: it begins with given rows, and notes what is asked and written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from scrapy_neardup.batch.pages import BatchOptions, StoredPage
from scrapy_neardup.batch.tables import ROWS, Topic
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.memory import Memory
from scrapy_neardup.methods import Method
from scrapy_neardup.model import NO_SENTENCES
from scrapy_neardup.state.boilerplate import ALL_PAGES, COMMON_BITS, COMMON_HERE, number_of_site, site_bit
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.exact_counts import ExactCounts, numbers_on_site, numbers_on_sites
from scrapy_neardup.state.layout import last_id
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.sentence_counts import Sentences

N = TypeVar("N", np.uint16, np.bool_)
#: A call of a method of ``PartStore`` or its counts: name and arguments.
Call = tuple[str, tuple[Any, ...]]
#: A question, and its answer.
Question = tuple[Call, Any]
#: Flags in ``count`` of a verdict's row: the sentences of the page count for its site, and everywhere; the page counts
#: among the forms of its site or the others, and it is a form.
HERE, EVERYWHERE, FORMED, FORM = 1, 2, 4, 8


class AskedCounts(ExactCounts):
    """Exact counts that note all that is asked: each number, with 0 for an unknown one, and each question.

    ``hash_sentences`` takes those of many pages together, in a tenth of the time. In questions None stands
    for the sentences of the page itself.
    """

    def __init__(self, hashes: Keyed) -> None:
        super().__init__()
        self._hashes = hashes
        self.questions: list[Question] = []
        self._own: Sentences | None = None
        self._own_numbers: list[int] = []
        self._prepared: dict[int, tuple[Sentences, list[int]]] = {}

    def hash_sentences(self, pages: Sequence[StoredPage]) -> None:
        """Hash the sentences of the next pages."""
        made = [(one.rank, one.page.site, one.fingerprint.sentences) for one in pages if one.fingerprint is not None]
        lengths = [len(sentences) for _, _, sentences in made]
        sites = np.array([number_of_site(site, self._hashes) for _, site, _ in made], np.uint64)
        joined = np.concatenate([NO_SENTENCES, *(sentences for _, _, sentences in made)])
        numbers, end = numbers_on_sites(joined, np.repeat(sites, lengths), self._hashes), 0
        self._prepared.clear()
        for (rank, _, sentences), length in zip(made, lengths, strict=True):
            self._prepared[rank] = sentences, numbers[end : end + length]
            end += length

    def begin_page(self, rank: int, questions: list[Question]) -> None:
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
        self._flags: dict[int, int] = {}
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
        self.questions: list[Question] = []
        self.effects: list[Call] = []
        self._counts.begin_page(rank, self.questions)

    def hash_sentences(self, pages: Sequence[StoredPage]) -> None:
        """Hash the sentences of the next pages together, which takes less time."""
        self._counts.hash_sentences(pages)

    def ask_again(self, questions: Sequence[Question]) -> bool:
        """Ask the questions again, note them, and return whether all answers are the same."""
        return all(self._ask(*call) == answer for call, answer in questions)

    def _ask(self, name: str, arguments: tuple[Any, ...]) -> Any:
        return (getattr(self, name, None) or partial(self._counts.ask, name))(*arguments)

    def repeat(self, effects: Iterable[Call]) -> None:
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
        self._flags[self.rank] = self._flags.get(self.rank, 0) | flags

    def _hash(self, url: str) -> int:
        return last_id(self._rows.url_key(url))

    # The table.

    def rows_of(self, part: int) -> pa.Table:
        """Return ROWS."""
        written = self._written
        originals = {rank: one.original * (one.original != one.id) for rank, (one, _) in written.items()}
        filed = [(key, rank) for rank, (one, _) in written.items() if one.id == rank for key in one.keys]
        asked = set().union(*self._keys).difference(key for key, _ in filed)
        urls, verdicts = self._urls, self.verdicts
        tables = [
            _table(
                Topic.RECORD,
                hash=[one.id for one, _ in written.values()],
                source=[*written],
                original=[*originals.values()],
                count=[replaces for _, replaces in written.values()],
                payload=[one.pack() for one, _ in written.values()],
            ),
            _table(
                Topic.KEY,
                hash=[*(key for key, _ in filed), *asked],
                source=[*(rank for _, rank in filed), *(0 for _ in asked)],
                original=[*(originals[rank] for _, rank in filed), *(0 for _ in asked)],
            ),
            _table(
                Topic.URL,
                hash=[*urls],
                source=[*urls.values()],
                original=[originals.get(rank, 0) for rank in urls.values()],
            ),
            _table(
                Topic.VERDICT,
                source=[*verdicts],
                count=[self._flags.get(rank, 0) for rank in verdicts],
                payload=[*verdicts.values()],
            ),
            _count_table(Topic.COUNT, self._counts.numbers, self._given[0], np.subtract),
            _count_table(Topic.BITS, self._counts.bits, self._given[1], np.bitwise_xor),
        ]
        rows = pa.concat_tables(tables)
        return rows.set_column(ROWS.get_field_index("part"), "part", pa.array(np.full(len(rows), part, np.uint32)))


def _count_table(topic: Topic, known: Mapping[int, int], given: Mapping[int, int], less: np.ufunc) -> pa.Table:
    """Return what a part adds to the counts that it was given."""
    hashes, counts = (np.fromiter(values, np.uint64, len(known)) for values in (known, known.values()))
    if given:
        counts = less(counts, np.fromiter((given.get(one, 0) for one in known), np.uint64, len(known)))
    return _table(topic, hash=hashes, count=counts)


def _table(topic: Topic, **columns: Any) -> pa.Table:
    """Return ROWS of one kind with these columns, and nothing in the others. All hashes are asked for."""
    length = len(next(iter(columns.values())))
    columns |= {"kind": [int(topic)] * length, "asked": [True] * length}
    zeros = {name: [0] * length for name in ("hash", "part", "source", "original", "count")}
    values = {**zeros, "payload": [None] * length, **columns}
    return pa.table([pa.array(values[field.name], field.type) for field in ROWS], ROWS)
