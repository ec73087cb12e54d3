"""The rows of pages: read, filed, changed and removed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache, partial

from scrapy_neardup.errors import StoreMismatch
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.kv.base import Changes, KeyValueStore
from scrapy_neardup.state import layout
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.postings import PostingLists, Postings
from scrapy_neardup.state.recipe import SECRET_SETTING, Secret
from scrapy_neardup.state.record import Record

#: Seconds between writes that wait for the disk.
SYNC_EVERY = 1.0
#: The zero bits of an id: 65 microseconds.
_WITHIN = 0xFFFF


class Clock:
    """Gives times and ids. A simulation may replace its methods."""

    #: The largest id so far.
    newest = 0

    def now(self) -> float:
        """Return seconds since 1970."""
        return time.time()

    def nanoseconds(self) -> int:
        """Return nanoseconds since 1970."""
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
        self._postings: Postings = PostingLists(kv)
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
        """Return the record with this id, or None."""
        packed = self.kv.get(layout.record_key(id))
        return None if packed is None else self.unpack_record(id, packed)

    def unpack_record(self, id: int, packed: bytes) -> Record:
        """Return a record from its row. Raises StoreDamaged."""
        try:
            return Record.unpack(id, packed)
        except ValueError as error:
            raise self.kv.damaged(f"the record {id:016x} cannot be read ({error})") from None

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
        """Note the id of a new record."""
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
