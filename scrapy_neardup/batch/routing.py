"""Route what parts leave behind to the later parts that ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from scrapy_neardup.batch.runs import ArchivePart
from scrapy_neardup.state.exact_counts import MOST


class Topic(IntEnum):
    """What a row of ``ROWS`` or ``GIVEN`` is about."""

    #: A page is filed under a key (``hash``).
    KEY = 1
    #: A record is the newest of a URL (``hash``).
    URL = 2
    #: ``count`` pages are counted under a number (``hash``).
    COUNT = 3
    #: Publishers with a sentence (``hash``), as bits of ``count``.
    BITS = 4
    #: ``payload`` is a record, and ``source`` the rank of the page that wrote it.
    RECORD = 5
    #: ``payload`` is the verdict on the page ``source``.
    VERDICT = 6


#: What the pages of a part ask and leave behind. Parts are numbered in the order of their ranks. ``asked``: whether a
#: page of the part asks for this hash. ``source``: the rank of the page that wrote it, 0 for a mere question;
#: ``original``: the rank of that page's original, if it is another one. See ``Topic``.
ROWS = pa.schema(
    [
        ("kind", pa.uint8()),
        ("hash", pa.uint64()),
        ("part", pa.uint32()),
        ("source", pa.uint64()),
        ("original", pa.uint64()),
        ("count", pa.uint64()),
        ("asked", pa.bool_()),
        ("payload", pa.binary()),
    ]
)

#: What a part is given: ``COUNT`` and ``BITS`` of all parts before it, and ``RECORD``; before ``attach`` also ``KEY``
#: and ``URL``, which name records. ``part`` is the part that gets the row.
GIVEN = pa.schema([field for field in ROWS if field.name != "asked"])

#: The records that parts need: ``part`` needs what the page ``source`` wrote.
NEEDED = pa.schema([("part", pa.uint32()), ("source", pa.uint64())])

#: What parts ask for, by hash.
ASKED = (Topic.KEY, Topic.URL, Topic.COUNT, Topic.BITS)

_Numbers = npt.NDArray[np.uint64]
_Indices = npt.NDArray[np.intp]


def answer(rows: pa.Table, common: int) -> pa.Table:
    """Answer what parts ask: GIVEN rows, in which records are only named.

    ``rows``: ROWS of ``KEY``, ``URL``, ``COUNT`` and ``BITS`` in any order, with all rows of each hash in it.
    ``common``: see ``Method.common``.
    """
    return pa.concat_tables(_answer(rows, kind, common) for kind in (*_NAMING, Topic.COUNT, Topic.BITS))


#: Kinds of rows that name records.
_NAMING = (Topic.KEY, Topic.URL)


def _answer(rows: pa.Table, kind: Topic, common: int) -> pa.Table:
    rows = rows.filter(pc.equal(rows["kind"], int(kind)))
    asked = rows.filter(rows["asked"]).select(["hash", "part"]).group_by(["hash", "part"]).aggregate([])
    has_content = pc.greater(rows["source" if kind in _NAMING else "count"], 0)
    left = rows.filter(has_content).sort_by([("hash", "ascending"), ("part", "ascending"), ("source", "ascending")])
    if not asked.num_rows or not left.num_rows:
        return GIVEN.empty_table()
    hashes, parts = _numbers(left, "hash"), _numbers(left, "part")
    asked_hashes, asked_parts = _numbers(asked, "hash"), _numbers(asked, "part")
    low = np.searchsorted(hashes, asked_hashes)
    high = low + _earlier(hashes, parts, asked_hashes, asked_parts, low)
    known = high > low
    low, high, asked_hashes, asked_parts = low[known], high[known], asked_hashes[known], asked_parts[known]
    if kind is Topic.KEY:
        high = np.minimum(high, low + common)
        lengths = high - low
        named = np.repeat(low - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        return _given(kind, np.repeat(asked_hashes, lengths), np.repeat(asked_parts, lengths), left.take(named))
    if kind is Topic.URL:
        return _given(kind, asked_hashes, asked_parts, left.take(high - 1))
    counts = _reduce(np.add if kind is Topic.COUNT else np.bitwise_or, _numbers(left, "count"), low, high)
    if (
        kind is Topic.COUNT
    ):  # else a sentence of every page would differ in every round, and no part would stay as it is
        counts = np.where(asked_hashes & np.uint64(1), counts, np.minimum(counts, np.uint64(MOST)))
    return _given(kind, asked_hashes, asked_parts, None, counts)


def _earlier(hashes: _Numbers, parts: _Numbers, asked: _Numbers, by: _Numbers, low: _Indices) -> _Indices:
    """Return how many rows of each asked hash come from parts before the asking one.

    Rows are sorted by hash and part. Hash and part are too long for one number, so hashes are numbered first.
    """
    different = np.unique(hashes)
    sorted_by = (np.searchsorted(different, hashes).astype(np.uint64) << np.uint64(32)) | parts
    place = np.searchsorted(different, asked)
    found = different[np.minimum(place, len(different) - 1)] == asked
    wanted = (place.astype(np.uint64) << np.uint64(32)) | by
    return np.where(found, np.searchsorted(sorted_by, wanted) - low, 0)


def _reduce(ufunc: np.ufunc, values: _Numbers, low: _Indices, high: _Indices) -> _Numbers:
    """Return the reduction of each range of values; no range is empty."""
    ends = np.column_stack((low, high)).ravel()
    padded = np.append(values, np.uint64(0))  # a range may end where the values do
    reduced: _Numbers = ufunc.reduceat(padded, ends)[::2] if len(ends) else values[:0]
    return reduced


def _given(kind: Topic, hashes: _Numbers, parts: _Numbers, named: pa.Table | None, counts: Any = None) -> pa.Table:
    zeros = np.zeros(len(hashes), np.uint64)
    return pa.table(
        [
            pa.array(np.full(len(hashes), int(kind), np.uint8)),
            pa.array(hashes),
            pa.array(parts.astype(np.uint32)),
            pa.array(zeros) if named is None else named["source"],
            pa.array(zeros) if named is None else named["original"],
            pa.array(zeros if counts is None else counts),
            pa.nulls(len(hashes), pa.binary()),
        ],
        GIVEN,
    )


def needed_records(given: pa.Table) -> pa.Table:
    """Return the records that ``answer`` names, and their originals, as NEEDED, each once."""
    originals = given.filter(pc.greater(given["original"], 0)).select(["part", "original"])
    pairs = pa.concat_tables([given.select(["part", "source"]), originals.rename_columns(NEEDED.names)])
    return pairs.filter(pc.greater(pairs["source"], 0)).group_by(NEEDED.names).aggregate([]).cast(NEEDED)


def source_parts(needed: pa.Table, parts: Sequence[ArchivePart]) -> _Indices:
    """Return the numbers of the parts that hold the NEEDED records."""
    firsts = np.array([part.first for part in parts], np.uint64)
    numbers: _Indices = np.searchsorted(firsts, needed["source"].to_numpy(), "right") - 1
    return numbers


def counts_of(given: pa.Table) -> pa.Table:
    """Return the GIVEN rows that name no records."""
    return given.filter(pc.is_in(given["kind"], pa.array([Topic.COUNT, Topic.BITS], pa.uint8())))


def attach(records: pa.Table, needed: pa.Table) -> pa.Table:
    """Return those of the ``records`` (ROWS of ``RECORD``) that are needed, as GIVEN rows."""
    joined = needed.join(records.select(["source", "hash", "payload"]), "source", join_type="inner")
    count = joined.num_rows
    zeros = pa.array(np.zeros(count, np.uint64))
    kinds = pa.array(np.full(count, int(Topic.RECORD), np.uint8))
    return pa.table([kinds, joined["hash"], joined["part"], joined["source"], zeros, zeros, joined["payload"]], GIVEN)


def _numbers(table: pa.Table, name: str) -> _Numbers:
    found: _Numbers = table[name].to_numpy().astype(np.uint64)
    return found
