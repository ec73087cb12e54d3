"""Postings: which pages are filed under a key.

Rows (on a server, where many crawlers file at once): one for each posting, k + key + id. Nearly all keys of a new page
miss. In LevelDB each miss would cost a search in each level: 25 microseconds in a million pages.

Lists (elsewhere): one row for each key, k + key, with the ids. LevelDB's Bloom filter answers a miss in one
microsecond. A full row ends in a plus sign, and further ids are in bundles, k + key + newest id, each as large as a
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
        """Forget the rows of the last look-up: they change."""

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

    def __init__(self, kv: KeyValueStore) -> None:
        super().__init__(kv)
        self.forget()

    def forget(self) -> None:
        #: The rows of the last look-up, and its keys if none had a row. A page is mostly filed right after its look-up.
        self._rows: list[bytes] = []
        self._found: list[bytes | None] = []
        self._free: tuple[int, ...] | None = None

    def find(self, keys: Sequence[int], limit: int) -> list[list[int]]:
        rows = pack_keys(keys, _POSTINGS)
        heads = self._kv.get_all(rows)
        self._rows, self._found, self._free = rows, heads, None
        if not any(heads):
            self._free = tuple(keys)
            return [[] for _ in keys]
        return [self._newest(row, head, limit) if head else [] for row, head in zip(rows, heads, strict=True)]

    def _newest(self, row: bytes, head: bytes, limit: int) -> list[int]:
        ids, more = _unpack(head)
        for bundle in self._kv.scan(row, reverse=True) if more else ():
            if len(bundle[0]) == _PAIR:
                if len(ids) >= limit and last_id(bundle[0]) < min(ids):
                    break  # all others are older
                ids += ids_of(bundle)
        return sorted(ids, reverse=True)[:limit]

    def file(self, keys: Sequence[int], id: int, changes: Changes) -> None:
        alone = id.to_bytes(_ID, "big")
        if keys == self._free and not (changes.puts or changes.deletes):
            changes.puts = dict.fromkeys(self._rows, alone)  # nearly all new pages: nobody has these keys
            return
        for row, head in self._heads(keys, changes):
            if not head:
                changes.put(row, alone)
                continue
            ids, more = _unpack(head)
            may_be_bundled = more and id <= self._kv.largest
            if id in ids or (may_be_bundled and any(id in ids_of(one) for one in self._bundles(row, changes).items())):
                continue
            if len(ids) < MOST:
                changes.put(row, _pack(sorted((*ids, id)), more))
            else:  # the full row becomes a bundle
                changes.put(*_bundle(row, ids))
                changes.put(row, _pack((id,), _MORE))

    def remove(self, keys: Sequence[int], id: int, changes: Changes) -> None:
        for row, head in self._heads(keys, changes):
            ids, more = _unpack(head)
            bundles = self._bundles(row, changes) if more else {}
            if id in ids:
                ids.remove(id)
            for key, others in bundles.items():
                if id in (left := ids_of((key, others))):
                    changes.delete(key)
                    left.remove(id)
                    if left:
                        changes.put(*_bundle(row, left))
            if ids or (more and self._bundles(row, changes)):
                changes.put(row, _pack(ids, more))
            elif head:
                changes.delete(row)

    def _bundles(self, row: bytes, changes: Changes) -> dict[bytes, bytes]:
        """Return the bundles of a list after these changes."""
        rows = (*self._kv.scan(row), *(one for one in changes.puts.items() if one[0].startswith(row)))
        return {key: value for key, value in rows if len(key) == _PAIR and key not in changes.deletes}

    def _heads(self, keys: Sequence[int], changes: Changes) -> Iterator[tuple[bytes, bytes]]:
        """Return the rows of different keys with their ids after these changes."""
        rows = list(dict.fromkeys(pack_keys(keys, _POSTINGS)))
        known, deleted = dict(zip(self._rows, self._found, strict=True)), changes.deletes
        if unread := [row for row in rows if row not in known]:
            known.update(zip(unread, self._kv.get_all(unread), strict=True))
        return ((row, changes.puts.get(row) or (b"" if row in deleted else known[row]) or b"") for row in rows)


def pairs(row: Row) -> Iterator[tuple[int, int]]:
    """Yield the keys and ids in a row, of either layout."""
    key, _ = row
    number = int.from_bytes(key[1:-_ID] if len(key) == _PAIR else key[1:], "big")
    yield from ((number, id) for id in ids_of(row))


def ids_of(row: Row) -> list[int]:
    """Return the ids in a row, of either layout."""
    key, value = row
    ids = _unpack(value)[0]
    return [*ids, last_id(key)] if len(key) == _PAIR else ids


def _bundle(row: bytes, ids: Sequence[int]) -> Row:
    """Return the key of a bundle."""
    *others, newest = sorted(ids)
    return row + newest.to_bytes(_ID, "big"), _pack(others, b"")


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


def _unpack(head: bytes) -> tuple[list[int], bytes]:
    """Return the ids in a row, and its mark."""
    count, more = divmod(len(head), 8)
    return list(_of(count).unpack_from(head)), _MORE if more else b""


def _pack(ids: Sequence[int], more: bytes) -> bytes:
    return _of(len(ids)).pack(*ids) + more
