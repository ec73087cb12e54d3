"""Run the stages on this machine: tables on disk, one process that judges, and others that read.

Parts are judged in their order. So each is given what the parts before it leave in the end, and is judged once. Only if
its pages ask what nobody could foresee, and earlier parts know an answer, it is judged again.

The rows of a part hold the digest of the rows that it was given. So a run may hold any mixture of old and new files,
and a run that was killed goes on where it was.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from hashlib import blake2b
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.batch.pages import PAGES, BatchOptions, InputReader, ReadRecord, place_of, tabulate
from scrapy_neardup.batch.part import Hashes, PartQuestions, judge_part, mere_questions, sorted_set
from scrapy_neardup.batch.routing import (
    ASKED,
    ROWS,
    Topic,
    answer,
    attach,
    counts_of,
    needed_records,
    source_parts,
)
from scrapy_neardup.batch.runs import ArchivePart, BatchRun, Stretch
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files import Malformed, Skipped

_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
#: Bytes that a process takes, and bytes for each page of a part that it judges.
_PROCESS, _PAGE = 200_000_000, 7_000
#: Pages of a part, at least.
_LEAST_PAGES = 1000


def plan(memory: int, readers: int, judges: int = 1) -> tuple[int, int]:
    """Return how many processes can read within so many bytes, and how many pages a part then has.

    ``judges``: how many parts are judged at once. Raises NearDupError if the memory is too little.
    """
    if memory < 3 * _PROCESS:
        raise NearDupError(f"--memory is too little. Give {3 * _PROCESS // 10**6}MB or more.")
    readers = max(1, min(readers, memory // _PROCESS - 2))
    free = memory - readers * _PROCESS
    return readers, max(_LEAST_PAGES, (free // judges - _PROCESS) // _PAGE)


class LocalRunner:
    """Completes a run on this machine."""

    def __init__(self, run: BatchRun, processes: int, inform: Callable[[str], None] = lambda text: None) -> None:
        """``processes``: that read, beside this one, which judges; with one, this one does both. ``inform`` gets
        sentences on the progress.
        """
        self._run = run
        self._processes = processes
        self._inform = inform

    def run(self) -> None:
        """Complete the run. Raises NearDupError."""
        run = self._run
        if run.is_complete:
            return
        for name in ("pages", "rows"):
            (run.folder / name).mkdir(exist_ok=True)
        self._complete()
        (run.folder / "complete").touch()

    def _complete(self) -> None:
        run, pages = self._run, 0
        earlier = [*(run.previous.parts if run.previous else ())]
        with closing(self._files()) as files:
            for part in run.group(files):
                self._judge(part, earlier)
                earlier.append(part)
                pages += sum(pq.read_metadata(file).num_rows for file in part.files)
                self._inform(f"{pages:,} pages judged")

    def _files(self) -> Generator[Path]:
        """Yield the files of pages in their order, each as soon as it was read."""
        run = self._run
        if self._processes == 1:
            for stretch in run.stretches():
                read_stretch(run, stretch)
            yield from sorted(run.folder.glob("pages/[0-9]*.parquet"))
            return
        with ProcessPoolExecutor(self._processes, get_context("spawn")) as pool:
            try:
                reading = {one: pool.submit(read_stretch, run, one) for one in run.stretches()}
                for number in range(run.first_input, run.first_input + len(run.inputs)):
                    yield from self._files_of(number, [task for one, task in reading.items() if one.input == number])
            except BrokenProcessPool:
                raise NearDupError(
                    "A process of the run was killed, perhaps because memory ran out. Run the command again with a "
                    "lower --memory: it goes on where it was."
                ) from None
            finally:
                pool.shutdown(cancel_futures=True)

    def _files_of(self, input: int, reading: Sequence[Future[int]]) -> Iterator[Path]:
        group = 0
        while True:
            is_read = all(task.done() for task in reading)
            path = self._run.pages_file(input, group)
            if path.exists():
                yield path
                group += 1
            elif is_read:
                records = sum(task.result() for task in reading)
                self._inform(f"{records:,} records of {self._run.inputs[input - self._run.first_input]} read")
                return
            else:
                for task in wait(reading, 0.05, FIRST_EXCEPTION).done:
                    task.result()

    def _judge(self, part: ArchivePart, earlier: Sequence[ArchivePart]) -> None:
        judge_after(self._run.options, part, earlier)


# Reading.


def read_stretch(run: BatchRun, stretch: Stretch) -> int:
    """Read every ``run.strides``-th file of pages of an input; return how many records these are."""
    skipped, size, count = Counter[str](), run.records_of_file, 0

    def note(records: Iterable[ReadRecord], malformed: list[Malformed]) -> Iterator[ReadRecord]:
        nonlocal count
        for record in records:
            count += 1
            if isinstance(record.entry, Malformed):
                malformed.append(record.entry)
            elif isinstance(record.entry, Skipped):
                skipped[record.entry.why] += 1
            yield record

    with closing(InputReader(run.options)) as reader:
        records = reader.read(stretch.input, stretch.name, lambda one: one // size % run.strides == stretch.stride)
        for group, members in groupby(records, lambda one: place_of(one.rank)[1] // size):
            malformed = list[Malformed]()
            _write_pages(run.pages_file(stretch.input, group), tabulate(note(members, malformed), run.options))
            _write_rejects(run.pages_file(stretch.input, group).with_suffix(".rejects"), malformed)
    with replace_file(run.marker(stretch)) as draft:
        draft.write_text(json.dumps({"records": count, "skipped": skipped}))
    return count


def _write_pages(path: Path, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a file of pages, even if it has none."""
    plain = {"use_dictionary": False, "write_statistics": False}  # texts differ, and nobody looks for one
    with replace_file(path) as draft, pq.ParquetWriter(draft, PAGES, compression="zstd", **plain) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_rejects(path: Path, malformed: Sequence[Malformed]) -> None:
    if malformed:
        with replace_file(path) as draft, draft.open("w", encoding="utf-8") as file:
            for one in malformed:
                file.write(json.dumps([one.source, one.number, one.unit, one.why, one.raw.hex()]) + "\n")


def skipped_records(run: BatchRun) -> Counter[str]:
    """Return how many records of archives are no pages, by reason."""
    markers = (json.loads(file.read_text()) for file in run.folder.glob("pages/[0-9]*.json"))
    return sum((Counter(marker["skipped"]) for marker in markers), Counter[str]())


def malformed_records(run: BatchRun) -> Iterator[Malformed]:
    """Return the malformed records in the order of the inputs."""
    for file in sorted(run.folder.glob("pages/[0-9]*.rejects")):
        for line in file.read_text(encoding="utf-8").splitlines():
            source, number, unit, why, raw = json.loads(line)
            yield Malformed(source, number, unit, why, bytes.fromhex(raw))


# Judging.


def judge_after(options: BatchOptions, part: ArchivePart, earlier: Sequence[ArchivePart]) -> None:
    """Judge a part; all earlier ones are judged."""
    common, questions = options.make_method().common, None
    if part.rows.exists():  # if nothing has changed, its pages are not read again
        asked = _asked_hashes(part)
        given = _answer(asked, earlier, common)
    else:
        questions = questions_of(options, part)
        asked = questions.hashes
        given = _answer(asked, earlier, common)
        given = pa.concat_tables([given, _answer(questions.of_forms(given), earlier, common)])
    while judge_if_new(options, part, given, questions):
        asked, before = _asked_hashes(part), asked
        others = {topic: np.setdiff1d(asked[topic], before[topic], assume_unique=True) for topic in ASKED}
        if not len(_answer(others, earlier, common)):
            return
        given = _answer(asked, earlier, common)


def questions_of(options: BatchOptions, part: ArchivePart) -> PartQuestions:
    """Return what the pages of a part ask before they are judged."""
    return PartQuestions(options.make_method().hashes, part.batches(PartQuestions.COLUMNS))


def judge_if_new(
    options: BatchOptions, part: ArchivePart, given: pa.Table, questions: PartQuestions | None = None
) -> bool:
    """Judge a part unless it was judged with the same GIVEN rows, in any order; return whether it was judged."""
    given = given.sort_by([(name, "ascending") for name in ("kind", "hash", "source")]).combine_chunks()
    digest = _digest(given)
    if part.rows.exists() and _digest_of(part.rows) == digest:
        return False
    tables = judge_part(options, part.number, part.batches(), given, questions or questions_of(options, part))
    schema = ROWS.with_metadata({"given": digest})
    with replace_file(part.rows) as draft, pa.ipc.new_file(str(draft), schema, options=_COMPRESSED) as writer:
        for table in tables:
            (batch,) = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], ROWS)]
            writer.write_batch(batch.replace_schema_metadata(schema.metadata))
    return True


def _digest(given: pa.Table) -> str:
    digest = blake2b(digest_size=16)
    for column in given.columns:
        for value in column.chunks:
            for buffer in value.buffers():
                digest.update(buffer or b"")
    return digest.hexdigest()


def _digest_of(rows: Path) -> str:
    with pa.memory_map(str(rows)) as file:
        found: bytes = pa.ipc.open_file(file).schema.metadata[b"given"]
        return found.decode()


def rows_of(part: ArchivePart, *topics: Topic) -> pa.Table:
    """Return what a part left behind, as ROWS of these kinds."""
    with pa.OSFile(str(part.rows)) as file:
        reader = pa.ipc.open_file(file)
        batches = [reader.get_batch(topic - 1).replace_schema_metadata(None) for topic in topics]
    return pa.Table.from_batches(batches, ROWS)


def asked_rows(options: BatchOptions, part: ArchivePart) -> pa.Table:
    """Return what a part asks and leaves behind, as ROWS without records and verdicts; before it is judged, it asks."""
    if part.rows.exists():
        return rows_of(part, *ASKED)
    return mere_questions(part.number, questions_of(options, part).hashes)


def _asked_hashes(part: ArchivePart) -> dict[Topic, Hashes]:
    return {topic: sorted_set(rows_of(part, topic)["hash"].to_numpy()) for topic in ASKED}


def _answer(asked: Mapping[Topic, Hashes], parts: Sequence[ArchivePart], common: int) -> pa.Table:
    """Return what these parts leave behind for the hashes that the next part asks for, as GIVEN."""
    rows = [ROWS.empty_table()]
    for topic, hashes in asked.items():
        left = [_matching(rows_of(part, topic), hashes) for part in parts] if len(hashes) else []
        known = [np.zeros(0, np.uint64), *(one["hash"].to_numpy() for one in left)]
        rows += [*left, mere_questions(len(parts), {topic: sorted_set(np.concatenate(known))})]
    given = answer(pa.concat_tables(rows), common)
    needed = needed_records(given)
    sources = source_parts(needed, parts)
    records = [attach(rows_of(parts[one], Topic.RECORD), needed.filter(sources == one)) for one in np.unique(sources)]
    return pa.concat_tables([counts_of(given), *records])


def _matching(rows: pa.Table, asked: Hashes) -> pa.Table:
    """Return the rows for one of these hashes, as those that ask nothing; both are sorted."""
    hashes = rows["hash"].to_numpy()
    is_asked = asked[np.minimum(np.searchsorted(asked, hashes), len(asked) - 1)] == hashes
    rows = rows.take(pa.array(np.flatnonzero(is_asked)))
    return rows.set_column(ROWS.get_field_index("asked"), "asked", pa.array(np.zeros(len(rows), bool)))
