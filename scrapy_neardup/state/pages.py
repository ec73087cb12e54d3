"""The page store: pages by id, by URL and by key."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar

from scrapy_neardup.errors import StoreError, StoreMismatch
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.kv.base import SETTING, Changes, Row
from scrapy_neardup.kv.options import DEFAULT, Options
from scrapy_neardup.state import layout
from scrapy_neardup.state.boilerplate import Counting
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.journal import BATCH, Generations
from scrapy_neardup.state.layout import former_key, last_id, meta_key
from scrapy_neardup.state.postings import PostingLists, Postings
from scrapy_neardup.state.recipe import (
    PARAMETERS,
    SECRET_NAME,
    SECRET_SETTING,
    Secret,
    check_recipe,
    pack_recipe,
    renamed,
    secret_of,
    updated,
)
from scrapy_neardup.state.record import Record


@dataclass(frozen=True, slots=True)
class Pending:
    """Unsealed pages, and their crawls."""

    pages: int = 0
    crawls: tuple[str, ...] = ()


class SnapshotInfo:
    """The time of a store's data. A store that holds its state is current, and has rolled unsealed pages back."""

    #: Whether another process uses the state.
    is_held: bool = False
    #: The time of the data, in seconds since 1970.
    as_of: float = 0.0

    def pending(self) -> Pending:
        """Unsealed pages of other crawls: running, killed, or with feeds that were not stored."""
        return Pending()

    def is_pending(self, id: int) -> bool:
        """Whether a page is one of them."""
        return False


#: Seconds between writes that wait for the disk.
SYNC_EVERY = 1.0
#: The key of the state's own secret.
_SECRET = layout.meta_key("secret")
#: The zero bits of an id: 65 microseconds.
_WITHIN = 0xFFFF


class PageStore(SnapshotInfo, Generations, Counting):
    """Pages by id, by URL and by key.

    A page is added under the generation of its crawl. It counts at once but is permanent only once it is sealed; the
    next opening rolls unsealed pages back. One process at a time holds a state; within a process ``open_store`` returns
    one store for each location. Every method may raise StoreError. Nothing here deletes a state to keep going.
    """

    _last_url: tuple[str | None, bytes] = None, b""
    #: The layout of postings.
    postings_type: ClassVar[type[Postings]] = PostingLists

    def __init__(
        self,
        location: str,
        recipe: Mapping[str, Any] | None,
        named_by: str = SETTING,
        secret: Secret | None = None,
        options: Options = DEFAULT,
    ) -> None:
        """Open or create the state at ``location``. Raises StoreMismatch if another recipe or secret wrote it.

        Without a recipe any state opens, for commands that judge nothing. Without a secret the state's own counts, and
        a new state draws one. ``options``: use of memory.
        """
        super().__init__(location, named_by)
        self.options = options
        self._synced = time.monotonic()
        self._closed = False
        self._running = set()
        self._connect()
        try:
            self._read_tally()
            #: The recipe of the fingerprints, as plain data.
            self.recipe = self._check_recipe(recipe, secret)
            self._postings = self.postings_type(self)
            #: The secret of the hashes; None if it is unknown.
            self.secret = secret_of(self.recipe, self._get(_SECRET), secret, location)
            self.known_hashes = Keyed(self.secret.value) if self.secret else None
            newest = next(self._scan(b"r", reverse=True), None)
            self._newest = layout.last_id(newest[0]) if newest else 0
            if not self.is_shared:  # else others add pages, too
                self._largest = self._newest
            self._hold_against_tally()
            self._counts = self._load_counts()
            self._load_hands()
            self.taken_back = self._take_back()
            self._keep_secret(self.secret)
            #: Tools with another name or version that still read our samples alike.
            self.renamed = renamed(self.recipe, recipe or {})
            self.pages = self._count()
        except BaseException:
            self._disconnect()
            raise

    def take_on(self, recipe: Mapping[str, Any]) -> None:
        """Update the names of tools in the recipe; they read our samples alike."""
        found = updated(self.recipe, recipe)
        if found != self.recipe:
            self._write(Changes({layout.meta_key("recipe"): pack_recipe(found)}), sync=True)
            self.recipe = found
        self.renamed = {}

    # For the detector.

    @cached_property
    def hashes(self) -> Keyed:
        """The hashes of the state. Raises StoreMismatch if the secret is unknown."""
        if self.known_hashes is None:
            raise StoreMismatch(
                f"The state at {self.location} was written with a {SECRET_SETTING}, and none is set. Set the value "
                "that its crawl had."
            )
        return self.known_hashes

    def now(self) -> float:
        return time.time()

    def new_id(self) -> int:
        """Return an id larger than every other: nanoseconds since 1970, a multiple of 65,536.

        Ids stand in a dozen rows of a page, and zeros compress.
        """
        self._newest = max((self._newest | _WITHIN) + 1, self._nanoseconds() & ~_WITHIN)
        return self._newest

    def _nanoseconds(self) -> int:
        return time.time_ns()

    def find(self, url: str) -> Record | None:
        """Return the newest record of a URL."""
        seen = self._get(self._url_key(url))
        if seen is None:
            return None
        record = self.record(layout.unpack_seen(seen)[0])
        return (
            record if record is not None and record.url == layout.kept_url(url) else None
        )  # another URL with the same hash

    def by_body(self, body: int) -> Record | None:
        """Return a page with this digest of its bytes, or None."""
        named = self._get(layout.body_key(body)) if body else None
        record = self.record(layout.unpack_id(named)) if named is not None else None
        return record if record is not None and record.is_found_by_body and record.body == body else None

    def last_seen(self, url: str) -> int:
        """Return when a URL was last judged, in seconds since 1970; 0 for never."""
        seen = self._get(self._url_key(url))
        return layout.unpack_seen(seen)[1] if seen else 0

    def records(self) -> Iterator[Record]:
        """Yield all records, oldest first."""
        for key, packed in self._scan(b"r"):
            yield self._unpacked(layout.last_id(key), packed)

    def evidence(self, id: int) -> Evidence | None:
        """Return the evidence of a page, if it was kept."""
        packed = self._get(layout.evidence_key(id))
        try:
            return None if packed is None else Evidence.unpack(packed)
        except ValueError as error:
            raise self.damaged(str(error)) from None

    def postings(self, key: int, limit: int) -> list[int]:
        """Return up to ``limit`` pages under ``key``, newest first."""
        return self.all_postings((key,), limit)[0]

    def all_postings(self, keys: Sequence[int], limit: int) -> list[list[int]]:
        """Return the postings of several keys."""
        return self._postings.find(keys, limit)

    def records_of(self, ids: Sequence[int]) -> list[Record | None]:
        """Return the records of several ids."""
        found = self._get_all([layout.record_key(id) for id in ids])
        rows = zip(ids, found, strict=True)
        return [None if packed is None else self._unpacked(id, packed) for id, packed in rows]

    @property
    def has_lists(self) -> bool:
        """Whether one row holds the postings of a key."""
        return self._postings.are_lists

    def file_postings(self, record: Record, changes: Changes) -> None:
        """Add the postings of a record to ``changes``."""
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
        """File a page in one atomic batch: unsealed under ``generation``, or permanently if that is 0.

        ``replaces``: id of the URL's earlier record, which goes when the new one is sealed. ``seen``: when the page was
        last seen, in seconds since 1970. ``of``: the earlier pages that make it a copy; they count as seen too.
        ``along``: rows to write with it.
        """
        seen = self.now() if seen is None else seen
        id, changes = record.id, Changes(dict(along))
        gone = self._supersede(replaces, changes) if replaces and not generation else 0
        self._postings.file(record.keys, id, changes)
        self._put_record(record, changes)
        if evidence is not None:
            changes.put(layout.evidence_key(id), evidence.pack())
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
        """Record that a URL was seen, now or at ``seen``. ``of``, ``along``: as for ``add``.

        ``renewed``: the record from now on, with the same keys.
        """
        seen = self.now() if seen is None else seen
        changes = Changes({self._url_key(record.url): layout.pack_seen(record.id, seen), **dict(along)})
        if renewed is not None and renewed != record:
            self._lose_body(record, changes)
            self._put_record(renewed, changes)
        self._see(of, seen, changes)
        self._commit(changes)

    def forget(self, ids: Iterable[int]) -> int:
        """Remove pages permanently; return how many existed."""
        ids, before = iter(ids), self.pages
        while batch := list(islice(ids, BATCH)):
            changes = Changes()
            gone = sum(self._erase(id, changes) for id in batch)
            self._write(changes, sync=True)
            self.pages -= gone
        return before - self.pages

    def close(self) -> None:
        """Write the counts and close. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            self._ending = True
            self._write_counts(self._unwritten_hands(), sync=True)
        finally:
            self._disconnect()

    def _commit(self, changes: Changes) -> None:
        """Write, and sync now and then, so that a power cut costs about a second of pages."""
        sync = time.monotonic() - self._synced >= SYNC_EVERY
        self._write(changes, sync=sync)
        if sync:
            self._synced = time.monotonic()

    def _put_record(self, record: Record, changes: Changes) -> None:
        """Add the row of a record, and the row of its digest."""
        changes.put(layout.record_key(record.id), record.pack())
        if record.body and record.is_found_by_body:
            changes.put(layout.body_key(record.body), layout.pack_id(record.id))

    def _see(self, pages: Iterable[Record], seconds: float, changes: Changes) -> None:
        """Record that originals were seen in a copy, so an article that is still copied stays known."""
        for page in pages:
            key = self._url_key(page.url)
            written = changes.puts.get(key) or self._get(key)
            # If a later version is in flight, the URL is no longer this page's.
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
        packed = pack_recipe({**recipe, SECRET_NAME: secret.name})
        self._write(Changes({name: packed} | ({_SECRET: secret.value} if secret.is_own else {})), sync=True)
        return check_recipe(packed, None, self.location)

    def _count(self) -> int:
        """Return the number of pages from the tally, or count them."""
        return self._tally.pages if self.tallied else sum(1 for _ in self._scan(b"r"))


# A page that is better than its original (NEARDUP_KEEP_POLICY) is filed under the id of its group like under a key, and
# the newest such page stands for the group. Nothing else changes: the original keeps its rows, copies name the group,
# and once a better page is rolled back or forgotten, the one before it stands there again.


#: More pages than ever lead one group, because each must be better than the last.
ALL = 10_000


def leader(store: PageStore, group: int, besides: str = "") -> Record | None:
    """Return the newest page that replaced the original of a group; not the page at ``besides``."""
    for id in store.postings(group, ALL):
        record = store.record(id)
        if record is not None and record.leads and record.original == group and record.url != besides:
            return record
    return None


def with_first(store: PageStore, standing: Record) -> tuple[Record, ...]:
    """Return the page that stands for a group and its original: both are seen in each copy."""
    first = store.record(standing.original) if standing.leads else None
    return (standing,) if first is None else (standing, first)


def stands_for(store: PageStore, record: Record, besides: str = "") -> Record | None:
    """Return the page that stands for a page's group; not the page at ``besides``. None if there is none."""
    found = leader(store, record.original, besides)
    if found is None:
        found = record if record.original == record.id else store.record(record.original)
    return found if found is not None and found.url != besides else None


# Parameters and settings that only decide are not in the recipe, so crawls of one state may differ in them. The state
# remembers those of the last crawl, and the log names changes.


DECISIONS_KEY = meta_key("decisions")


def decisions_of(store: PageStore) -> dict[str, Any]:
    """Return the deciding values of the last crawl. Raises StoreDamaged."""
    packed = store.value(DECISIONS_KEY)
    try:
        return {} if packed is None else dict(json.loads(packed))
    except (ValueError, TypeError):
        raise store.damaged("the deciding settings of its last crawl cannot be read") from None


def decide(store: PageStore, said: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Remember the deciding values of this crawl; return the changes, old and new. Raises StoreError."""
    plain = json.loads(json.dumps(said))
    before = decisions_of(store)
    if before != plain:
        packed = json.dumps(plain, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")
        store.write(Changes({DECISIONS_KEY: packed}))
    known = {**_all_parameters(store), **before}
    return {name: (known[name], now) for name, now in plain.items() if name in known and known[name] != now}


def _all_parameters(store: PageStore) -> dict[str, Any]:
    """Return all parameters of the recipe."""
    found = store.recipe.get(PARAMETERS)
    return dict(found) if isinstance(found, dict) else {}


# A migration cannot fingerprint pages without their texts. It keeps them by URL, with their former sketch in a row of
# its own. With that sketch a page that comes again can be recognised as unchanged; see ``judge.former``.


FORMER_KEY = meta_key("former")
_NUMBER = 2


def former_recipes(store: PageStore) -> list[dict[str, Any]]:
    """Return the former recipes, by number. Raises StoreDamaged."""
    packed = store.value(FORMER_KEY)
    try:
        return [] if packed is None else unpack_former(packed)
    except ValueError:
        raise store.damaged("its earlier recipes cannot be read") from None


def pack_former(recipes: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the row of the former recipes."""
    return json.dumps(recipes, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")


def unpack_former(packed: bytes) -> list[dict[str, Any]]:
    """Unpack former recipes. Raises ValueError."""
    try:
        return [dict(recipe) for recipe in json.loads(packed)]
    except TypeError as error:
        raise ValueError(str(error)) from None


def pack_former_sketch(number: int, sketch: bytes) -> bytes:
    """Return a former sketch with the number of its recipe."""
    return number.to_bytes(_NUMBER, "big") + sketch


def former_sketch(store: PageStore, id: int) -> tuple[int, bytes] | None:
    """Return the number of a page's former recipe and its sketch, or None."""
    packed = store.value(former_key(id))
    return None if packed is None else (int.from_bytes(packed[:_NUMBER], "big"), packed[_NUMBER:])


def former_problem(key: bytes, packed: bytes, recipes: int) -> str:
    """Say what is wrong with the row of a former sketch; empty for nothing."""
    if len(key) != len(former_key(0)):
        return f"the key {key!r} is no key of an earlier sketch"
    if len(packed) < _NUMBER or int.from_bytes(packed[:_NUMBER], "big") >= recipes:
        return f"that of {last_id(key):016x} names none of the {recipes} earlier recipes"
    return ""
