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
from scrapy_neardup.state import layout
from scrapy_neardup.state.boilerplate import Counting
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.journal import BATCH, Generations
from scrapy_neardup.state.kv import SETTING, Changes, Row
from scrapy_neardup.state.layout import former_key, last_id, meta_key
from scrapy_neardup.state.options import DEFAULT, Options
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

# ----------------------------------------------------------------------------------------------------------------------
# As of when a store tells of a state, and what of it does not count for good yet.


@dataclass(frozen=True, slots=True)
class Pending:
    """Pages that are not sealed, and the crawls that they are of."""

    pages: int = 0
    crawls: tuple[str, ...] = ()


class SnapshotInfo:
    """A store that holds its state: that is as it is now, and what was not sealed was taken back at the opening.

    An ``Overlay`` tells otherwise.
    """

    #: Whether another crawl, or whoever else, is at work on the state.
    is_held: bool = False
    #: When it was as it is here, in seconds since 1970.
    as_of: float = 0.0

    def pending(self) -> Pending:
        """What is not sealed of crawls of others: at work, killed, or their feed was not stored."""
        return Pending()

    def is_pending(self, id: int) -> bool:
        """Whether a page is one of these."""
        return False


# ----------------------------------------------------------------------------------------------------------------------
# The state, in terms of pages; a backend adds a few small methods over ordered bytes.


#: Seconds after which a write is made to reach the disk, with all writes before it.
SYNC_EVERY = 1.0
#: Where a state holds a secret of its own.
_SECRET = layout.meta_key("secret")
#: The bits of an id that are zero: 65 microseconds.
_WITHIN = 0xFFFF


class PageStore(SnapshotInfo, Generations, Counting):
    """Pages by id, by URL and by key, in generations.

    A page that is added under a generation counts at once, but for good only when it was sealed: the next
    opening takes back whatever is unsealed. One process at a time holds a state; within a process
    ``open_store`` hands out one store for each location.

    Every method may raise StoreError. Nothing here deletes state to get going again.
    """

    _last_url: tuple[str | None, bytes] = None, b""
    #: How its postings are written.
    postings_type: ClassVar[type[Postings]] = PostingLists

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
            self._postings = self.postings_type(self)
            #: Under which the state hashes; None where that is not known here.
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
        changes.put(layout.record_key(record.id), record.pack())
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
        packed = pack_recipe({**recipe, SECRET_NAME: secret.name})
        self._write(Changes({name: packed} | ({_SECRET: secret.value} if secret.is_own else {})), sync=True)
        return check_recipe(packed, None, self.location)

    def _count(self) -> int:
        """What the tally says; a state that has none is new, or was filled by another store."""
        return self._tally.pages if self.tallied else sum(1 for _ in self._scan(b"r"))


# ----------------------------------------------------------------------------------------------------------------------
# Which page stands for a group: its original, or the last of those copies that were better (NEARDUP_KEEP_POLICY).
#
# A better page is filed under the id of its group, as if that were one of its keys, and the newest one so filed stands
# for the group. Nothing that was written before is touched for it: the old original keeps its record, its keys and its
# sketch, copies name the group as before, and once a better page is taken back or forgotten the one before it stands
# there again.


#: More pages than ever lead one group: each has to be better than the one before.
ALL = 10_000


def leader(store: PageStore, group: int, besides: str = "") -> Record | None:
    """The newest page that has come to stand for a group, and has not the URL ``besides``; None if there is none."""
    for id in store.postings(group, ALL):
        record = store.record(id)
        if record is not None and record.leads and record.original == group and record.url != besides:
            return record
    return None


def with_first(store: PageStore, standing: Record) -> tuple[Record, ...]:
    """The page that stands for a group and its first one, as far as that is there: both are seen in each copy."""
    first = store.record(standing.original) if standing.leads else None
    return (standing,) if first is None else (standing, first)


def stands_for(store: PageStore, record: Record, besides: str = "") -> Record | None:
    """The page that stands for the group of a page, and has not the URL ``besides``; None if there is none."""
    found = leader(store, record.original, besides)
    if found is None:
        found = record if record.original == record.id else store.record(record.original)
    return found if found is not None and found.url != besides else None


# ----------------------------------------------------------------------------------------------------------------------
# By what the last crawl of a state decided: parameters and settings on which no fingerprint depends.
#
# They are no part of the recipe, so two crawls of one state may have them different. The state remembers those of the
# last one, so that a log line can tell what is decided otherwise from here on.


DECISIONS_KEY = meta_key("decisions")


def decisions_of(store: PageStore) -> dict[str, Any]:
    """Those of the last crawl, by name; empty if there was none. Raises StoreDamaged for a row that is none."""
    packed = store.value(DECISIONS_KEY)
    try:
        return {} if packed is None else dict(json.loads(packed))
    except (ValueError, TypeError):
        raise store.damaged("the deciding settings of its last crawl cannot be read") from None


def decide(store: PageStore, said: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Remember by what this crawl decides; returns what has changed, as it was and as it is. Raises StoreError."""
    plain = json.loads(json.dumps(said))
    before = decisions_of(store)
    if before != plain:
        packed = json.dumps(plain, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")
        store.write(Changes({DECISIONS_KEY: packed}))
    known = {**_all_parameters(store), **before}
    return {name: (known[name], now) for name, now in plain.items() if name in known and known[name] != now}


def _all_parameters(store: PageStore) -> dict[str, Any]:
    """Those in the recipe: of a state that was begun before these were left out of it, all of them."""
    found = store.recipe.get(PARAMETERS)
    return dict(found) if isinstance(found, dict) else {}


# ----------------------------------------------------------------------------------------------------------------------
# By which recipes pages were judged that a migration could not fingerprint anew, as their texts were not there.
#
# Such a page is known by its URL. Its former sketch is kept in a row of its own, where nobody takes it for one of now:
# by it the page can be known to be unchanged when it comes again (see ``judging.former``).


FORMER_KEY = meta_key("former")
_NUMBER = 2


def former_recipes(store: PageStore) -> list[dict[str, Any]]:
    """Those recipes, in the order of their numbers; raises StoreDamaged for a row that is none."""
    packed = store.value(FORMER_KEY)
    try:
        return [] if packed is None else unpack_former(packed)
    except ValueError:
        raise store.damaged("its earlier recipes cannot be read") from None


def pack_former(recipes: Sequence[Mapping[str, Any]]) -> bytes:
    """The row that holds them."""
    return json.dumps(recipes, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")


def unpack_former(packed: bytes) -> list[dict[str, Any]]:
    """What ``pack_former`` wrote; raises ValueError for anything else."""
    try:
        return [dict(recipe) for recipe in json.loads(packed)]
    except TypeError as error:
        raise ValueError(str(error)) from None


def pack_former_sketch(number: int, sketch: bytes) -> bytes:
    """The former sketch of a page, by the recipe with this number."""
    return number.to_bytes(_NUMBER, "big") + sketch


def former_sketch(store: PageStore, id: int) -> tuple[int, bytes] | None:
    """The number of a page's recipe, and its sketch; None if it is not there."""
    packed = store.value(former_key(id))
    return None if packed is None else (int.from_bytes(packed[:_NUMBER], "big"), packed[_NUMBER:])


def former_problem(key: bytes, packed: bytes, recipes: int) -> str:
    """What is wrong with the row of a former sketch, of a state with so many former recipes; empty if nothing is."""
    if len(key) != len(former_key(0)):
        return f"the key {key!r} is no key of an earlier sketch"
    if len(packed) < _NUMBER or int.from_bytes(packed[:_NUMBER], "big") >= recipes:
        return f"that of {last_id(key):016x} names none of the {recipes} earlier recipes"
    return ""
