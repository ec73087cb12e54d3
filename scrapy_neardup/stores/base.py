"""The state, in terms of pages; a backend adds six small methods over ordered bytes."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from scrapy_neardup.errors import StoreDamaged, StoreMismatch
from scrapy_neardup.stores import layout
from scrapy_neardup.stores.changes import Changes
from scrapy_neardup.stores.layout import Record
from scrapy_neardup.stores.recipe import check_recipe, pack_recipe
from scrapy_neardup.stores.recurrence import Recurrence, Sentences

#: Seconds after which a write is made to reach the disk, with all writes before it.
SYNC_EVERY = 1.0
#: Pages that are sealed or taken back in one batch.
_BATCH = 1000
#: Pages after which the counts of sentences are written; a kill costs as many pages' counts at most.
_COUNTS_EVERY = 5000
#: Repeats (see ``Recurrence``) that make a sentence common: 16 pages of one site, or about 38 of as many sites.
_COMMON = 15


@dataclass(frozen=True, slots=True)
class TakenBack:
    """What an opening found unsealed: pages of crawls that were killed or whose feed was not stored."""

    pages: int
    crawls: tuple[str, ...]


class Store(ABC):
    """Pages by id, by URL and by key, in generations.

    A page that is added under a generation counts at once, but for good only when it was sealed: the next
    opening takes back whatever is unsealed. One process at a time holds a state; within a process
    ``open_store`` hands out one store for each location.

    Every method may raise StoreError. Nothing here deletes state to get going again.
    """

    #: The scheme of the URLs that open it.
    scheme: ClassVar[str]

    def __init__(self, location: str, recipe: Mapping[str, Any]) -> None:
        """Open or create the state at ``location``; raises StoreMismatch if another recipe wrote it."""
        self.location = location
        self._synced = time.monotonic()
        self._closed = False
        self._connect()
        try:
            self._check_recipe(recipe)
            newest = next(self._scan(b"r", reverse=True), None)
            self._newest = layout.last_id(newest[0]) if newest else 0
            self._recurrence = self._load_recurrence()
            self._noted = 0
            self.taken_back = self._take_back()
            self.pages = self._count()
        except BaseException:
            self._disconnect()
            raise

    # What a backend gives.

    @abstractmethod
    def _connect(self) -> None:
        """Open what is at ``self.location``, alone."""

    @abstractmethod
    def _disconnect(self) -> None:
        """Let go of it; must not fail a second time."""

    @abstractmethod
    def _get(self, key: bytes) -> bytes | None: ...

    @abstractmethod
    def _scan(self, prefix: bytes, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """All keys that begin with ``prefix``, in byte order, with their values."""

    @abstractmethod
    def _write(self, changes: Changes, *, sync: bool) -> None:
        """Apply all changes or none; with ``sync`` they, and all before them, survive a power cut."""

    @abstractmethod
    def size(self) -> int:
        """How much room the state takes."""

    # What the detector calls.

    def new_id(self) -> int:
        """An id larger than every other: the time in nanoseconds, or one more than the last."""
        self._newest = max(self._newest + 1, time.time_ns())
        return self._newest

    def record(self, id: int) -> Record | None:
        """The record with this id; None if there is none, or no longer."""
        packed = self._get(layout.record_key(id))
        return None if packed is None else Record.unpack(id, packed)

    def find(self, url: str) -> Record | None:
        """The newest record of a URL."""
        seen = self._get(layout.url_key(url))
        if seen is None:
            return None
        record = self.record(layout.unpack_seen(seen)[0])
        return record if record is not None and record.url == url else None  # another URL with the same hash

    def last_seen(self, url: str) -> int:
        """When a URL was last judged, in seconds since 1970; 0 if never."""
        seen = self._get(layout.url_key(url))
        return layout.unpack_seen(seen)[1] if seen else 0

    def postings(self, key: int, limit: int) -> list[int]:
        """Ids of up to ``limit`` pages that are filed under ``key``, the newest first."""
        found = self._scan(layout.posting_prefix(key), reverse=True)
        return [layout.last_id(posting) for posting, _ in islice(found, limit)]

    def common(self, sentences: Sentences) -> npt.NDArray[np.bool_]:
        """Which of these sentences (32-bit fingerprints) stand on so many pages that they are no evidence."""
        return self._recurrence.repeats(sentences) >= _COMMON

    def note(self, sentences: Sentences, site: int) -> None:
        """Count the sentences of a page that is no copy; ``site`` is any hash of its site.

        The counts are bounded in size, are written at a close and every few thousand pages, and are not taken back
        with a page: they are a statistic, and one page more makes few sentences common. If that write fails, the page
        is counted all the same, and the counts are written with the next.
        """
        self._recurrence.note(sentences, site)
        self._noted += 1
        if self._noted % _COUNTS_EVERY == 0:
            self._write_counts({}, sync=False)

    def begin(self, who: str) -> int:
        """A new generation for a crawl; ``who`` names it in the line that tells of its being taken back."""
        generation = self.new_id()
        about = json.dumps({"who": who}, ensure_ascii=False).encode()
        self._write(Changes({layout.generation_key(generation): about}), sync=False)
        return generation

    def add(self, record: Record, *, generation: int = 0, replaces: int = 0) -> None:
        """File a page in one atomic batch: unsealed under ``generation``, or for good if that is 0.

        ``replaces`` is the id of the same URL's earlier record; it goes when the new one is sealed.
        """
        changes = Changes()
        for key in record.keys:
            changes.put(layout.posting_key(key, record.id), b"")
        changes.put(layout.record_key(record.id), record.pack())
        gone = 0
        if generation:
            changes.put(layout.journal_key(generation, record.id), layout.pack_id(replaces))
        elif replaces:
            gone = self._erase(replaces, changes)
        changes.put(layout.url_key(record.url), layout.pack_seen(record.id, time.time()))
        self._commit(changes)
        self.pages += 1 - gone

    def touch(self, record: Record) -> None:
        """Note that a URL was seen again now."""
        self._commit(Changes({layout.url_key(record.url): layout.pack_seen(record.id, time.time())}))

    def seal(self, generation: int, ids: Iterable[int]) -> None:
        """Keep these pages of a generation for good; they are on disk when this returns."""
        ids = iter(ids)
        while batch := list(islice(ids, _BATCH)):
            changes, gone = Changes(), 0
            for id in batch:
                journal = layout.journal_key(generation, id)
                gone += self._erase(layout.unpack_id(self._get(journal) or b""), changes)
                changes.delete(journal)
            self._write(changes, sync=True)
            self.pages -= gone

    def withdraw(self, generation: int, id: int) -> None:
        """Take one page back, sealed or not; an unsealed one gives its place to the record that it replaced."""
        changes = Changes()
        gone = self._withdraw(layout.journal_key(generation, id), changes)
        self._commit(changes)
        self.pages -= gone

    def end(self, generation: int) -> int:
        """End a crawl's generation; returns how many of its pages stay unsealed, to be taken back later."""
        unsealed = sum(1 for _ in self._scan(b"j" + layout.generation_key(generation)[1:]))
        if not unsealed:
            self._write(Changes(deletes={layout.generation_key(generation)}), sync=True)
        return unsealed

    def close(self) -> None:
        """Write down the counts and let go of the state; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            self._write_counts({layout.meta_key("pages"): str(self.pages).encode()}, sync=True)
        finally:
            self._disconnect()

    # How.

    def _commit(self, changes: Changes) -> None:
        """Write; every so often wait for the disk, so that a power cut costs about a second of pages."""
        sync = time.monotonic() - self._synced >= SYNC_EVERY
        self._write(changes, sync=sync)
        if sync:
            self._synced = time.monotonic()

    def _check_recipe(self, recipe: Mapping[str, Any]) -> None:
        name = layout.meta_key("recipe")
        written = self._get(name)
        if written is not None:
            check_recipe(written, recipe, self.location)
            return
        if next(self._scan(b""), None) is not None:
            raise StoreMismatch(
                f"{self.location} holds data but no recipe of scrapy-neardup: it is no state of ours and was "
                "not touched. Set NEARDUP_STORE to another path."
            )
        self._write(Changes({name: pack_recipe(recipe)}), sync=True)

    def _load_recurrence(self) -> Recurrence:
        found = Recurrence()
        try:
            for key, packed in self._scan(b"b"):
                found.load(layout.unpack_block(key), packed)
        except ValueError as error:
            raise self._damaged(str(error)) from None
        return found

    def _damaged(self, what: str) -> StoreDamaged:
        return StoreDamaged(
            f"The state at {self.location} is damaged: {what}. It was not touched. Restore it from a backup, or set "
            "NEARDUP_STORE to a new path to begin another state."
        )

    def _write_counts(self, puts: Mapping[bytes, bytes], *, sync: bool) -> None:
        """Write the counts of sentences that have changed, in one batch with ``puts``; what fails is still to do."""
        counts = {layout.block_key(block): packed for block, packed in self._recurrence.changed().items()}
        self._write(Changes({**counts, **puts}), sync=sync)
        self._recurrence.saved()

    def _count(self) -> int:
        """The count that a clean close left; after a crash every record is counted."""
        name = layout.meta_key("pages")
        written = self._get(name)
        if written is None:
            return sum(1 for _ in self._scan(b"r"))
        self._write(Changes(deletes={name}), sync=False)
        return int(written)

    def _take_back(self) -> TakenBack:
        crawls = [json.loads(about)["who"] for _, about in self._scan(b"g")]
        # The newest first: of two unsealed versions of a URL the later one names the earlier one.
        unsealed = sorted((key for key, _ in self._scan(b"j")), key=layout.last_id, reverse=True)
        for start in range(0, len(unsealed), _BATCH):
            changes = Changes()
            changes.delete(layout.meta_key("pages"))  # counted anew
            for journal in unsealed[start : start + _BATCH]:
                self._withdraw(journal, changes)
            self._write(changes, sync=True)
        ended = Changes(deletes={key for key, _ in self._scan(b"g")})
        if ended.deletes:
            self._write(ended, sync=True)
        return TakenBack(len(unsealed), tuple(crawls))

    def _withdraw(self, journal: bytes, changes: Changes) -> int:
        id, replaced = layout.last_id(journal), self._get(journal) or b""
        record = self._kept(id, changes)
        changes.delete(journal)
        if record is None:  # a later version was sealed in its place, and so in that of the one before it
            return self._erase(layout.unpack_id(replaced), changes)
        url = layout.url_key(record.url)
        newest = self._points_to(url, id, changes)
        gone = self._erase(id, changes)
        if newest and replaced:
            changes.put(url, layout.pack_seen(layout.unpack_id(replaced), time.time()))
        elif not newest:  # a later version may name it; that one now replaces what this one would have
            for later, names in self._scan(b"j"):
                if names == layout.pack_id(id) and later not in changes.deletes:
                    changes.put(later, replaced)
        return gone

    def _erase(self, id: int, changes: Changes) -> int:
        """Add the removal of a record with all that points to it; returns how many records that is, 0 or 1."""
        record = self._kept(id, changes)
        if record is None:
            return 0
        changes.delete(layout.record_key(id))
        for key in record.keys:
            changes.delete(layout.posting_key(key, id))
        url = layout.url_key(record.url)
        if self._points_to(url, id, changes):
            changes.delete(url)
        return 1

    def _kept(self, id: int, changes: Changes) -> Record | None:
        """The record, unless these changes remove it."""
        return self.record(id) if id and layout.record_key(id) not in changes.deletes else None

    def _points_to(self, url: bytes, id: int, changes: Changes) -> bool:
        seen = changes.puts.get(url) or self._get(url)
        return seen is not None and layout.unpack_seen(seen)[0] == id
