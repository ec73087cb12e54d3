"""The questions and results of parts as rows of numbers, and the answers."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from scrapy_neardup.batch.counts import MOST


class Topic(IntEnum):
    """The subject of a row."""

    #: There is a part. Spark needs such rows to judge every part.
    PART = 0
    #: A page is filed under a key.
    KEY = 1
    #: A page is the newest at a URL.
    URL = 2
    #: So many pages of a site have a sentence.
    COUNT = 3
    #: These publishers have a sentence, as bits.
    BITS = 4
    #: So many pages of a site were compared with its forms, or are forms.
    FORM = 5


#: The topics of questions.
ASKED = (Topic.KEY, Topic.URL, Topic.COUNT, Topic.BITS, Topic.FORM)

#: The pages of a part ask for a hash, and leave something under it: in ``value`` the rank of a page (in ``original``
#: the rank of its original, if it is a copy), a count, or bits. 0 is nothing. Parts are numbered in the order of their
#: ranks. An answer has the same columns: ``value`` comes from all earlier parts, and ``part`` gets it.
#:
#: Spark has no unsigned numbers. So 64-bit hashes are signed here.
ROWS = pa.schema(
    [
        ("topic", pa.int8()),
        ("part", pa.int32()),
        ("hash", pa.int64()),
        ("value", pa.int64()),
        ("original", pa.int64()),
    ]
)

_Numbers = npt.NDArray[np.int64]
#: The hashes that a part asks for, of each topic in ascending order.
Asked = Mapping[Topic, _Numbers]


def signed(hashes: npt.NDArray[Any]) -> _Numbers:
    """Return hashes as rows hold them."""
    return hashes.astype(np.uint64, copy=False).view(np.int64)


def unsigned(hashes: _Numbers) -> npt.NDArray[np.uint64]:
    """Return the hashes of rows as the rest of the package has them."""
    return hashes.view(np.uint64)


def sorted_set(hashes: _Numbers) -> _Numbers:
    """Return the different hashes in order; faster than ``numpy.unique``."""
    hashes = np.sort(hashes)
    return hashes[_is_first(hashes)]


def make_rows(
    topic: Topic, part: int, hashes: _Numbers, values: _Numbers | None = None, originals: _Numbers | None = None
) -> pa.Table:
    """Return ROWS of one topic and part."""
    nothing = np.zeros(len(hashes), np.int64)
    columns = [np.full(len(hashes), topic), np.full(len(hashes), part), hashes]
    columns += [nothing if values is None else values, nothing if originals is None else originals]
    return pa.table([pa.array(one, field.type) for one, field in zip(columns, ROWS, strict=True)], ROWS)


def matching(rows: pa.Table, asked: _Numbers) -> pa.Table:
    """Return the rows of one topic that have one of these hashes."""
    hashes = rows["hash"].to_numpy()
    if not len(asked):
        return rows.slice(0, 0)
    is_asked = asked[np.minimum(np.searchsorted(asked, hashes), len(asked) - 1)] == hashes
    return rows.filter(pa.array(is_asked))


def answer(rows: pa.Table, common: int, first: int) -> pa.Table:
    """Answer what the part ``first`` and later ones ask, as ROWS.

    ``rows``: all rows of some hashes, in any order. ``common``: see ``Method.common``.
    """
    return pa.concat_tables(
        _answer(rows.filter(pc.equal(rows["topic"], topic)), topic, common, first) for topic in ASKED
    )


def _answer(rows: pa.Table, topic: Topic, common: int, first: int) -> pa.Table:
    rows = rows.sort_by([(name, "ascending") for name in ("hash", "part", "value")])
    hashes, parts, values = (rows[name].to_numpy() for name in ("hash", "part", "value"))
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
            # Else the count of a sentence of every page differs in every round, and no part stays.
            totals = np.minimum(totals, MOST)
        return _rows_of(topic, parts[asking], hashes[asking], totals, np.zeros_like(totals))
    lengths = high - low
    named = left[np.repeat(low - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())]
    asking = np.repeat(asking, lengths)
    return _rows_of(topic, parts[asking], hashes[asking], values[named], rows["original"].to_numpy()[named])


def _rows_of(topic: Topic, *columns: npt.NDArray[Any]) -> pa.Table:
    topics = np.full(len(columns[0]), topic)
    return pa.table([pa.array(one, field.type) for one, field in zip((topics, *columns), ROWS, strict=True)], ROWS)


def _is_first(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which values differ from the one before."""
    found = np.ones(len(values), bool)
    found[1:] = values[1:] != values[:-1]
    return found


def named_ranks(given: pa.Table) -> _Numbers:
    """Return the ranks of the pages that answers name, and of their originals."""
    given = given.filter(pc.less_equal(given["topic"], Topic.URL))
    ranks = sorted_set(np.concatenate((given["value"].to_numpy(), given["original"].to_numpy())))
    return ranks[ranks > 0]
