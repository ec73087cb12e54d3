"""Which pages are filed under a key, written down in one of two ways.

Rows: one for each posting, k + key + id, without a value. To learn that nothing is filed under a key, as is true of
nearly all keys of a new page, takes a search in each of LevelDB's levels: 25 microseconds a key in a million pages.

Lists: a row for each key, k + key, whose value is the ids filed under it. That it is not there LevelDB's bloom filter
tells in one microsecond. A row holds as many ids as are rewritten in no time; those that come later have rows of their
own, and a plus sign behind the ids says that there are some.

The format in a state's recipe says which. In format 2 they are rows and in format 3 lists, of keys of 64 bits. In
format 4 keys have 40 bits, and they are lists; but rows on a server, where many file under one key at once.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import ClassVar

from scrapy_neardup.hashing.width import NARROW, WIDE, KeyWidth
from scrapy_neardup.stores.changes import Changes, Row
from scrapy_neardup.stores.layout import FORMATS, last_id, posting_key
from scrapy_neardup.stores.ordered import OrderedBytes

#: The format in which they are rows everywhere.
_ROWS = 2
#: Ids that the row of a list holds at most.
MOST = 32
#: Behind these ids, where there are others.
_MORE = b"+"
_ID = 8
#: Lengths of the keys of rows: those that hold ids, and those of single postings.
_HEADS = frozenset(1 + width.size for width in (NARROW, WIDE))
_PAIRS = frozenset(head + _ID for head in _HEADS)


class Postings(ABC):
    """The postings of an open state. What is removed and filed is added to changes, on top of which it is seen.

    Keys may be longer than those of the state, as the id of a group is.
    """

    #: Whether they are lists.
    are_lists: ClassVar[bool]

    def __init__(self, rows: OrderedBytes, width: KeyWidth) -> None:
        self._rows = rows
        self._width = width

    def _prefixes(self, keys: Iterable[int]) -> list[bytes]:
        """Where the postings of each key begin."""
        size, mask = self._width.size, self._width.mask
        return [b"k" + (key & mask).to_bytes(size, "big") for key in keys]

    @abstractmethod
    def find(self, keys: Sequence[int], limit: int) -> list[list[int]]:
        """For each key the ids of up to ``limit`` pages that are filed under it, the newest first."""

    @abstractmethod
    def file(self, keys: Iterable[int], id: int, changes: Changes) -> None:
        """File a page under keys."""

    @abstractmethod
    def remove(self, keys: Iterable[int], id: int, changes: Changes) -> None:
        """Take a page back from under keys, if it is filed there."""


class PostingRows(Postings):
    """A row for each."""

    are_lists: ClassVar[bool] = False

    def find(self, keys: Sequence[int], limit: int) -> list[list[int]]:
        found = (self._rows._scan(prefix, reverse=True) for prefix in self._prefixes(keys))
        return [[last_id(posting) for posting, _ in islice(rows, limit)] for rows in found]

    def file(self, keys: Iterable[int], id: int, changes: Changes) -> None:
        for key in keys:
            changes.put(posting_key(key, id, self._width), b"")

    def remove(self, keys: Iterable[int], id: int, changes: Changes) -> None:
        for key in keys:
            changes.delete(posting_key(key, id, self._width))


class PostingLists(Postings):
    """A row for each key."""

    are_lists: ClassVar[bool] = True
    #: The rows that were read last, for which keys, at what number of writes: a page is mostly filed before anything
    #: else is written.
    _read: tuple[int, tuple[int, ...], dict[bytes, bytes | None]] = (-1, (), {})

    def find(self, keys: Sequence[int], limit: int) -> list[list[int]]:
        rows = self._prefixes(keys)
        heads = self._rows._get_all(rows)
        if not self._rows.is_shared:
            self._read = self._rows._writes, tuple(keys), dict(zip(rows, heads, strict=True))
        if not any(heads):
            return [[] for _ in keys]
        return [self._ids(row, head, limit) if head else [] for row, head in zip(rows, heads, strict=True)]

    def _ids(self, head_row: bytes, head: bytes, limit: int) -> list[int]:
        ids, more = _unpacked(head)
        if more:
            singles = (row for row, _ in self._rows._scan(head_row, reverse=True) if len(row) in _PAIRS)
            ids += map(last_id, islice(singles, limit))
        return sorted(ids, reverse=True)[:limit]

    def file(self, keys: Iterable[int], id: int, changes: Changes) -> None:
        alone = _packed((id,), b"")
        if self._are_new(keys, changes):
            changes.put_all(dict.fromkeys(self._read[2], alone))
            return
        for row, head in self._heads(keys, changes):
            if not head:
                changes.put(row, alone)
                continue
            ids, more = _unpacked(head)
            if id in ids:
                continue
            if len(ids) < MOST and not more:  # or a posting that has a row of its own might come to stand in both
                changes.put(row, _packed(sorted((*ids, id)), b""))
                continue
            changes.put(row + id.to_bytes(8, "big"), b"")
            if not more:
                changes.put(row, _packed(ids, _MORE))

    def remove(self, keys: Iterable[int], id: int, changes: Changes) -> None:
        for row, head in self._heads(keys, changes):
            ids, more = _unpacked(head)
            if id in ids:
                ids.remove(id)
            elif more:
                changes.delete(row + id.to_bytes(8, "big"))
            else:
                continue
            if ids or (more and self._has_more(row, changes)):
                changes.put(row, _packed(ids, more))
            else:
                changes.delete(row)

    def _are_new(self, keys: Iterable[int], changes: Changes) -> bool:
        """Whether these were read last, and nothing is filed there nor will be: so it is with nearly all new pages."""
        writes, asked, read = self._read
        is_known = keys == asked and writes == self._rows._writes and not any(read.values())
        return is_known and changes.puts.keys().isdisjoint(read)

    def _heads(self, keys: Iterable[int], changes: Changes) -> Iterator[tuple[bytes, bytes]]:
        """The rows of different keys with the ids they hold, as they will be after these changes."""
        rows = list(dict.fromkeys(self._prefixes(keys)))
        unchanged = [row for row in rows if row not in changes.puts and row not in changes.deletes]
        written = self._written(unchanged)
        return ((row, changes.puts.get(row) or written.get(row) or b"") for row in rows)

    def _written(self, rows: list[bytes]) -> dict[bytes, bytes | None]:
        """What these rows hold, as it was read or else is read now."""
        writes, _, read = self._read
        known = {row: read[row] for row in rows if row in read} if writes == self._rows._writes else {}
        others = [row for row in rows if row not in known]
        return {**known, **dict(zip(others, self._rows._get_all(others), strict=True))} if others else known

    def _has_more(self, row: bytes, changes: Changes) -> bool:
        singles = (key for key, _ in self._rows._scan(row) if len(key) in _PAIRS)
        filed = (key for key in changes.puts if len(key) in _PAIRS and key.startswith(row))
        return any(key not in changes.deletes for key in singles) or next(filed, None) is not None


def postings_of(rows: OrderedBytes, format: int) -> Postings:
    """The postings of a state of this format."""
    kind = PostingRows if format == _ROWS or rows.is_shared else PostingLists
    return kind(rows, FORMATS[format])


def pairs(row: Row) -> Iterator[tuple[int, int]]:
    """The keys and ids that a row of postings tells of, in any format."""
    key, value = row
    if len(key) in _PAIRS:
        yield int.from_bytes(key[1:-_ID], "big"), last_id(key)
    else:
        number = int.from_bytes(key[1:], "big")
        yield from ((number, id) for id in _unpacked(value)[0])


def is_posting(row: Row) -> bool:
    """Whether a row can be one of postings."""
    key, value = row
    if len(key) in _PAIRS:
        return not value
    return is_head(key) and value != b"" and (len(value) % 8 == 0 or _tells_of_more(value))


def is_head(key: bytes) -> bool:
    """Whether a row can be one of a list."""
    return len(key) in _HEADS


def is_unreachable(key: bytes, head: Row) -> bool:
    """Whether a posting has a row of its own of which the row of the list before it does not tell."""
    return len(key) in _PAIRS and not (key[:-_ID] == head[0] and _tells_of_more(head[1]))


def _tells_of_more(head: bytes) -> bool:
    return len(head) % 8 == 1 and head.endswith(_MORE)


@lru_cache
def _of(count: int) -> struct.Struct:
    return struct.Struct(f">{count}Q")


def _unpacked(head: bytes) -> tuple[list[int], bytes]:
    """The ids in a row, and the plus sign if it is there."""
    count, more = divmod(len(head), 8)
    return list(_of(count).unpack_from(head)), _MORE if more else b""


def _packed(ids: Sequence[int], more: bytes) -> bytes:
    return _of(len(ids)).pack(*ids) + more
