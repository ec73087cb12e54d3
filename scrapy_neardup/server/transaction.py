"""Synchronous code on the rows of a server, without waiting for it.

The code runs in a transaction. If a row is missing there, it is fetched, and the code starts again.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from scrapy_neardup.errors import StoreError
from scrapy_neardup.hashing.keys import pack_keys
from scrapy_neardup.kv.base import Changes, Row
from scrapy_neardup.server.program import Program
from scrapy_neardup.state import layout
from scrapy_neardup.state.boilerplate import Sentences

#: Tries of a write, if others always write first.
TRIES = 200
#: First letters of the rows on which writes depend.
READ_SET = b"ujm"


class OvertakenError(Exception):
    """Others have changed what a write depends on."""


def overtaken_too_often(location: str) -> StoreError:
    """Return the error after ``TRIES`` writes that others came before."""
    return StoreError(
        f"{TRIES} writes to the state at {location} failed, because others wrote first. Try again. If that does not "
        "help, check whether another program writes to the keys of this state."
    )


def newest_of(members: Iterable[bytes], limit: int) -> dict[bytes, list[int]]:
    """Return the newest ids, up to ``limit``, by key, from the postings of several keys and levels."""
    found: dict[bytes, list[int]] = {}
    for member in members:
        found.setdefault(member[:-8], []).append(layout.last_id(member))
    return {key: sorted(ids, reverse=True)[:limit] for key, ids in found.items()}


class NotFetched(BaseException):
    """Code asked for a row that was not fetched. Not an Exception: a handler would take it for a bad page."""

    def __init__(self, rows: Sequence[bytes] = (), postings: Sequence[tuple[int, int]] = (), scan: bytes = b"") -> None:
        super().__init__(rows, postings, scan)
        self.rows, self.postings, self.scan = rows, postings, scan


class Note(NamedTuple):
    """The sentences of one page of a site; ``everywhere``: count them for all sites. ``page``: its number, or None.

    Without sentences it says whether a page of the site is made from a template: see ``note_form``.
    """

    sentences: Sentences | None
    site: str
    everywhere: bool
    page: int | None = None


def pack_notes(crawler: bytes, notes: Sequence[Note]) -> bytes:
    """Return one entry of the stream: ``crawler`` (8 bytes), which counts the notes itself, and the notes as JSON."""
    packed = (None if one is None else b64encode(one.astype("<u4", copy=False).tobytes()).decode() for one, *_ in notes)
    return crawler + json.dumps([(one, *note[1:]) for one, note in zip(packed, notes, strict=True)]).encode()


def unpack_notes(entry: bytes) -> list[Note]:
    """Return what ``pack_notes`` packed; raises ValueError for anything else."""

    def unpack(sentences: str | None, *more: Any) -> Note:
        return Note(None if sentences is None else np.frombuffer(b64decode(sentences), "<u4").astype(np.uint32), *more)

    try:
        return [unpack(*note) for note in json.loads(entry[8:])]
    except TypeError as error:
        raise ValueError(str(error)) from None


@dataclass(slots=True)
class RemoteTransaction:
    """The rows that were fetched for one page, and the changes by its judgement.

    Synchronous code judges by it and never waits. If a row is missing, NotFetched ends the code, the row is fetched,
    and the code starts again: it has no effect outside this transaction.
    """

    #: Rows by key; None: there is no such row.
    rows: dict[bytes, bytes | None] = field(default_factory=dict)
    #: Ids by key and limit, newest first.
    filed: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    scans: dict[bytes, list[Row]] = field(default_factory=dict)
    #: The rows read on which the write depends.
    read_set: dict[bytes, bytes | None] = field(default_factory=dict)
    changes: Changes = field(default_factory=Changes)
    #: Sentences to count once the changes are written.
    notes: list[Note] = field(default_factory=list)

    def row(self, key: bytes) -> bytes | None:
        """Return the value of a row; raises NotFetched."""
        if key in self.changes.deletes:
            return None
        if key in self.changes.puts:
            return self.changes.puts[key]
        try:
            value = self.rows[key]
        except KeyError:
            raise NotFetched(rows=(key,)) from None
        if key[0] in READ_SET:
            self.read_set[key] = value
        return value

    def scan(self, prefix: bytes, *, reverse: bool) -> Iterator[Row]:
        """Yield the rows that begin with ``prefix``, without the changes; raises NotFetched."""
        if prefix not in self.scans:
            raise NotFetched(scan=prefix)
        return reversed(self.scans[prefix]) if reverse else iter(self.scans[prefix])

    def postings(self, keys: Sequence[int], limit: int) -> list[list[int]]:
        """Return the newest ids, up to ``limit``, that are filed under each key; raises NotFetched."""
        if missing := [(key, limit) for key in keys if (key, limit) not in self.filed]:
            raise NotFetched(postings=missing)
        return [self.filed[key, limit] for key in keys]

    def write(self, changes: Changes) -> None:
        if not (self.changes.puts or self.changes.deletes or self.changes.sights):
            self.changes = changes
            return
        for key in changes.deletes:
            self.changes.delete(key)
        for key, value in changes.puts.items():
            self.changes.put(key, value)
        self.changes.sights.update(changes.sights)

    def restart(self) -> None:
        """Discard what the code wrote: it starts again."""
        self.read_set.clear()
        self.notes.clear()
        if self.changes.puts or self.changes.deletes or self.changes.sights:
            self.changes = Changes()

    def discard_read_set(self) -> None:
        """Discard the rows on which the write depended as well: others have changed them."""
        for row in self.read_set:
            self.rows.pop(row, None)
        self.restart()

    def add_reads(
        self, program: Program, rows: Iterable[bytes] = (), postings: Iterable[tuple[int, int]] = ()
    ) -> Callable[[Iterator[Any]], None]:
        """Have a program read the missing rows. Return the function that takes its answers."""
        new_rows = [row for row in dict.fromkeys(rows) if row not in self.rows]
        by_limit: dict[int, list[int]] = {}
        for key, limit in dict.fromkeys(postings):
            if (key, limit) not in self.filed:
                by_limit.setdefault(limit, []).append(key)
        packed = {limit: pack_keys(keys) for limit, keys in by_limit.items()}
        for row in new_rows:
            program.get(row)
        for limit, some in packed.items():
            program.newest(b"".join(some), limit)

        def take(answers: Iterator[Any]) -> None:
            for row in new_rows:
                self.rows[row] = next(answers)
            for limit, keys in by_limit.items():
                found = newest_of(next(answers), limit)
                for key, name in zip(keys, packed[limit], strict=True):
                    self.filed[key, limit] = found.get(name, [])

        return take
