"""Postings: which pages are filed under a key.

Rows (on a server, where many crawlers file at once): one for each posting, k + key + id. Nearly all keys of a new page
miss. In LevelDB each miss would cost a search in each level: 25 microseconds in a million pages.

Lists (elsewhere): one row for each key, k + key, with the ids. LevelDB's Bloom filter answers a miss in one
microsecond. A full row ends in a plus sign, and further ids stand in bundles, k + key + newest id, each as large as a
row.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import lru_cache

from scrapy_neardup.hashing.keys import SIZE, pack_keys
from scrapy_neardup.kv.base import Changes, KeyValueStore, Row
from scrapy_neardup.state.layout import last_id

#: Ids per row.
MOST = 32
#: The first byte of postings.
_POSTINGS = b"k"
#: The mark of a full row.
_MORE = b"+"
_ID = 8
#: Length of a list's key.
_HEAD = 1 + SIZE
_PAIR = _HEAD + _ID


class Postings(ABC):
    """The postings of an open state. Removals and additions go into changes, and later reads see them.

    Keys may be longer than usual, as ids of groups are.
    """

    def __init__(self, kv: KeyValueStore) -> None:
        self._kv = kv

    def forget(self) -> None:  # noqa: B027 - rows that are never kept need no method
        """Forget what was read: rows change."""

    @abstractmethod
    def find(self, keys: Sequence[int], limit: int) -> list[list[int]]:
        """Return up to ``limit`` ids for each key, newest first."""

    @abstractmethod
    def file(self, keys: Sequence[int], id: int, changes: Changes) -> None:
        """File a page under keys."""

    @abstractmethod
    def remove(self, keys: Sequence[int], id: int, changes: Changes) -> None:
        """Remove a page from keys."""


class PostingLists(Postings):
    """One row for each key, and bundles."""

    #: The last look-up: keys, rows, values. A page is mostly filed right after its look-up.
    _read: tuple[tuple[int, ...] | None, list[bytes], list[bytes | None]] = None, [], []

    def forget(self) -> None:
        self._read = None, [], []

    def find(self, keys: Sequence[int], limit: int) -> list[list[int]]:
        rows = pack_keys(keys, _POSTINGS)
        heads = self._kv.get_all(rows)
        self._read = tuple(keys), rows, heads
        if not any(heads):
            return [[] for _ in keys]
        return [self._ids(row, head, limit) if head else [] for row, head in zip(rows, heads, strict=True)]

    def _ids(self, head_row: bytes, head: bytes, limit: int) -> list[int]:
        ids, more = _unpacked(head)
        if more:
            for row in self._kv.scan(head_row, reverse=True):
                if len(row[0]) != _PAIR:
                    continue
                if len(ids) >= limit and last_id(row[0]) < min(ids):
                    break  # all that is left is older
                ids += ids_of(row)
        return sorted(ids, reverse=True)[:limit]

    def file(self, keys: Sequence[int], id: int, changes: Changes) -> None:
        alone = id.to_bytes(_ID, "big")
        asked, rows, heads = self._read
        # True for nearly all new pages: these keys were read last and are empty.
        if keys == asked and not (changes.puts or changes.deletes or any(heads)):
            changes.puts.update(dict.fromkeys(rows, alone))
            return
        for row, head in self._heads(keys, changes):
            if not head:
                changes.put(row, alone)
                continue
            ids, more = _unpacked(head)
            if id not in ids and not (more and self._is_beyond(row, id, changes)):
                self._add(row, ids, more, id, changes)

    def _is_beyond(self, row: bytes, id: int, changes: Changes) -> bool:
        """Whether an id stands in a further row."""
        return id <= self._kv.largest and any(id in ids_of(one) for one in self._further(row, changes))

    def _add(self, row: bytes, ids: list[int], more: bytes, id: int, changes: Changes) -> None:
        """Add an id to a list; a full row becomes a bundle."""
        if len(ids) < MOST:
            changes.put(row, _packed(sorted((*ids, id)), more))
        else:
            changes.put(*_bundle(row, ids))
            changes.put(row, _packed((id,), _MORE))

    def _take_away(self, row: bytes, id: int, changes: Changes) -> None:
        """Remove an id from the further rows of a list."""
        for one in self._further(row, changes):
            if id in (ids := ids_of(one)):
                changes.delete(one[0])
                ids.remove(id)
                if ids:
                    changes.put(*_bundle(row, ids))
                return

    def _further(self, row: bytes, changes: Changes) -> list[Row]:
        """Return the further rows of a list after these changes."""
        found = {key: value for key, value in self._kv.scan(row) if len(key) == _PAIR}
        found.update(one for one in changes.puts.items() if len(one[0]) == _PAIR and one[0].startswith(row))
        return [one for one in found.items() if one[0] not in changes.deletes]

    def remove(self, keys: Sequence[int], id: int, changes: Changes) -> None:
        for row, head in self._heads(keys, changes):
            ids, more = _unpacked(head)
            if id in ids:
                ids.remove(id)
            elif more:
                self._take_away(row, id, changes)
            else:
                continue
            if ids or (more and self._further(row, changes)):
                changes.put(row, _packed(ids, more))
            else:
                changes.delete(row)

    def _heads(self, keys: Sequence[int], changes: Changes) -> Iterator[tuple[bytes, bytes]]:
        """Return the rows of different keys with their ids after these changes."""
        rows = list(dict.fromkeys(pack_keys(keys, _POSTINGS)))
        unchanged = [row for row in rows if row not in changes.puts and row not in changes.deletes]
        written = self._written(unchanged)
        return ((row, changes.puts.get(row) or written.get(row) or b"") for row in rows)

    def _written(self, rows: list[bytes]) -> dict[bytes, bytes | None]:
        """Return the values of rows, from the last look-up or the store."""
        _, *read = self._read
        held = dict(zip(*read, strict=True))
        known = {row: held[row] for row in rows if row in held}
        others = [row for row in rows if row not in known]
        return {**known, **dict(zip(others, self._kv.get_all(others), strict=True))} if others else known


def pairs(row: Row) -> Iterator[tuple[int, int]]:
    """Yield the keys and ids in a row, of either layout."""
    key, _ = row
    number = int.from_bytes(key[1:-_ID] if len(key) == _PAIR else key[1:], "big")
    yield from ((number, id) for id in ids_of(row))


def ids_of(row: Row) -> list[int]:
    """Return the ids in a row, of either layout."""
    key, value = row
    ids = _unpacked(value)[0]
    return [*ids, last_id(key)] if len(key) == _PAIR else ids


def _bundle(row: bytes, ids: Sequence[int]) -> Row:
    """Return the key of a bundle."""
    *others, newest = sorted(ids)
    return row + newest.to_bytes(_ID, "big"), _packed(others, b"")


def is_posting(row: Row) -> bool:
    """Whether a row belongs to postings."""
    key, value = row
    if len(key) == _PAIR:
        return len(value) % _ID == 0
    return is_head(key) and value != b"" and (len(value) % 8 == 0 or _tells_of_more(value))


def is_head(key: bytes) -> bool:
    """Whether a row is the first of a list."""
    return len(key) == _HEAD


def is_unreachable(key: bytes, head: Row) -> bool:
    """Whether a further row exists that the list's row does not announce."""
    return len(key) == _PAIR and not (key[:-_ID] == head[0] and _tells_of_more(head[1]))


def _tells_of_more(head: bytes) -> bool:
    return len(head) % 8 == 1 and head.endswith(_MORE)


@lru_cache
def _of(count: int) -> struct.Struct:
    return struct.Struct(f">{count}Q")


def _unpacked(head: bytes) -> tuple[list[int], bytes]:
    """Return the ids in a row, and its mark."""
    count, more = divmod(len(head), 8)
    return list(_of(count).unpack_from(head)), _MORE if more else b""


def _packed(ids: Sequence[int], more: bytes) -> bytes:
    return _of(len(ids)).pack(*ids) + more
