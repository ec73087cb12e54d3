"""The page store: pages by id, by URL and by key.

The keys of a page are hashes under which similar pages are found; rows of the state have keys of another kind, see
``layout``. To file a page is to add all its rows: its record, and its id under its URL and under each of its keys.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.kv.base import Changes, KeyValueStore, Row
from scrapy_neardup.state import layout
from scrapy_neardup.state.boilerplate import Counts, CountsOfSite, Sentences, read_counts
from scrapy_neardup.state.expiry import Bounds, Expiry
from scrapy_neardup.state.journal import Journal, UnsealedPages, crawls_in
from scrapy_neardup.state.recipe import Secret, pack_recipe, updated
from scrapy_neardup.state.record import Evidence, Record
from scrapy_neardup.state.records import PageRows

T = TypeVar("T")
#: Pages between writes of the counts. A kill loses the counts of these pages at most.
_COUNTS_EVERY = 5000


class PageStore(PageRows):
    """Pages by id, by URL and by key, in a key-value store.

    A page is added under the generation of its crawl. It counts at once but is permanent only once it is sealed; the
    next opening rolls unsealed pages back. Every method may raise StoreError. Nothing here deletes a state to keep
    going. See ``opening`` for how to get one.
    """

    #: Pages that the opening rolled back.
    rolled_back = UnsealedPages()
    #: Text tools with another version, but the same output on our samples: role -> (old, new).
    renamed: Mapping[str, tuple[str, str]]

    def __init__(
        self,
        kv: KeyValueStore,
        recipe: dict[str, Any],
        secret: Secret | None,
        pages: int,
        snapshot: KeyValueStore | None = None,
    ) -> None:
        """``recipe``, ``secret``: those of the state, see ``read_recipe``. ``snapshot``: the rows of the opening, for a
        reader or a dry run; None for a state that is written to. Raises StoreDamaged.
        """
        super().__init__(kv, secret, pages)
        self.scheme, self.location = kv.scheme, kv.location
        self.is_persistent, self.is_shared = kv.is_persistent, kv.is_shared
        #: The recipe of the fingerprints, as plain data.
        self.recipe = recipe
        self.renamed = {}
        self.snapshot, self.pages_at_opening = snapshot, pages
        #: Whether another process uses the state, and the time of the rows in seconds since 1970.
        self.is_held, self.as_of = (snapshot.is_held, snapshot.as_of) if snapshot is not None else (False, 0.0)
        self._is_closed = False
        #: What counts and judges pages instead of ``counts``; the counts of the last site; the pages counted so far.
        self._exact: Callable[[str, Keyed], CountsOfSite] | None = None
        self._last_site: CountsOfSite | None = None
        self._counted = 0
        self._make_parts()
        if snapshot is not None:
            self.journal.running |= {layout.last_id(key) for key, _ in snapshot.scan(layout.GENERATIONS)}

    def _make_parts(self) -> None:
        newest = next(self.kv.scan(layout.RECORDS, reverse=True), None)
        self.clock.newest = self.kv.largest = layout.last_id(newest[0]) if newest else 0
        self.counts = self._load_counts()
        self._expiry = Expiry(self)
        self.journal = Journal(self, self._expiry)

    # The state as a whole.

    def pending(self) -> UnsealedPages:
        """Return the unsealed pages: of running or killed crawls, or with feeds that were not stored."""
        kv = self.snapshot or self.kv
        return UnsealedPages(sum(1 for _ in kv.scan(layout.UNSEALED)), tuple(who for who, _ in crawls_in(kv).values()))

    def note_rollback(self, rolled_back: UnsealedPages) -> None:
        self.rolled_back = rolled_back

    def update_recipe(self, recipe: Mapping[str, Any]) -> None:
        """Update the names of tools in the recipe; they read our samples alike."""
        found = updated(self.recipe, recipe)
        if found != self.recipe:
            self.kv.write(Changes({layout.meta_key("recipe"): pack_recipe(found)}), sync=True)
            self.recipe = found
        self.renamed = {}

    def new_id(self) -> int:
        return self.clock.new_id()

    def close(self) -> None:
        """Write the counts and close. A second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            self.kv.close(None if self.kv.is_scratch else Changes(self.counts.rows(changed=True)))

    # Rows, for commands and small tables; see ``layout``.

    def rows(self, prefix: bytes) -> Iterator[Row]:
        return self.kv.scan(prefix)

    def unpacked(self, prefix: bytes, unpack: Callable[[bytes, bytes], T]) -> Iterator[T]:
        """Yield unpacked rows. Raises StoreDamaged where ``unpack`` raises ValueError."""
        try:
            for key, packed in self.kv.scan(prefix):
                yield unpack(key, packed)
        except ValueError as error:
            raise self.kv.damage_error(str(error)) from None

    def write(self, changes: Changes, *, added: int = 0) -> None:
        """Apply changes unchecked, and wait for the disk. ``added``: how many records are new."""
        self.apply(changes, sync=True, added=added)
        for key in changes.puts:
            if key.startswith(layout.RECORDS):
                self.note_id(layout.last_id(key))

    # Pages.

    def find(self, url: str) -> Record | None:
        """Return the newest record of a URL."""
        seen = self.kv.get(self.url_key(url))
        if seen is None:
            return None
        record = self.record(layout.unpack_seen(seen)[0])
        # Another URL may have the same hash.
        return record if record is not None and record.url == layout.kept_url(url) else None

    def last_seen(self, url: str) -> int:
        """Return when a URL was last judged, in seconds since 1970; 0 for never."""
        seen = self.kv.get(self.url_key(url))
        return layout.unpack_seen(seen)[1] if seen else 0

    def records_of(self, ids: Sequence[int]) -> list[Record | None]:
        found = self.kv.get_all([layout.record_key(id) for id in ids])
        rows = zip(ids, found, strict=True)
        return [None if packed is None else self.unpack_record(id, packed) for id, packed in rows]

    def evidence(self, id: int) -> Evidence | None:
        """Return the evidence of a page, if it was kept."""
        packed = self.kv.get(layout.evidence_key(id))
        try:
            return None if packed is None else Evidence.unpack(packed)
        except ValueError as error:
            raise self.kv.damage_error(str(error)) from None

    def postings(self, key: int, limit: int) -> list[int]:
        """Return up to ``limit`` pages under ``key``, newest first."""
        return self.all_postings((key,), limit)[0]

    def all_postings(self, keys: Sequence[int], limit: int) -> list[list[int]]:
        return self._postings.find(keys, limit)

    def add(
        self,
        record: Record,
        evidence: Evidence | None = None,
        *,
        generation: int = 0,
        replaces: int = 0,
        seen: float | None = None,
        copied_from: Collection[Record] = (),
        extra_rows: Collection[Row] = (),
    ) -> None:
        """File a page in one atomic batch: unsealed under ``generation``, or permanently if that is 0.

        ``replaces``: id of the URL's earlier record, which goes when the new one is sealed. ``seen``: when the page was
        last seen, in seconds since 1970. ``copied_from``: the earlier pages that make it a copy; they count as seen
        too. ``extra_rows``: rows to write with it.
        """
        seconds = self.clock.now() if seen is None else seen

        def write() -> None:
            changes = Changes(dict(extra_rows))
            erases = replaces and not generation and self._exact is None
            gone = self.journal.supersede(replaces, changes) if erases else 0
            self.file(record, changes, seconds, evidence)
            if generation:
                changes.put(layout.journal_key(generation, record.id), layout.pack_id(replaces))
            else:
                self._expiry.requeue(record.id, changes, is_new=True)
            if copied_from:
                self.see(copied_from, seconds, changes)
            self.apply(changes, added=1 - gone)

        self.kv.run(write)
        self.note_id(record.id)

    def touch(
        self,
        record: Record,
        seen: float | None = None,
        copied_from: Collection[Record] = (),
        extra_rows: Collection[Row] = (),
        renewed: Record | None = None,
    ) -> None:
        """Record that a URL was seen, now or at ``seen``. ``copied_from``, ``extra_rows``: as for ``add``.

        ``renewed``: the record from now on, with the same keys.
        """
        seconds = self.clock.now() if seen is None else seen

        def write() -> None:
            changes = Changes({self.url_key(record.url): layout.pack_seen(record.id, seconds), **dict(extra_rows)})
            if renewed is not None and renewed != record:
                changes.put(layout.record_key(renewed.id), renewed.pack())
            self.see(copied_from, seconds, changes)
            self.apply(changes)

        self.kv.run(write)

    def forget(self, ids: Iterable[int]) -> int:
        """Remove pages permanently; return how many existed."""
        ids, gone = iter(ids), 0
        while batch := list(islice(ids, self.journal.batch)):
            gone += self.kv.run(partial(self._forget, batch))
        return gone

    def _forget(self, ids: Iterable[int]) -> int:
        changes = Changes()
        gone = sum(self.erase(id, changes) for id in ids)
        self.apply(changes, sync=True, added=-gone)
        return gone

    def expire(self, bounds: Bounds) -> int:
        """Remove a few pages that exceed the bounds; return how many. Call it for each page."""
        return self.kv.run(lambda: self._expiry.expire(bounds, self.journal.is_unsealed))

    # Boilerplate. Counts are in memory and have a fixed size.

    def _load_counts(self) -> Counts:
        """Return the counts that are written. Raises StoreDamaged."""
        try:
            return read_counts(self.kv.scan(b"b"))
        except ValueError as error:
            raise self.kv.damage_error(str(error)) from None

    def on_site(self, site: str) -> CountsOfSite:
        """Return the counts of a site by which pages are judged; see ``site_of``. The name may be empty."""
        if self._last_site is None or self._last_site.site != site:  # a page asks several times
            self._last_site = (self._exact or self.counts.on_site)(site, self.hashes)
        return self._last_site

    def use_exact_counts(self, on_site: Callable[[str, Keyed], CountsOfSite]) -> None:
        """Count and judge pages with the counts of each site that a function returns. They are never written.

        From now on no record is erased. So every page only adds to the state, and the states of parts can be added up.
        """
        self._exact, self._last_site = on_site, None

    def note(self, sentences: Sentences, site: str, *, everywhere: bool = True, page: int | None = None) -> None:
        """Count the sentences of a page (32-bit fingerprints) for its site, and for all sites if ``everywhere``.

        A copy is not counted for all sites. ``page``: a 32-bit number of the page, which counts at most once.

        Counts are written at the close and every few thousand pages. A rolled-back page stays counted, as one page
        makes few sentences boilerplate. If the write fails, the next one includes it.
        """
        if self.on_site(site).note(sentences, everywhere=everywhere, page=page):
            self._counted += 1
            if self._counted % _COUNTS_EVERY == 0:
                self._write_counts(sync=False)

    def note_form(self, site: str, *, in_form: bool) -> None:
        """Count a page of a site, and whether it is a form: a template of the site with other names or numbers."""
        self.on_site(site).note_form(in_form=in_form)

    def add_counts(self, counts: Counts, in_both: int = 0) -> None:
        """Add counts of another state and write them; ``in_both``: an upper bound for pages that both have counted."""
        self.counts.merge(counts, in_both)
        self._write_counts(sync=True)

    def _write_counts(self, *, sync: bool) -> None:
        if not self.kv.is_scratch:  # else nobody reads them again
            self.kv.write(Changes(self.counts.rows(changed=True)), sync=sync)
            self.counts.saved()


# A page that is better than its original (NEARDUP_KEEP_POLICY) is also listed in the postings under the lowest 5 bytes
# of its group's id, as under a key. Other pages may have that key by chance; they do not lead this group, so they are
# passed over. The newest better page represents the group. The original keeps its rows, and copies name the group. Once
# a better page is rolled back or forgotten, the one before it represents the group again.


#: More pages than ever lead one group, because each must be better than the last.
ALL = 10_000


def newest_replacement(store: PageStore, group: int, except_url: str = "") -> Record | None:
    """Return the newest page that replaced the original of a group; not the page at ``except_url``."""
    for id in store.postings(group, ALL):
        record = store.record(id)
        if record is not None and record.has_led and record.original == group and record.url != except_url:
            return record
    return None


def representative_and_original(store: PageStore, standing: Record) -> tuple[Record, ...]:
    """Return the page that represents a group, and the original if that is another: each copy shows both."""
    first = store.record(standing.original) if standing.has_led else None
    return (standing,) if first is None else (standing, first)


def representative_of(store: PageStore, record: Record, except_url: str = "") -> Record | None:
    """Return the page that represents a page's group; not the page at ``except_url``. None if there is none."""
    found = newest_replacement(store, record.original, except_url)
    if found is None:
        found = record if record.original == record.id else store.record(record.original)
    return found if found is not None and found.url != except_url else None
