"""What a part leaves under the hashes that later parts ask for, as rows of numbers; and columns of tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from scrapy_neardup.batch.counts import Hashes


class Topic(IntEnum):
    """The subject of a row, and the number of its batch in a file of ROWS."""

    #: A page is filed under a key.
    KEY = 0
    #: A page is the newest at a URL.
    URL = 1
    #: So many pages of a site have a sentence.
    COUNT = 2
    #: These publishers have a sentence, as bits.
    BITS = 3
    #: So many pages of a site were compared with its forms, or are forms.
    FORM = 4


#: In ``value`` the rank of a page (in ``original`` the rank of its original, if it is a copy), a count, or bits.
ROWS = pa.schema([("hash", pa.uint64()), ("value", pa.int64()), ("original", pa.int64())])

Numbers = npt.NDArray[np.int64]
#: The hashes that a part asks for, of each topic in ascending order.
Asked = Mapping[Topic, Hashes]


class HashRows(NamedTuple):
    """The columns of ROWS; pages stand in the order of their ranks."""

    hashes: Hashes
    values: Numbers
    originals: Numbers

    def take(self, which: npt.NDArray[Any]) -> HashRows:
        """Return rows by their numbers, or by whether they are wanted."""
        return HashRows(self.hashes[which], self.values[which], self.originals[which])


NO_ROWS = HashRows(np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.int64))
Given = Mapping[Topic, HashRows]


def make_rows(hashes: Hashes, values: npt.NDArray[Any]) -> HashRows:
    """Return rows without originals."""
    return HashRows(hashes, values.astype(np.int64), np.zeros(len(hashes), np.int64))


def join_rows(every: Iterable[HashRows]) -> HashRows:
    """Return rows in a row."""
    return HashRows(*map(np.concatenate, zip(*every, strict=True)))


def answer(topic: Topic, rows: HashRows, common: int) -> HashRows:
    """Return the answers to questions about hashes; ``common``: see ``Method.common``.

    ``rows``: all rows that earlier parts left under these, in the order of the parts.
    """
    order = np.argsort(rows.hashes, kind="stable")
    rows = rows.take(order)
    begins = np.flatnonzero(_is_first(rows.hashes))
    ends = np.append(begins[1:], len(order))[: len(begins)]
    if topic > Topic.URL:
        ufunc = np.bitwise_or if topic is Topic.BITS else np.add
        return make_rows(rows.hashes[begins], ufunc.reduceat(rows.values, begins) if len(begins) else rows.values)
    # Later pages are not filed under a common key.
    is_left = np.arange(len(order)) - np.repeat(begins, ends - begins) < common
    kept = ends - 1 if topic is Topic.URL else np.flatnonzero(is_left)
    return rows.take(kept)


def is_among(values: npt.NDArray[Any], known: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which values are among ``known`` ones in ascending order."""
    if not len(known):
        return np.zeros(len(values), bool)
    found: npt.NDArray[np.bool_] = known[np.minimum(np.searchsorted(known, values), len(known) - 1)] == values
    return found


def sorted_set(hashes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the different hashes in order; faster than ``numpy.unique``."""
    hashes = np.sort(hashes)
    found: npt.NDArray[Any] = hashes[_is_first(hashes)]
    return found


def _is_first(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which values differ from the one before."""
    return np.append(True, values[1:] != values[:-1])[: len(values)]


# ``pa.array``, ``to_numpy`` and comparisons of Arrow would import pandas, which takes a third of a second.


def numbers(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    """Return a column of numbers that has no null."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    number = column.type.to_pandas_dtype()
    if not len(column):
        return np.zeros(0, number)
    return np.frombuffer(column.buffers()[1], number)[column.offset : column.offset + len(column)]


def make_column(values: Sequence[Any] | npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    """Return a column of bytes, strings, numbers, or lists of these. Lone surrogates are escaped."""
    if pa.types.is_list(kind):
        inner = kind.value_type
        if pa.types.is_primitive(inner):
            number = inner.to_pandas_dtype()
            flat: Any = np.concatenate([np.zeros(0, number), *(np.array(one, number) for one in values)])
        else:
            flat = [*chain.from_iterable(values)]
        return pa.ListArray.from_arrays(make_column(_ends(values), pa.int32()), make_column(flat, inner))
    if isinstance(values, np.ndarray):
        packed = np.ascontiguousarray(values, kind.to_pandas_dtype())
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(packed)])
    is_known = np.array([one is not None for one in values], bool)
    buffers = [pa.py_buffer(np.packbits(is_known, bitorder="little"))]
    if pa.types.is_string(kind):
        values = [one and one.encode("utf-8", "backslashreplace") for one in values]
    if pa.types.is_primitive(kind):
        buffers.append(pa.py_buffer(np.array([one or 0 for one in values], kind.to_pandas_dtype())))
    else:
        buffers += [pa.py_buffer(_ends([one or b"" for one in values])), pa.py_buffer(b"".join(filter(None, values)))]
    return pa.Array.from_buffers(kind, len(values), buffers)


def _ends(values: Iterable[Any]) -> npt.NDArray[np.int32]:
    """Return where the first value begins, and where each one ends."""
    return np.cumsum([0, *map(len, values)], dtype=np.int32)


def make_batch(columns: Iterable[Any], schema: pa.Schema) -> pa.RecordBatch:
    """Return columns of values as a batch."""
    made = [make_column(one, field.type) for one, field in zip(columns, schema, strict=True)]
    return pa.record_batch(made, schema)
