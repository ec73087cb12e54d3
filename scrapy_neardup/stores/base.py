"""The state, in terms of pages; a backend adds a few small methods over ordered bytes."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar

from scrapy_neardup.errors import StoreError, StoreMismatch
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.stores import layout
from scrapy_neardup.stores.changes import Changes, Row
from scrapy_neardup.stores.counting import Counting
from scrapy_neardup.stores.evidence import Evidence
from scrapy_neardup.stores.generations import BATCH, Generations
from scrapy_neardup.stores.moment import Moment
from scrapy_neardup.stores.options import DEFAULT, Options
from scrapy_neardup.stores.place import SETTING
from scrapy_neardup.stores.postings import postings_of
from scrapy_neardup.stores.recipe import check_recipe, pack_recipe, renamed, updated
from scrapy_neardup.stores.record import Record
from scrapy_neardup.stores.secret import SECRET_NAME, SECRET_SETTING, Secret, secret_of

#: Seconds after which a write is made to reach the disk, with all writes before it.
SYNC_EVERY = 1.0
#: Where a state holds a secret of its own.
_SECRET = layout.meta_key("secret")
#: The bits of an id that are zero: 65 microseconds.
_WITHIN = 0xFFFF


class Store(Moment, Generations, Counting):
    """Pages by id, by URL and by key, in generations.

    A page that is added under a generation counts at once, but for good only when it was sealed: the next
    opening takes back whatever is unsealed. One process at a time holds a state; within a process
    ``open_store`` hands out one store for each location.

    Every method may raise StoreError. Nothing here deletes state to get going again.
    """

    _last_url: tuple[str | None, bytes] = None, b""
    #: The format in which a new state is written; one that is there keeps its own.
    new_format: ClassVar[int] = layout.FORMAT

    def __init__(
        self,
        location: str,
        recipe: Mapping[str, Any] | None,
        named_by: str = SETTING,
        secret: Secret | None = None,
        options: Options = DEFAULT,
    ) -> None:
        """Open or create the state at ``location``; raises StoreMismatch if another recipe or secret wrote it.

        Without a recipe any is taken, to look at what is there or tidy it up: nothing can be judged by such a store.
        Without a secret the state's own will do, and a new state draws one. ``options``: how it is to use memory.
        """
        super().__init__(location, named_by)
        self.options = options
        self._synced = time.monotonic()
        self._closed = False
        self._running = set()
        self._connect()
        try:
            self._read_tally()
            #: By what the pages were fingerprinted, as plain data.
            self.recipe = self._check_recipe(recipe, secret)
            format = self.recipe.get("format", layout.FORMAT)
            self.width = layout.FORMATS[format]
            self._has_gbk = format >= layout.GBK_FROM
            self._has_since = format >= layout.SINCE_FROM
            self._postings = postings_of(self, format)
            #: Under which the state hashes; None where that is not known here.
            self.secret = secret_of(self.recipe, self._get(_SECRET), secret, location)
            self.known_hashes = Keyed(self.secret.value, self.width) if self.secret else None
            newest = next(self._scan(b"r", reverse=True), None)
            self._newest = layout.last_id(newest[0]) if newest else 0
            if not self.is_shared:  # else others add pages, too
                self._largest = self._newest
            self._hold_against_tally()
            self._counts = self._load_counts()
            self._load_hands()
            self.taken_back = self._take_back()
            self._keep_secret(self.secret)
            #: Tools that have another name or version here, and read the samples as those did that wrote the state.
            self.renamed = renamed(self.recipe, recipe or {})
            self.pages = self._count()
        except BaseException:
            self._disconnect()
            raise

    def take_on(self, recipe: Mapping[str, Any]) -> None:
        """Have the recipe name the tools as they are called now, where they read as those that wrote the state did."""
        found = updated(self.recipe, recipe)
        if found != self.recipe:
            self._write(Changes({layout.meta_key("recipe"): pack_recipe(found)}), sync=True)
            self.recipe = found
        self.renamed = {}

    # What the detector calls.

    @cached_property
    def hashes(self) -> Keyed:
        """What hashes under its secret; raises StoreMismatch where that is not known here."""
        if self.known_hashes is None:
            raise StoreMismatch(
                f"The state at {self.location} was written with a {SECRET_SETTING}, and none is set. Set the value "
                "that its crawl had."
            )
        return self.known_hashes

    def now(self) -> float:
        return time.time()

    def new_id(self) -> int:
        """An id larger than every other: the time in nanoseconds, or the next one after the last.

        It is a multiple of 65,536, as ids stand in a dozen rows of a page, and what is zero takes no room there.
        """
        self._newest = max((self._newest | _WITHIN) + 1, self._nanoseconds() & ~_WITHIN)
        return self._newest

    def _nanoseconds(self) -> int:
        return time.time_ns()

    def find(self, url: str) -> Record | None:
        """The newest record of a URL."""
        seen = self._get(self._url_key(url))
        if seen is None:
            return None
        record = self.record(layout.unpack_seen(seen)[0])
        return (
            record if record is not None and record.url == layout.kept_url(url) else None
        )  # another URL with the same hash

    def by_body(self, body: int) -> Record | None:
        """A page that was made from a body with this digest; None if none is found by it."""
        named = self._get(layout.body_key(body)) if body else None
        record = self.record(layout.unpack_id(named)) if named is not None else None
        return record if record is not None and record.is_found_by_body and record.body == body else None

    def last_seen(self, url: str) -> int:
        """When a URL was last judged, in seconds since 1970; 0 if never."""
        seen = self._get(self._url_key(url))
        return layout.unpack_seen(seen)[1] if seen else 0

    def records(self) -> Iterator[Record]:
        """All records, in the order in which their pages were first seen."""
        for key, packed in self._scan(b"r"):
            yield self._unpacked(layout.last_id(key), packed)

    def evidence(self, id: int) -> Evidence | None:
        """What can be told of a page, if anything was kept."""
        packed = self._get(layout.evidence_key(id))
        try:
            return None if packed is None else Evidence.unpack(packed)
        except ValueError as error:
            raise self.damaged(str(error)) from None

    def postings(self, key: int, limit: int) -> list[int]:
        """Ids of up to ``limit`` pages that are filed under ``key``, the newest first."""
        return self.all_postings((key,), limit)[0]

    def all_postings(self, keys: Sequence[int], limit: int) -> list[list[int]]:
        """``postings`` of each of several keys."""
        return self._postings.find(keys, limit)

    def records_of(self, ids: Sequence[int]) -> list[Record | None]:
        """``record`` of each of several ids."""
        found = self._get_all([layout.record_key(id) for id in ids])
        rows = zip(ids, found, strict=True)
        return [None if packed is None else self._unpacked(id, packed) for id, packed in rows]

    @property
    def has_lists(self) -> bool:
        """Whether the postings of a key are in one row: see ``postings``."""
        return self._postings.are_lists

    def file_postings(self, record: Record, changes: Changes) -> None:
        """Add to changes what files a record under its keys, for whoever writes records himself."""
        self._postings.file(record.keys, record.id, changes)

    def add(
        self,
        record: Record,
        evidence: Evidence | None = None,
        *,
        generation: int = 0,
        replaces: int = 0,
        seen: float | None = None,
        of: Collection[Record] = (),
        along: Collection[Row] = (),
    ) -> None:
        """File a page in one atomic batch: unsealed under ``generation``, or for good if that is 0.

        ``replaces`` is the id of the same URL's earlier record, which may be the page's own without a generation; it
        goes when the new one is sealed. ``seen``: when the page was last seen, in seconds since 1970; now if not given.
        ``of``: the earlier pages by which it is known to be a copy; they were seen then, too.
        ``along``: rows of others that are to be there if the page is.
        """
        seen = self.now() if seen is None else seen
        id, changes = record.id, Changes(dict(along))
        gone = self._supersede(replaces, changes) if replaces and not generation else 0
        self._postings.file(record.keys, id, changes)
        self._put_record(record, changes)
        if evidence is not None:
            changes.put(layout.evidence_key(id), evidence.pack(gbk=self._has_gbk))
        if generation:
            changes.put(layout.journal_key(generation, id), layout.pack_id(replaces))
        changes.put(self._url_key(record.url), layout.pack_seen(id, seen))
        if of:
            self._see(of, seen, changes)
        self._commit(changes)
        self._newest, self._largest = max(self._newest, id), max(self._largest, id)
        self._added(id)
        self.pages += 1 - gone

    def touch(
        self,
        record: Record,
        seen: float | None = None,
        of: Collection[Record] = (),
        along: Collection[Row] = (),
        renewed: Record | None = None,
    ) -> None:
        """Note that a URL was seen again: now, or at ``seen``. ``of``, ``along``: as for ``add``.

        ``renewed``: what is to be known of it from now on, under the same keys.
        """
        seen = self.now() if seen is None else seen
        changes = Changes({self._url_key(record.url): layout.pack_seen(record.id, seen), **dict(along)})
        if renewed is not None and renewed != record:
            self._lose_body(record, changes)
            self._put_record(renewed, changes)
        self._see(of, seen, changes)
        self._commit(changes)

    def forget(self, ids: Iterable[int]) -> int:
        """Remove pages for good, with all that is known of them; returns how many were there."""
        ids, before = iter(ids), self.pages
        while batch := list(islice(ids, BATCH)):
            changes = Changes()
            gone = sum(self._erase(id, changes) for id in batch)
            self._write(changes, sync=True)
            self.pages -= gone
        return before - self.pages

    def close(self) -> None:
        """Write down the counts and let go of the state; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            self._ending = True
            self._write_counts(self._unwritten_hands(), sync=True)
        finally:
            self._disconnect()

    # How.

    def _commit(self, changes: Changes) -> None:
        """Write; every so often wait for the disk, so that a power cut costs about a second of pages."""
        sync = time.monotonic() - self._synced >= SYNC_EVERY
        self._write(changes, sync=sync)
        if sync:
            self._synced = time.monotonic()

    def _put_record(self, record: Record, changes: Changes) -> None:
        """Add what holds a record, and by which it is found if that is not its URL or a key."""
        kept = record if self._has_since or not record.since else replace(record, since=0)
        changes.put(layout.record_key(record.id), kept.pack(self.width))
        if record.body and record.is_found_by_body:
            changes.put(layout.body_key(record.body), layout.pack_id(record.id))

    def _see(self, pages: Iterable[Record], seconds: float, changes: Changes) -> None:
        """Pages were seen in their copies: so an article that is still copied is known as long as it is."""
        for page in pages:
            key = self._url_key(page.url)
            written = changes.puts.get(key) or self._get(key)
            # Where a later version is on its way, the URL is no longer this page's.
            if written is not None and layout.unpack_seen(written)[0] == page.id:
                changes.put(key, layout.pack_seen(page.id, max(seconds, layout.unpack_seen(written)[1])))

    def _url_key(self, url: str) -> bytes:
        last = self._last_url
        if url != last[0]:  # a page is looked for, and then filed
            last = self._last_url = url, layout.url_key(url, self.hashes)
        return last[1]

    def _check_recipe(self, recipe: Mapping[str, Any] | None, secret: Secret | None) -> dict[str, Any]:
        name = layout.meta_key("recipe")
        written = self._get(name)
        if written is not None:
            try:
                return check_recipe(written, recipe, self.location, self.named_by)
            except ValueError as error:
                raise self.damaged(f"its recipe cannot be read ({error})") from None
        empty = next(self._scan(b""), None) is None
        if not empty:
            raise StoreMismatch(
                f"{self.location} contains data but no scrapy-neardup recipe, so it is not a state. It is unchanged. "
                f"Set {self.named_by} to another path."
            )
        if recipe is None:
            raise StoreError(f"There is no state at {self.location}. Name a state that a crawl has written.")
        secret = secret or Secret.drawn()
        packed = pack_recipe({**recipe, "format": self.new_format, SECRET_NAME: secret.name})
        self._write(Changes({name: packed} | ({_SECRET: secret.value} if secret.is_own else {})), sync=True)
        return check_recipe(packed, None, self.location)

    def _count(self) -> int:
        """What the tally says; a state that has none is new, or was filled by another store."""
        return self._tally.pages if self.tallied else sum(1 for _ in self._scan(b"r"))
