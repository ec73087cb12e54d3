"""The rows of pages: read, filed, changed and removed; postings say which pages are filed under a key."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache, partial

from scrapy_neardup.errors import StoreMismatch
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.hashing.keys import SIZE, pack_keys
from scrapy_neardup.kv.base import Changes, KeyValueStore, Row
from scrapy_neardup.state import layout
from scrapy_neardup.state.recipe import SECRET_SETTING, Secret
from scrapy_neardup.state.record import Evidence, Record

#: Seconds between writes that wait for the disk.
SYNC_EVERY = 1.0
#: The zero bits of an id: 65 microseconds.
_WITHIN = 0xFFFF
#: Ids per row.
MOST = 32
#: The first byte of postings.
_POSTINGS = b"k"
#: The end of a full row.
_MORE = b"+"
_ID = 8
#: Length of a list's key.
_HEAD = 1 + SIZE
_PAIR = _HEAD + _ID


class Clock:
    """Gives times and ids. A simulation may replace its methods."""

    #: The largest id so far.
    newest = 0

    def now(self) -> float:
        """Return seconds since 1970."""
        return time.time()

    def nanoseconds(self) -> int:
        return time.time_ns()

    def new_id(self) -> int:
        """Return an id larger than every other: nanoseconds since 1970, a multiple of 65,536.

        A dozen rows of a page have its id, and zeros compress.
        """
        self.newest = max((self.newest | _WITHIN) + 1, self.nanoseconds() & ~_WITHIN)
        return self.newest


class PageRows:
    """Reads the rows of pages, adds them to batches, writes batches and counts pages."""

    def __init__(self, kv: KeyValueStore, secret: Secret | None, pages: int) -> None:
        self.kv = kv
        #: The secret of the hashes; None if it is unknown.
        self.secret = secret
        #: The number of pages, with copies and unjudged pages.
        self.pages = pages
        self.clock = Clock()
        self._postings = Postings(kv)
        self._synced = time.monotonic()

    @cached_property
    def hashes(self) -> Keyed:
        """The hashes of the state. Raises StoreMismatch if the secret is unknown."""
        if self.secret is None:
            raise StoreMismatch(
                f"The state at {self.kv.location} was written with a {SECRET_SETTING}, and none is set. Set the value "
                "that its crawl had."
            )
        return Keyed(self.secret.value)

    # Reading.

    @cached_property
    def url_key(self) -> Callable[[str], bytes]:
        """Returns the key of the row of a URL. It keeps some, as a page is looked for and then filed."""
        return lru_cache(64)(partial(layout.url_key, hashes=self.hashes))

    def record(self, id: int) -> Record | None:
        packed = self.kv.get(layout.record_key(id))
        return None if packed is None else self.unpack_record(id, packed)

    def unpack_record(self, id: int, packed: bytes) -> Record:
        """Return a record from its row. Raises StoreDamaged."""
        try:
            return Record.unpack(id, packed)
        except ValueError as error:
            raise self.kv.damage_error(f"the record {id:016x} cannot be read ({error})") from None

    def records(self) -> Iterator[Record]:
        """Yield all records, oldest first."""
        return (self.unpack_record(layout.last_id(key), packed) for key, packed in self.kv.scan(layout.RECORDS))

    # Writing.

    def apply(self, changes: Changes, *, sync: bool | None = None, added: int = 0) -> None:
        """Write a batch. ``added``: how many records are new, less those that go.

        ``sync``: wait for the disk; None waits about once a second. So a power cut costs a second of pages.
        """
        self._postings.forget()
        if sync is None:
            sync = time.monotonic() - self._synced >= SYNC_EVERY
            self.kv.write(changes, sync=sync)
            if sync:
                self._synced = time.monotonic()
        else:
            self.kv.write(changes, sync=sync)
        self.pages += added

    def note_id(self, id: int) -> None:
        self.clock.newest = max(self.clock.newest, id)
        self.kv.largest = max(self.kv.largest, id)

    def file(self, record: Record, changes: Changes, seen: float, evidence: Evidence | None = None) -> None:
        """Add all rows of a page to a batch. ``seen``: when it was last seen, in seconds since 1970."""
        self._postings.file(record.keys, record.id, changes)
        changes.put(layout.record_key(record.id), record.pack())
        if evidence is not None:
            changes.put(layout.evidence_key(record.id), evidence.pack())
        changes.put(self.url_key(record.url), layout.pack_seen(record.id, seen))

    def see(self, pages: Iterable[Record], seconds: float, changes: Changes) -> None:
        """Record that originals were seen in a copy, so an article that is still copied stays known."""
        for page in pages:
            key = self.url_key(page.url)
            written = changes.puts.get(key) or self.kv.get(key)
            # If a later version is in flight, the URL is no longer this page's.
            if written is not None and layout.unpack_seen(written)[0] == page.id:
                changes.put(key, layout.pack_seen(page.id, max(seconds, layout.unpack_seen(written)[1])))

    def erase(self, id: int, changes: Changes) -> int:
        """Remove a record with all rows that point to it; return 0 or 1."""
        record = self.kept(id, changes)
        if record is not None:
            self.erase_page(record, changes)
        return int(record is not None)

    def erase_page(self, record: Record, changes: Changes) -> None:
        """Remove a record with all rows that point to it."""
        changes.delete(layout.record_key(record.id))
        changes.delete(layout.evidence_key(record.id))
        self._postings.remove(record.keys, record.id, changes)
        url = self.url_key(record.url)
        if self.is_page_of(url, record.id, changes):
            changes.delete(url)

    def kept(self, id: int, changes: Changes) -> Record | None:
        """Return the record, unless these changes remove it."""
        return self.record(id) if id and layout.record_key(id) not in changes.deletes else None

    def is_page_of(self, url: bytes, id: int, changes: Changes) -> bool:
        """Whether a URL row names this page after these changes."""
        seen = changes.puts.get(url) or self.kv.get(url)
        return seen is not None and layout.unpack_seen(seen)[0] == id


class Postings:
    """Which pages are filed under a key. Removals and additions go into changes, and later reads see them.

    One row for each key, k + key, with the ids. Nearly all keys of a new page miss, and LevelDB's Bloom filter answers
    a miss in one microsecond. A full row ends in a plus sign, and further ids are in bundles, k + key + newest id, each
    as large as a row. Keys may be longer than usual, as ids of groups are.

    On a server each posting is a row, k + key + id, as many crawlers file at once.
    """

    def __init__(self, kv: KeyValueStore) -> None:
        self._kv = kv
        self.forget()

    def forget(self) -> None:
        """Forget the rows of the last look-up: they change."""
        #: The rows of the last look-up, and its keys if none had a row. A page is mostly filed right after its look-up.
        self._rows: list[bytes] = []
        self._found: list[bytes | None] = []
        self._free: tuple[int, ...] | None = None

    def find(self, keys: Sequence[int], limit: int) -> list[list[int]]:
        """Return up to ``limit`` ids for each key, newest first."""
        rows = pack_keys(keys, _POSTINGS)
        heads = self._kv.get_all(rows)
        self._rows, self._found, self._free = rows, heads, None
        if not any(heads):
            self._free = tuple(keys)
            return [[]] * len(keys)
        return [self._newest(row, head, limit) if head else [] for row, head in zip(rows, heads, strict=True)]

    def _newest(self, row: bytes, head: bytes, limit: int) -> list[int]:
        ids, more = _unpack(head)
        for bundle in self._kv.scan(row, reverse=True) if more else ():
            if len(bundle[0]) == _PAIR:
                if len(ids) >= limit and layout.last_id(bundle[0]) < min(ids):
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
            if id in ids or (more and id <= self._kv.largest and self._bundle_with(id, row, changes)):
                continue
            if len(ids) < MOST:
                changes.put(row, _pack(sorted((*ids, id)), more))
            else:  # the full row becomes a bundle
                changes.put(*_bundle(row, ids))
                changes.put(row, _pack((id,), _MORE))

    def remove(self, keys: Sequence[int], id: int, changes: Changes) -> None:
        for row, head in self._heads(keys, changes):
            ids, more = _unpack(head)
            if id in ids:
                ids.remove(id)
            elif more and (bundle := self._bundle_with(id, row, changes)):
                changes.delete(bundle[0])
                if left := [one for one in ids_of(bundle) if one != id]:
                    changes.put(*_bundle(row, left))
            if ids or (more and any(self._bundles(row, changes))):
                changes.put(row, _pack(ids, more))
            elif head:
                changes.delete(row)

    def _bundle_with(self, id: int, row: bytes, changes: Changes) -> Row | None:
        """Return the bundle of a list that holds an id."""
        return next((one for one in self._bundles(row, changes, id) if id in ids_of(one)), None)

    def _bundles(self, row: bytes, changes: Changes, id: int = 0) -> Iterator[Row]:
        """Yield the bundles of a list after these changes, in the state only those that can hold ``id``."""
        for key, value in self._kv.scan(row, start=row + id.to_bytes(_ID, "big")):
            if len(key) == _PAIR and key not in changes.puts and key not in changes.deletes:
                yield key, value
        yield from (one for one in changes.puts.items() if len(one[0]) == _PAIR and one[0].startswith(row))

    def _heads(self, keys: Sequence[int], changes: Changes) -> Iterator[tuple[bytes, bytes]]:
        """Return the rows of different keys with their ids after these changes."""
        rows = list(dict.fromkeys(pack_keys(keys, _POSTINGS)))
        known, deleted = dict(zip(self._rows, self._found, strict=True)), changes.deletes
        if unread := [row for row in rows if row not in known]:
            known.update(zip(unread, self._kv.get_all(unread), strict=True))
        return ((row, changes.puts.get(row) or (b"" if row in deleted else known[row]) or b"") for row in rows)


def number_of(key: bytes) -> int:
    """Return the key of pages in the key of a row, of either layout."""
    return int.from_bytes(key[1:_HEAD] if len(key) == _PAIR else key[1:], "big")


def ids_of(row: Row) -> list[int]:
    """Return the ids in a row, of either layout."""
    key, value = row
    ids = _unpack(value)[0]
    return [*ids, layout.last_id(key)] if len(key) == _PAIR else ids


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
    """Return the ids in a row, and its end."""
    count, more = divmod(len(head), 8)
    return list(_of(count).unpack_from(head)), _MORE if more else b""


def _pack(ids: Sequence[int], more: bytes) -> bytes:
    return _of(len(ids)).pack(*ids) + more
