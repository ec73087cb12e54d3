"""Open the state at a URL, once for each location of this process."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from scrapy_neardup.errors import SettingsError, StoreError, StoreMismatch
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.kv.base import SETTING, Engine, KeyValueStore, without_password
from scrapy_neardup.kv.files import FileEngine
from scrapy_neardup.kv.memory import Memory, Transaction
from scrapy_neardup.state import layout
from scrapy_neardup.state.journal import crawls_in
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import RECIPE, SECRET, Secret, fits, read_recipe, renamed, secret_of
from scrapy_neardup.state.urls import ENGINES, default_url, has_placeholders, parse_url
from scrapy_neardup.state.verifier import row_problems

#: The page store of a shared state, and the rows of a temporary one; imported on first use.
_SHARED = "scrapy_neardup.server.store:RedisStore"
_TEMPORARY = "scrapy_neardup.kv.leveldb:Temporary"

# Open stores and their numbers of users, by location and whether it is a dry run. One handle for each path, because a
# second one would drop the first one's lock.
_open_stores: dict[tuple[str, bool], tuple[PageStore, int]] = {}


def open_at(
    kind: type[Engine],
    location: str,
    recipe: Mapping[str, Any] | None,
    named_by: str = SETTING,
    secret: Secret | None = None,
) -> PageStore:
    """Open or create the state at a location. Raises StoreMismatch if another recipe or secret wrote it.

    Without a recipe any state opens, for commands that judge nothing. Without a secret the state's own counts, and a
    new state draws one.
    """
    engine = kind(location, named_by)
    if isinstance(engine, FileEngine):
        engine.hold()
    return open_rows(engine, recipe, named_by, secret)


def memory_state(recipe: Mapping[str, Any], secret: Secret | None = None) -> PageStore:
    """Make a state in memory."""
    return open_rows(Memory(), recipe, secret=secret)


def open_rows(
    kv: KeyValueStore,
    recipe: Mapping[str, Any] | None,
    named_by: str = SETTING,
    secret: Secret | None = None,
    snapshot: KeyValueStore | None = None,
) -> PageStore:
    """Make the page store of opened rows. Roll back the unsealed pages of ended crawls, unless it is a snapshot."""
    try:
        if snapshot is kv and kv.get(RECIPE) is None:
            recipe = None  # nothing is begun there
        written = kv.run(lambda: read_recipe(kv, recipe, named_by, secret))
        own = secret_of(written, kv.get(SECRET), secret, kv.location)
        source = kv if snapshot is None else snapshot
        if source.must_verify:
            _verify(source, own)
        pages = 0 if kv.is_shared else kv.count(layout.RECORDS) if source.tally is None else source.tally.pages
        kind: type[PageStore] = resolve_name(_SHARED) if kv.is_shared else PageStore
        store = kind(kv, written, own, pages, snapshot)
        store.renamed = renamed(written, recipe or {})
        if snapshot is None or (snapshot is not kv and not snapshot.is_held):
            crawls = crawls_in(kv)
            kv.accept()
            store.note_rollback(store.journal.roll_back_crawls(crawls, lists=snapshot is None))
        if own is not None and own.is_own:
            kv.keep_secret(own.value)
        return store
    except BaseException:
        kv.close()
        raise


def _verify(kv: KeyValueStore, secret: Secret | None) -> None:
    """Compare all rows with the tally. Raises StoreDamaged."""
    assert kv.tally is not None
    if not kv.tally.sequence:
        raise kv.damage_error("it has a recipe, but its tally is missing")
    hashes = Keyed(secret.value) if secret else None
    for problem in (*row_problems(kv, kv.tally, hashes), *kv.file_problems()):
        raise kv.damage_error(problem)


def open_store(
    url: str,
    recipe: Mapping[str, Any] | None,
    named_by: str = SETTING,
    secret: Secret | None = None,
    *,
    dry_run: bool = False,
) -> PageStore:
    """Open the state at a URL, once per location of this process; give it back with ``close_store``.

    Without a recipe there must be a state. ``named_by``: see ``parse_url``; ``secret``: see ``open_at``.
    ``dry_run``: keep writes in memory and change nothing.
    """
    if has_placeholders(url):
        shown = without_password(url)
        raise SettingsError(f"{named_by} is {shown!r}, but no spider fills it in here. Write a name for each %(…)s.")
    kind, location = parse_url(url, named_by)
    if not kind.is_persistent:
        return open_at(kind, location, recipe, named_by, secret)
    place = location, dry_run
    if place not in _open_stores:
        if dry_run:
            snapshot = _take_snapshot(kind, location, named_by)
            made = open_rows(Transaction(snapshot), recipe, named_by, secret, snapshot)
        else:
            made = open_at(kind, location, recipe, named_by, secret)
        _open_stores[place] = made, 1
        return made
    store, holders = _open_stores[place]
    if ENGINES[store.scheme] is not kind or (recipe is not None and not fits(store.recipe, recipe)):
        raise StoreMismatch(
            f"This process already uses {location} with other parameters, in another crawl or in an open Deduplicator. "
            f"Give both the same parameters, give each its own state with {named_by}, or close the first."
        )
    _open_stores[place] = store, holders + 1
    return store


def open_temporary(folder: Path, recipe: Mapping[str, Any], secret: Secret | None) -> PageStore:
    """Open a state in a folder that the caller removes; give it back with ``close_store``.

    LevelDB if plyvel is installed, else SQLite.
    """
    url = default_url(folder)
    if parse_url(url)[0].scheme != "leveldb":
        return open_store(url, recipe, SETTING, secret)
    return open_rows(resolve_name(_TEMPORARY)(folder), recipe, SETTING, secret)


def open_snapshot(
    url: str, recipe: Mapping[str, Any] | None = None, named_by: str = SETTING, secret: Secret | None = None
) -> PageStore:
    """Open a snapshot of the state at a URL, even while a crawl uses it; give it back with ``close_store``.

    Kinds without snapshots are opened. Raises StoreError if there is no state.
    """
    kind, location = parse_url(url, named_by)
    if issubclass(kind, FileEngine):
        snapshot = _take_snapshot(kind, location, named_by)
        return open_rows(snapshot, recipe, named_by, secret, snapshot)
    store = open_store(url, recipe, named_by, secret)
    store.as_of = time.time()
    return store


def close_store(store: PageStore) -> None:
    """Give a store back. The last user closes it."""
    for place, (held, holders) in _open_stores.items():
        if held is store and holders > 1:
            _open_stores[place] = store, holders - 1
            return
        if held is store:
            del _open_stores[place]
            break
    store.close()


def _take_snapshot(kind: type[Engine], location: str, named_by: str) -> KeyValueStore:
    if not issubclass(kind, FileEngine):
        raise StoreError(
            f"A dry run is not possible with a {kind.scheme} state. Set NEARDUP_STORE to 'memory:' or to a copy made "
            "with scrapy neardup export, and NEARDUP_ON_STORE_ERROR to 'close'."
        )
    return kind(location, named_by).look()
