"""Complete a run: on this machine, or on Spark with the same results byte for byte.

The rows of a part hold the digest of the answers that it got. So a run may hold any mixture of old and new files, and a
killed run goes on where it was.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from functools import partial
from hashlib import blake2b
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from scrapy_neardup.batch.pages import read_stretch
from scrapy_neardup.batch.part import PartPages, judge_part
from scrapy_neardup.batch.rows import (
    ASKED,
    ROWS,
    Asked,
    Topic,
    answer,
    answer_on,
    distinct,
    is_among,
    leave_pandas_out,
    make_rows,
    matching,
    named_ranks,
    numbers,
)
from scrapy_neardup.batch.runs import ArchivePart, BatchOptions, BatchRun, count_pages
from scrapy_neardup.errors import NearDupError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: How readers start. A fork of this process, which has threads, could wait for ever. So a server is forked, which has
#: imported all, and reads nothing.
_CONTEXT = get_context("forkserver" if sys.platform == "linux" else "spawn")
if sys.platform == "linux":
    _CONTEXT.set_forkserver_preload([__name__, "scrapy.cmdline"])  # readers import the program of the command, too
#: Bytes that a process takes, and bytes for each page of a part that it judges.
_PROCESS, _PAGE = 200_000_000, 7_000
#: Pages of a part, at least.
_LEAST_PAGES = 1000


def plan(memory: int, processes: int, *, on_spark: bool) -> tuple[int, int]:
    """Return how many processes can read within so many bytes, and how many pages a part then has.

    On this machine one process more judges, and waits for the readers while they are slower. On Spark all of them judge
    at once. Raises NearDupError if the memory is too little.
    """
    judges = processes if on_spark else 1
    least = judges * (_PROCESS + _LEAST_PAGES * _PAGE) if on_spark else 3 * _PROCESS
    if memory < least:
        cure = f" for {processes} processes. Set fewer NEARDUP_WORKERS, or give" if on_spark else ". Give"
        raise NearDupError(f"--memory is too little{cure} {-(-least // 10**6)}MB or more.")
    readers = processes if on_spark else max(1, min(processes, memory // _PROCESS - 2))
    free = memory if on_spark else memory - readers * _PROCESS
    return readers, (free // judges - _PROCESS) // _PAGE


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
        leave_pandas_out()
        run, pages = self._run, 0
        earlier = [*(run.previous.parts if run.previous else ())]
        with closing(self._files()) as files:
            for part in run.group(files):
                self._judge(part, earlier)
                earlier.append(part)
                pages += sum(map(count_pages, part.files))
                self._inform(f"{pages:,} pages judged")

    def _files(self) -> Generator[Path]:
        """Yield the files of pages in their order. Each comes when it is written."""
        run = self._run
        with ProcessPoolExecutor(self._readers, _CONTEXT, _begin_reader) as pool:
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


def _begin_reader() -> None:
    """Let this reader run where the process that judges, which is alone, leaves a core free; and end with it.

    A killed run cannot end its readers, and these would wait for work for ever.
    """
    leave_pandas_out()
    if sys.platform != "win32":
        os.nice(5)
    Thread(target=_end_with, args=(parent_process(),), daemon=True).start()


def _end_with(judge: Any) -> None:
    judge.join()
    os._exit(1)


def judge_after(options: BatchOptions, part: ArchivePart, earlier: Sequence[ArchivePart]) -> None:
    """Judge a part; all earlier ones are judged."""
    common, pages = options.make_method().common, None
    if part.rows.exists():  # a killed run judged it, but perhaps without answers to all that its pages asked
        asked = part.asked()
        given = _answers(asked, earlier, common)
    else:
        pages = PartPages(options, part)
        asked = pages.asked
        given = _answers(asked, earlier, common)
        given = pa.concat_tables([given, _answers(pages.asked_of_forms(given), earlier, common)])
    while judge_if_new(options, part, given, earlier, pages):
        before, asked = asked, part.asked()
        others = {topic: hashes[~is_among(hashes, before[topic])] for topic, hashes in asked.items()}
        more = _answers(others, earlier, common)
        if not len(more):
            return
        given = pa.concat_tables([given, more])


def judge_if_new(
    options: BatchOptions,
    part: ArchivePart,
    given: pa.Table,
    parts: Sequence[ArchivePart],
    pages: PartPages | None = None,
) -> bool:
    """Judge a part unless it was judged with the same answers, in any order; return whether it was judged.

    ``parts``: all parts before it.
    """
    given = distinct(given)  # two questions may have one answer
    ranks, firsts = named_ranks(given), [one.first for one in parts]
    places = np.searchsorted(firsts, ranks, "right") - 1
    records = [one for place in np.unique(places) for one in parts[place].records(ranks[places == place])]
    digest = blake2b(digest_size=16)
    for column in given.columns:
        digest.update(numbers(column).data)
    for id, packed in records:
        digest.update(id.to_bytes(8, "big") + packed)
    if part.given() == digest.hexdigest():
        return False
    judged = judge_part(options, part, pages or PartPages(options, part), given, records)
    part.write(digest.hexdigest(), *judged)
    return True


def _answers(asked: Asked, parts: Sequence[ArchivePart], common: int) -> pa.Table:
    """Return the answers of these parts to the questions of the next one."""
    rows = {topic: [make_rows(topic, len(parts), hashes)] for topic, hashes in asked.items()}
    topics = [topic for topic, hashes in asked.items() if len(hashes)]
    for part in parts if topics else ():
        for topic, left in zip(topics, part.rows_of(*topics), strict=True):
            rows[topic].append(matching(left, asked[topic]))
    return pa.concat_tables(
        answer_on(topic, pa.concat_tables(found), common, len(parts)) for topic, found in rows.items()
    )


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
        rows = self._session.range(0, len(parts), 1, len(parts)).mapInArrow(partial(_load, options, parts), _TYPE)
        answers = rows.repartition(len(parts), "hash").mapInArrow(
            partial(_answer, options.make_method().common, first), _TYPE
        )
        given = answers.repartitionById(len(own), col("part") - first)
        judged = given.mapInArrow(partial(_judge, options, parts), "judged boolean").collect()
        return sum(row.judged for row in judged)


def _table(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Return the rows that a task gets as ROWS."""
    return pa.Table.from_batches([pa.record_batch([*batch.columns], ROWS) for batch in batches], ROWS)


def _load(options: BatchOptions, parts: Sequence[ArchivePart], numbers: _Batches) -> _Batches:
    """Yield the rows of parts; before a part is judged, it only asks."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            part = parts[number]
            yield from make_rows(Topic.PART, number, np.array([number])).to_batches()
            if part.rows.exists():
                yield from part.rows_of(*ASKED)
            else:
                for topic, hashes in PartPages(options, part).asked.items():
                    yield from make_rows(topic, number, hashes).to_batches()


def _answer(common: int, first: int, batches: _Batches) -> _Batches:
    """Answer the questions about some hashes."""
    rows = _table(batches)
    yield from rows.filter((pc.field("topic") == Topic.PART) & (pc.field("part") >= first)).to_batches()
    yield from answer(rows, common, first).to_batches()


def _judge(options: BatchOptions, parts: Sequence[ArchivePart], batches: _Batches) -> _Batches:
    """Judge parts by the answers; yield for each whether it was judged."""
    rows = _table(batches)
    for number in pc.unique(rows["part"]).to_pylist():
        given = rows.filter((pc.field("part") == number) & (pc.field("topic") != Topic.PART))
        judged = judge_if_new(options, parts[number], given, parts[:number])
        yield pa.record_batch([pa.array([judged])], ["judged"])
