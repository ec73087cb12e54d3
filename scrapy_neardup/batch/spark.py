"""Run the stages on Spark, with the results of ``local`` byte for byte.

The folder of the run must be one that all executors reach, under the same name. Pages, with their texts, stay in its
files. Each part is read and judged by one task. Only small rows are shuffled: in each round what parts ask and leave
behind, by hash; then the records that parts need, by the part that has them; then what parts are given, by part. Ranks,
never ids of Spark, say which page comes first. So partitions, executors and repeated tasks change no result.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from scrapy_neardup.batch.local import LocalRunner, asked_rows, judge_if_new, read_stretch, rows_of
from scrapy_neardup.batch.pages import BatchOptions
from scrapy_neardup.batch.routing import (
    GIVEN,
    NEEDED,
    ROWS,
    Topic,
    answer,
    attach,
    counts_of,
    needed_records,
    source_parts,
)
from scrapy_neardup.batch.runs import ArchivePart
from scrapy_neardup.errors import NearDupError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Batches = Iterator[pa.RecordBatch]
#: A row of GIVEN that names a needed record: ``part`` has it, and the part ``count`` needs it.
_NEEDED = 0
#: A row of GIVEN that says nothing, so that every part is judged.
_NOTHING = 255
#: Spark has no unsigned numbers, so the same bits travel as signed ones.
_SIGNED = {pa.uint8(): pa.int8(), pa.uint32(): pa.int32(), pa.uint64(): pa.int64()}


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
        session, options = self._session, self._run.options
        given_type, flags = _spark_type(GIVEN), "part int, judged boolean"
        number, own_number, first = len(parts), len(own), own[0].number
        rows = session.range(0, number, 1, number).mapInArrow(partial(_load, options, parts), _spark_type(ROWS))
        named = rows.repartition(number, "hash").mapInArrow(
            partial(_answer, parts, options.make_method().common), given_type
        )
        named = named.persist()
        try:
            needed = named.filter(f"kind = {_NEEDED}").repartitionById(number, "part")
            records = needed.mapInArrow(partial(_attach, parts), given_type)
            every = session.range(0, own_number, 1, 1).mapInArrow(partial(_name_parts, first), given_type)
            given = named.filter(f"kind != {_NEEDED}").union(records).union(every)
            given = given.repartitionById(own_number, _minus(first))
            judged = given.mapInArrow(partial(_judge, options, parts), flags).collect()
        finally:
            named.unpersist()
        return sum(row.judged for row in judged)


def _minus(first: int) -> Any:
    from pyspark.sql.functions import col

    return col("part") - first


def _spark_type(schema: pa.Schema) -> str:
    """Return the columns of a table as Spark describes them."""
    names = {
        pa.int8(): "tinyint",
        pa.int32(): "int",
        pa.int64(): "bigint",
        pa.bool_(): "boolean",
        pa.binary(): "binary",
    }
    return ", ".join(f"{field.name} {names[_SIGNED.get(field.type, field.type)]}" for field in schema)


def _to_spark(table: pa.Table) -> _Batches:
    """Yield a table with signed numbers."""
    for batch in table.to_batches():
        columns = [column.view(_SIGNED.get(column.type, column.type)) for column in batch.columns]
        yield pa.record_batch(columns, batch.schema.names)


def _from_spark(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Return the batches of a task as a table with this schema."""
    found = []
    for batch in batches:
        columns = [
            batch.column(field.name).cast(_SIGNED.get(field.type, field.type)).view(field.type) for field in schema
        ]
        found.append(pa.record_batch(columns, schema))
    return pa.Table.from_batches(found, schema)


def _by_part(batches: _Batches) -> Iterator[tuple[int, pa.Table]]:
    """Yield each part with its GIVEN rows."""
    table = _from_spark(batches, GIVEN)
    numbers = table["part"].to_numpy()
    for part in np.unique(numbers).tolist():
        yield part, table.filter(numbers == part)


# What tasks do.


def _load(options: BatchOptions, parts: Sequence[ArchivePart], numbers: _Batches) -> _Batches:
    """Yield what parts ask and leave behind."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield from _to_spark(asked_rows(options, parts[number]))


def _answer(parts: Sequence[ArchivePart], common: int, rows: _Batches) -> _Batches:
    """Answer what is asked by some hashes: yield counts, and which records are needed."""
    given = answer(_from_spark(rows, ROWS), common)
    yield from _to_spark(counts_of(given))
    needed = needed_records(given)
    count = len(needed)
    zeros = pa.array(np.zeros(count, np.uint64))
    kinds = pa.array(np.full(count, _NEEDED, np.uint8))
    owners = pa.array(source_parts(needed, parts).astype(np.uint32))
    asking = needed["part"].cast(pa.uint64())
    columns = [kinds, zeros, owners, needed["source"], zeros, asking, pa.nulls(count, pa.binary())]
    yield from _to_spark(pa.table(columns, GIVEN))


def _attach(parts: Sequence[ArchivePart], rows: _Batches) -> _Batches:
    """Yield the needed records."""
    for owner, table in _by_part(rows):
        needed = pa.table([table["count"].cast(pa.uint32()), table["source"]], NEEDED)
        needed = needed.group_by(NEEDED.names).aggregate([])
        yield from _to_spark(attach(rows_of(parts[owner], Topic.RECORD), needed))


def _name_parts(first: int, numbers: _Batches) -> _Batches:
    for batch in numbers:
        parts = batch.column(0).to_numpy().astype(np.uint32) + np.uint32(first)
        zeros = np.zeros(len(parts), np.uint64)
        kinds = np.full(len(parts), _NOTHING, np.uint8)
        columns = [*map(pa.array, (kinds, zeros, parts, zeros, zeros, zeros)), pa.nulls(len(parts), pa.binary())]
        yield from _to_spark(pa.table(columns, GIVEN))


def _judge(options: BatchOptions, parts: Sequence[ArchivePart], rows: _Batches) -> _Batches:
    """Judge parts by what they are given; yield each with whether it was judged."""
    for number, given in _by_part(rows):
        part, has_content = parts[number], pc.not_equal(given["kind"], _NOTHING)
        judged = judge_if_new(options, part, given.filter(has_content))
        yield pa.record_batch([pa.array([number], pa.int32()), pa.array([judged])], ["part", "judged"])
