"""Tables of Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from scrapy_neardup.inputs.entry import Entry, InputRecord
from scrapy_neardup.inputs.guard import guarded, library_errors
from scrapy_neardup.inputs.header import require_distinct
from scrapy_neardup.inputs.optional import library
from scrapy_neardup.inputs.packed import seekable
from scrapy_neardup.inputs.plain import plain

#: Rows that are in memory at once, and bytes of a column that are.
_ROWS, _BYTES = 64, 1 << 20


def read_parquet(file: BinaryIO, source: str) -> Iterator[InputRecord]:
    """Every row by its number from 1; raises NearDupError where the file is broken.

    Dates and times are strings in ISO 8601; of nanoseconds, microseconds are left. Bytes are text where they are UTF-8,
    as some programs do not mark their strings as such.
    """
    parquet = library("pyarrow.parquet", "parquet", f"{source}: Parquet")
    with seekable(file) as whole:
        with library_errors(source, "row"):
            table = parquet.ParquetFile(whole, buffer_size=_BYTES, pre_buffer=False)
        with table:
            require_distinct(table.schema_arrow.names, source)
            for number, row in enumerate(guarded(_rows(table), source, "row"), 1):
                yield Entry(source, number, "row", row)


def _rows(table: Any) -> Iterator[dict[str, Any]]:
    # By group, so that no batch takes rows of a sound group down with a broken one; threads would read ahead in memory.
    for group in range(table.num_row_groups):
        for batch in table.iter_batches(_ROWS, row_groups=[group], use_threads=False):
            columns = [_coarser(column).to_pylist() for column in batch.columns]
            for values in zip(*columns, strict=True):
                yield {name: plain(value) for name, value in zip(batch.schema.names, values, strict=True)}


def _coarser(column: Any) -> Any:
    """Times in microseconds, which are all that Python's have."""
    arrow = library("pyarrow", "parquet", "Parquet")
    kind = column.type
    if arrow.types.is_timestamp(kind) and kind.unit == "ns":
        return column.cast(arrow.timestamp("us", kind.tz), safe=False)
    return column
