"""Run the stages on Spark, with the results of ``local`` byte for byte.

All executors must reach the folder of the run under the same name. Pages, their texts and their records stay in its
files. One task reads or judges one part. Spark shuffles only ROWS: in each round first the questions and results of all
parts, by hash, then the answers, by part. Ranks, never ids of Spark, say which page comes first. So partitions,
executors and repeated tasks change no result.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from scrapy_neardup.batch.local import LocalRunner, judge_if_new
from scrapy_neardup.batch.pages import read_stretch
from scrapy_neardup.batch.part import PartPages
from scrapy_neardup.batch.rows import ASKED, ROWS, Topic, answer, make_rows
from scrapy_neardup.batch.runs import ArchivePart, BatchOptions
from scrapy_neardup.errors import NearDupError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Batches = Iterator[pa.RecordBatch]
#: ROWS as Spark describes them.
_TYPE = "topic tinyint, part int, hash bigint, value bigint, original bigint"


class SparkRunner(LocalRunner):
    """Completes a run in tasks of Spark. The session is the active one, or a new one."""

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


# What tasks do.


def _load(options: BatchOptions, parts: Sequence[ArchivePart], numbers: _Batches) -> _Batches:
    """Yield the rows of parts; before a part is judged, it only asks."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            part = parts[number]
            yield from make_rows(Topic.PART, number, np.array([number])).to_batches()
            if part.rows.exists():
                yield from part.rows_of(*ASKED).to_batches()
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
