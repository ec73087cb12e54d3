"""The questions and results of parts as rows of numbers, and the answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from scrapy_neardup.state.boilerplate import COMMON_HERE

T = TypeVar("T", bound=np.generic)


class Topic(IntEnum):
    """The subject of a row."""

    PART = 0  #: There is a part. Spark needs such rows to judge every part.
    KEY = 1  #: A page is filed under a key.
    URL = 2  #: A page is the newest at a URL.
    COUNT = 3  #: So many pages of a site have a sentence.
    BITS = 4  #: These publishers have a sentence, as bits.
    FORM = 5  #: So many pages of a site were compared with its forms, or are forms.


#: The topics of questions and answers.
TOPICS = (Topic.KEY, Topic.URL, Topic.COUNT, Topic.BITS, Topic.FORM)

#: The pages of a part ask for a hash, and leave something under it: in ``value`` the rank of a page (in ``original``
#: the rank of its original, if it is a copy), a count, or bits. 0 is nothing. Parts are numbered in the order of their
#: ranks. An answer has the same columns: ``value`` comes from all earlier parts, and ``part`` gets it.
ROWS = pa.schema(
    [("topic", pa.int8()), ("part", pa.int32()), ("hash", pa.uint64()), ("value", pa.int64()), ("original", pa.int64())]
)

Numbers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
#: Packed records with their ids.
Records = Iterable[tuple[int, bytes]]
#: The hashes that a part asks for, of each topic in ascending order.
Questions = Mapping[Topic, Hashes]


def numbers(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    """Return a column of numbers that has no null."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    found: npt.NDArray[Any] = column.to_numpy()
    return found


def make_table(columns: Iterable[Any], schema: pa.Schema) -> pa.Table:
    """Return a table of columns of values; see ``make_column``."""
    return pa.table([make_column(one, field.type) for one, field in zip(columns, schema, strict=True)], schema)


def make_column(values: Any, kind: pa.DataType) -> pa.Array:
    """Return a column of values. Lone surrogates are escaped; in a column of bytes they stay."""
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        if pa.types.is_binary(kind):
            return pa.array([one.encode("utf-8", "surrogatepass") for one in values], kind)
        return pa.array(map(_escape, values), kind)


def _escape(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return value and [*map(_escape, value)]


def sorted_set(values: npt.NDArray[T]) -> npt.NDArray[T]:
    """Return the different values in order; faster than ``numpy.unique``."""
    values = np.sort(values)
    return values[_is_first(values)]


def make_rows(topic: Topic, parts: int | Numbers, hashes: Hashes, values: Any = 0, originals: Any = 0) -> pa.Table:
    """Return ROWS of one topic; a number is a column that holds only it."""
    return make_table((np.broadcast_to(one, len(hashes)) for one in (topic, parts, hashes, values, originals)), ROWS)


def rows_on(topic: Topic, rows: pa.Table) -> pa.Table:
    """Return the rows of one topic."""
    return rows.filter(pa.array(numbers(rows["topic"]) == topic))


def answers_on(topic: Topic, answers: pa.Table) -> tuple[Hashes, npt.NDArray[np.uint32]]:
    """Return the hashes and values of answers."""
    rows = rows_on(topic, answers)
    return numbers(rows["hash"]), numbers(rows["value"]).astype(np.uint32)


def distinct(rows: pa.Table) -> pa.Table:
    """Return the different answers to one part, in order."""
    columns = [numbers(rows[name]) for name in ("value", "hash", "topic")]
    order = np.lexsort(columns)
    is_new = np.logical_or.reduce([_is_first(column[order]) for column in columns])
    return rows.take(pa.array(order[is_new])).combine_chunks()


class HashSet:
    """Hashes in ascending order, to be found among many others. Most others fail at a table of first bits."""

    def __init__(self, hashes: Hashes) -> None:
        self._hashes, bits = hashes, len(hashes).bit_length() + 3
        # Keys have 40 bits, and sentences 32.
        self._shift, self._table = np.uint64(max(0, int(hashes[-1]).bit_length() - bits)), np.zeros(1 << bits, bool)
        self._table[hashes >> self._shift] = True

    def rows_in(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows with one of these hashes."""
        hashes = numbers(rows["hash"])
        places = np.flatnonzero(self._table.take((hashes >> self._shift).view(np.int64), mode="clip"))
        return rows.take(pa.array(places[is_among(hashes[places], self._hashes)]))


def is_among(values: npt.NDArray[Any], known: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which values are among ``known`` ones in ascending order."""
    if not len(known):
        return np.zeros(len(values), bool)
    found: npt.NDArray[np.bool_] = known[np.minimum(np.searchsorted(known, values), len(known) - 1)] == values
    return found


def answer(topic: Topic, rows: pa.Table, common: int, first: int) -> pa.Table:
    """Answer what the part ``first`` and later ones ask on a topic, as ROWS.

    ``rows``: all rows of some hashes, in any order. ``common``: see ``Method.common``.
    """
    rows = rows.sort_by([(name, "ascending") for name in ("hash", "part", "value")])
    hashes, parts, values = (numbers(rows[name]) for name in ("hash", "part", "value"))
    is_new = _is_first(hashes)
    asking = np.flatnonzero((is_new | _is_first(parts)) & (parts >= first))
    # The rows of a hash that earlier parts left stand before the first row of the asking part.
    begins = np.flatnonzero(is_new)[np.cumsum(is_new) - 1] if len(rows) else asking
    is_left = values != 0
    left, left_before = np.flatnonzero(is_left), np.append(0, np.cumsum(is_left))
    low, high = left_before[begins[asking]], left_before[asking]
    asking, low, high = (one[high > low] for one in (asking, low, high))
    if topic is Topic.URL:
        low = high - 1
    elif topic is Topic.KEY:
        high = np.minimum(high, low + common)
    else:
        ufunc = np.bitwise_or if topic is Topic.BITS else np.add
        ends = np.column_stack((low, high)).ravel()
        totals = ufunc.reduceat(np.append(values[left], 0), ends)[::2] if len(ends) else values[:0]
        if topic is Topic.COUNT:
            # Pages ask for no more. Else the count of a sentence of every page differs in every round.
            totals = np.minimum(totals, COMMON_HERE)
        return make_rows(topic, parts[asking], hashes[asking], totals)
    lengths = high - low
    named = left[np.repeat(low - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())]
    asking = np.repeat(asking, lengths)
    return make_rows(topic, parts[asking], hashes[asking], values[named], numbers(rows["original"])[named])


def _is_first(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which values differ from the one before."""
    found = np.ones(len(values), bool)
    found[1:] = values[1:] != values[:-1]
    return found


def named_ranks(answers: pa.Table) -> Numbers:
    """Return the ranks of the pages that answers name, and of their originals."""
    answers = answers.filter(pa.array(numbers(answers["topic"]) <= Topic.URL))
    ranks = sorted_set(np.concatenate((numbers(answers["value"]), numbers(answers["original"]))))
    return ranks[ranks > 0]
