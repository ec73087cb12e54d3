"""The tables between the stages, as Arrow schemas."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import pyarrow as pa

#: Bits of the number of a record within its input; the bits above number the input, from 1.
RECORD_BITS = 32


def rank_of(input: int, record: int) -> int:
    """Return the rank of a record, which is also its id while parts are judged; inputs count from 1, records from 0.

    >>> rank_of(1, 0) < rank_of(1, 7) < rank_of(2, 0)
    True
    """
    return input << RECORD_BITS | record


def place_of(rank: int) -> tuple[int, int]:
    """Return the number of the input and that of the record in it.

    >>> place_of(rank_of(2, 7))
    (2, 7)
    """
    return rank >> RECORD_BITS, rank & ((1 << RECORD_BITS) - 1)


def record_batch(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows as a batch."""
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.record_batch(
        [pa.array(column, field.type) for field, column in zip(schema, columns, strict=True)], schema
    )


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


#: Pages in the order of their ranks. ``url`` is the name of the record. ``failed``: why no page could be made of it.
#: ``page``: other fields, as JSON, if there are any. ``keys``, ``sketch``, ``sentences``, ``own`` and ``quoted`` are
#: the fingerprint without boilerplate; ``sketch`` is null if there is none. Strings are bytes, as pages may hold halves
#: of surrogate pairs.
PAGES = pa.schema(
    [
        ("rank", pa.uint64()),
        *((name, pa.binary()) for name in ("failed", "url", "reader", "site", "canonical", "text", "page")),
        ("html", pa.uint64()),
        ("keys", pa.list_(pa.uint64())),
        ("sketch", pa.binary()),
        ("sentences", pa.list_(pa.uint32())),
        ("own", pa.int64()),
        ("quoted", pa.int64()),
    ]
)

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
