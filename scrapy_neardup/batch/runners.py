"""Complete a run: on this machine, or on Spark with the same results byte for byte.

The rows of a part hold the digest of the answers that it got. So a run may hold any mixture of old and new files, and a
killed run goes on where it was.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from itertools import chain
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from scrapy_neardup.batch.judging import find_shared, judge_part
from scrapy_neardup.batch.pages import read_stretch
from scrapy_neardup.batch.part_pages import PartPages
from scrapy_neardup.batch.rows import (
    ROWS,
    TOPICS,
    HashSet,
    Questions,
    Topic,
    answer,
    distinct,
    is_among,
    make_rows,
    named_ranks,
    numbers,
    rows_on,
    sorted_set,
)
from scrapy_neardup.batch.runs import ArchivePart, BatchOptions, BatchRun, Stretch
from scrapy_neardup.errors import NearDupError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: How readers start. A fork of this process, which has threads, could wait for ever. So a server is forked, which has
#: imported all, and reads nothing.
_CONTEXT = get_context("forkserver" if sys.platform == "linux" else "spawn")
if sys.platform == "linux":
    _CONTEXT.set_forkserver_preload([__name__, "scrapy.cmdline"])  # readers also import the program of the command
#: Bytes that a process takes, and bytes for each page of a part that it judges.
_PROCESS, _PAGE = 200_000_000, 9_000
#: Pages of a part, at least.
_LEAST_PAGES = 1000
#: Windows lets a process wait for so many readers. One process that judges does not keep up with more.
_MOST_READERS = 61


def _check_memory(memory: int, least: int, cure: str) -> None:
    if memory < least:
        raise NearDupError(f"--memory is too little. {cure} {-(-least // 10**6)}MB or more.")


class LocalRunner:
    """Completes a run on this machine: one process judges the parts in their order, and others read.

    So most parts are judged once. If the pages of a part ask something unforeseen, and an earlier part knows an answer,
    the part is judged again.
    """

    def __init__(self, run: BatchRun, readers: int, inform: Callable[[str], None] = lambda text: None) -> None:
        """``readers``: processes that read; this one judges. ``inform`` gets sentences on the progress."""
        self._run = run
        self._readers = readers
        self._inform = inform

    @staticmethod
    def plan(memory: int, processes: int) -> tuple[int, int]:
        """Return how many processes can read within so many bytes, and how many pages a part then has.

        One process more judges, and waits for the readers while they are slower. Raises NearDupError if the memory is
        too little.
        """
        _check_memory(memory, 3 * _PROCESS, "Give")
        readers = max(1, min(processes, _MOST_READERS, memory // _PROCESS - 2))
        return readers, (memory - (readers + 1) * _PROCESS) // _PAGE

    def run(self) -> None:
        """Complete the run. Raises NearDupError."""
        run = self._run
        if run.is_complete:
            return
        for name in ("pages", "rows"):
            (run.folder / name).mkdir(exist_ok=True)
            for draft in (run.folder / name).glob(".part.*"):
                draft.unlink(missing_ok=True)  # of a killed run
        self._complete()
        (run.folder / "complete").touch()

    def _complete(self) -> None:
        pa.set_memory_pool(pa.system_memory_pool())  # Arrow's own pool keeps a tenth more memory while parts are judged
        run, pages, finding = self._run, 0, list[Future[None]]()
        earlier = [*(run.previous.parts if run.previous else ())]
        with self._open_pool() as pool:
            try:
                reading = {one: pool.submit(read_stretch, run, one) for one in run.stretches()}
                for part in run.group(self._files(reading)):
                    judge_after(run.options, part, earlier)
                    finding.append(pool.submit(find_shared, run.options, part))  # its turn comes once all is read
                    earlier.append(part)
                    pages += sum(map(len, part.batches(("rank",))))
                    self._inform(f"{pages:,} pages judged")
                for task in finding:
                    task.result()
            except BrokenProcessPool:
                raise NearDupError(
                    "A process of the run was killed, perhaps because memory ran out. Run the command again with a "
                    "lower --memory: it goes on where it was."
                ) from None
            finally:
                pool.shutdown(cancel_futures=True)

    def _open_pool(self) -> Executor:
        return ProcessPoolExecutor(self._readers, _CONTEXT, _begin_reader)

    def _files(self, reading: Mapping[Stretch, Future[int]]) -> Iterator[Path]:
        """Yield the files of pages in their order. Each comes when it is written."""
        for input, name in enumerate(self._run.inputs, self._run.first_input):
            tasks, group, is_read = [task for one, task in reading.items() if one.input == input], 0, False
            while not is_read:
                is_read = all(task.done() for task in tasks)  # asked before: then all files are there
                while (path := self._run.pages_file(input, group)).exists():
                    yield path
                    group += 1
                for task in wait(tasks, 0.05, FIRST_EXCEPTION).done:
                    task.result()
            self._inform(f"{sum(task.result() for task in tasks):,} records of {name} read")


def _begin_reader() -> None:
    """Let this reader run where the one process that judges leaves a core free; and end with it.

    A killed run cannot end its readers, and these would wait for work for ever.
    """
    if sys.platform != "win32":
        os.nice(10)  # by 5, that process had three quarters of a core; by 15, readers had a thirtieth on a busy machine
    Thread(target=_end_with, args=(parent_process(),), daemon=True).start()


def _end_with(judge: Any) -> None:
    judge.join()
    os._exit(1)


def judge_after(options: BatchOptions, part: ArchivePart, earlier: Sequence[ArchivePart]) -> None:
    """Judge a part; all earlier ones are judged."""
    common = options.make_method().common
    # A killed run may have judged it without answers to some of its questions.
    pages = None if part.rows.exists() else PartPages(options, part)
    asked = pages.questions if pages else part.questions()
    answers = _answers(asked, earlier, common)
    if pages:
        answers = pa.concat_tables([answers, _answers(pages.questions_of_forms(answers), earlier, common)])
    while judge_if_new(options, part, answers, earlier, pages):
        before, asked = asked, part.questions()
        others = {topic: hashes[~is_among(hashes, before[topic])] for topic, hashes in asked.items()}
        more = _answers(others, earlier, common)
        if not len(more):
            return
        answers = pa.concat_tables([answers, more])


def judge_if_new(
    options: BatchOptions, part: ArchivePart, answers: pa.Table, parts: Sequence[ArchivePart], pages: PartPages | None
) -> bool:
    """Judge a part unless it was judged with the same answers, in any order; return whether it was judged.

    ``parts``: all parts before it.
    """
    answers = distinct(answers)  # two questions may have one answer
    ranks, firsts = named_ranks(answers), [one.first for one in parts]
    places = np.searchsorted(firsts, ranks, "right") - 1
    records = [one for place in np.unique(places) for one in parts[place].records(ranks[places == place])]
    digest = blake2b(digest_size=16)
    for column in answers.columns:
        digest.update(numbers(column).data)
    for id, packed in records:
        digest.update(id.to_bytes(8, "big") + packed)
    if part.digest() == digest.hexdigest():
        return False
    judged = judge_part(options, part, pages or PartPages(options, part), answers, records)
    part.write(digest.hexdigest(), *judged)
    return True


def _answers(asked: Questions, parts: Sequence[ArchivePart], common: int) -> pa.Table:
    """Return the answers of these parts to the questions of the next one."""
    sets = {topic: HashSet(hashes) for topic, hashes in asked.items() if len(hashes)}
    found = {topic: [ROWS.empty_table()] for topic in asked}
    for part in parts if sets else ():
        for (topic, hashes), left in zip(sets.items(), part.rows_of(*sets), strict=True):
            found[topic].append(pa.Table.from_batches([hashes.rows_in(left)], ROWS))
    answers = list[pa.Table]()
    for topic, tables in found.items():
        left = pa.concat_tables(tables)
        asking = make_rows(topic, len(parts), sorted_set(numbers(left["hash"])))  # the others have no answer
        answers.append(answer(topic, pa.concat_tables([left, asking]), common, len(parts)))
    return pa.concat_tables(answers)


# Spark.

_Batches = Iterator[pa.RecordBatch]
#: ROWS as Spark describes them.
_TYPE = "topic tinyint, part int, hash bigint, value bigint, original bigint"


class SparkRunner(LocalRunner):
    """Completes a run in tasks of Spark. The session is the active one, or a new one.

    All executors must reach the folder of the run under the same name. Pages, their texts and their records stay in its
    files. One task reads or judges one part. Spark shuffles only ROWS: in each round first the questions and results of
    all parts, by hash, then the answers, by part. Ranks, never ids of Spark, say which page comes first. So partitions,
    executors and repeated tasks change no result.
    """

    _session: SparkSession

    @staticmethod
    def plan(memory: int, processes: int) -> tuple[int, int]:
        """Return ``processes``, which read and then judge, and how many pages a part of each then has."""
        cure = f"For {processes} processes set fewer NEARDUP_WORKERS, or give"
        _check_memory(memory, processes * (_PROCESS + _LEAST_PAGES * _PAGE), cure)
        return processes, (memory // processes - _PROCESS) // _PAGE

    def _complete(self) -> None:
        run = self._run
        with self._open():
            reading = run.stretches()
            if reading:
                tasks = self._session.sparkContext.parallelize(reading, len(reading))
                self._inform(f"{tasks.map(partial(read_stretch, run)).sum():,} records read")
            parts, own = run.parts, run.own_parts
            rounds, judged = 0, -1
            while own and judged:
                rounds, judged = rounds + 1, self._round(parts, own)
                self._inform(f"round {rounds}: {judged} of {len(own)} parts judged")
            self._session.sparkContext.parallelize(own, len(own) or 1).foreach(partial(find_shared, run.options))

    @contextmanager
    def _open(self) -> Iterator[None]:
        try:
            from pyspark.errors import PySparkRuntimeError
            from pyspark.sql import SparkSession
        except ImportError:
            raise NearDupError("Spark needs pyspark. Run: pip install 'scrapy-neardup[spark]'") from None
        active = SparkSession.getActiveSession()
        try:
            self._session = active or SparkSession.builder.appName("scrapy-neardup").getOrCreate()
        except PySparkRuntimeError as error:
            raise NearDupError(
                f"Spark does not start: {error}. It needs Java 17 or 21, on Debian: apt install "
                "openjdk-17-jre-headless. Or leave out --runner."
            ) from None
        context = self._session.sparkContext
        if (context.master or "").startswith("local") and "PYSPARK_PYTHON" not in os.environ:
            context.pythonExec = sys.executable  # else the python3 of the PATH, perhaps without this package
        try:
            yield
        finally:
            if active is None:
                self._session.stop()

    def _round(self, parts: Sequence[ArchivePart], own: Sequence[ArchivePart]) -> int:
        from pyspark.sql.functions import col

        options, first = self._run.options, own[0].number
        find = partial(_answer, options.make_method().common, first)
        rows = self._session.range(0, len(parts), 1, len(parts)).mapInArrow(partial(_load, options, parts), _TYPE)
        answers = rows.repartition(len(parts), "hash").mapInArrow(find, _TYPE)
        by_part = answers.repartitionById(len(own), col("part") - first)
        judged = by_part.mapInArrow(partial(_judge_parts, options, parts), "judged boolean").collect()
        return sum(row.judged for row in judged)


def _from_spark(batches: _Batches) -> pa.Table:
    """Return the rows that a task gets as ROWS. Spark has no unsigned numbers."""
    columns = ([one.view(field.type) for one, field in zip(batch, ROWS, strict=True)] for batch in batches)
    return pa.Table.from_batches([pa.record_batch(some, ROWS) for some in columns], ROWS)


def _to_spark(rows: pa.Table | pa.RecordBatch) -> _Batches:
    """Yield ROWS as Spark takes them."""
    for batch in rows.to_batches() if isinstance(rows, pa.Table) else [rows]:
        yield batch.set_column(2, "hash", batch["hash"].view(pa.int64()))


def _load(options: BatchOptions, parts: Sequence[ArchivePart], numbers: _Batches) -> _Batches:
    """Yield the rows of parts; before a part is judged, it only asks."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            part = parts[number]
            yield from _to_spark(make_rows(Topic.PART, number, np.array([number], np.uint64)))
            if part.rows.exists():
                yield from chain.from_iterable(map(_to_spark, part.rows_of(*TOPICS)))
            else:
                for topic, hashes in PartPages(options, part).questions.items():
                    yield from _to_spark(make_rows(topic, number, hashes))


def _answer(common: int, first: int, batches: _Batches) -> _Batches:
    """Answer the questions about some hashes."""
    rows = _from_spark(batches)
    yield from _to_spark(rows.filter((pc.field("topic") == Topic.PART) & (pc.field("part") >= first)))
    for topic in TOPICS:
        yield from _to_spark(answer(topic, rows_on(topic, rows), common, first))


def _judge_parts(options: BatchOptions, parts: Sequence[ArchivePart], batches: _Batches) -> _Batches:
    """Judge parts by the answers; yield for each whether it was judged."""
    rows = _from_spark(batches)
    for number in pc.unique(rows["part"]).to_pylist():
        answers = rows.filter((pc.field("part") == number) & (pc.field("topic") != Topic.PART))
        judged = judge_if_new(options, parts[number], answers, parts[:number], None)
        yield pa.record_batch([pa.array([judged])], ["judged"])
