"""Stores by URL. A new one is a file beside this one and a line in ``STORES``."""

from __future__ import annotations

import time
from collections import ChainMap
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scrapy_neardup.errors import SettingsError, StoreError, StoreMismatch
from scrapy_neardup.oneline import line_logger
from scrapy_neardup.stores.base import Store
from scrapy_neardup.stores.evidence import Evidence, Keep, evidence
from scrapy_neardup.stores.exchanged import is_unfinished, refuse_unfinished
from scrapy_neardup.stores.expiry import Bounds
from scrapy_neardup.stores.generations import TakenBack
from scrapy_neardup.stores.leading import leader, stands_for, with_first
from scrapy_neardup.stores.memory import MemoryStore
from scrapy_neardup.stores.options import DEFAULT, Options
from scrapy_neardup.stores.overlay import Overlay
from scrapy_neardup.stores.place import SETTING
from scrapy_neardup.stores.placeholders import has_placeholders, matching, placeholders_checked, placeholders_filled
from scrapy_neardup.stores.recipe import fits
from scrapy_neardup.stores.record import Record
from scrapy_neardup.stores.redis_place import without_password
from scrapy_neardup.stores.registry import Registry
from scrapy_neardup.stores.secret import NO_SECRET, Secret

STORES = Registry(
    {
        "leveldb": "scrapy_neardup.stores.leveldb:LevelDBStore",
        "sqlite": "scrapy_neardup.stores.sqlite:SQLiteStore",
        "memory": "scrapy_neardup.stores.memory:MemoryStore",
    }
)

#: Kinds that lie on a server, where many crawlers on many machines share them.
SERVERS = Registry(
    {
        "redis": "scrapy_neardup.stores.redis:RedisStore",
        "rediss": "scrapy_neardup.stores.redis_kinds:RedissStore",
        "unix": "scrapy_neardup.stores.redis_kinds:UnixStore",
        "redis+sentinel": "scrapy_neardup.stores.redis_kinds:SentinelStore",
        "rediss+sentinel": "scrapy_neardup.stores.redis_kinds:RedissSentinelStore",
        "redis+cluster": "scrapy_neardup.stores.redis_kinds:ClusterStore",
        "rediss+cluster": "scrapy_neardup.stores.redis_kinds:RedissClusterStore",
    }
)
_ALL = ChainMap[str, type[Store]](STORES, SERVERS)  # type: ignore[arg-type]  # nobody writes to it

#: What looks into a state of each kind, without its lock.
_LOOKS = {
    "leveldb": "scrapy_neardup.stores.look_leveldb:LevelDBLook",
    "sqlite": "scrapy_neardup.stores.look_sqlite:SQLiteLook",
}

logger = line_logger(__name__)

# Location -> the store that is open there, and how many hold it. One handle for each path in a process: a second one
# would drop the first one's lock. Those of dry runs are apart.
_open: dict[str, tuple[Store, int]] = {}
_tried: dict[str, tuple[Store, int]] = {}


def default_url(directory: Path) -> str:
    """The store that is used where none is named: LevelDB where plyvel is installed, else SQLite.

    What is in ``directory`` already decides first: an existing state is never switched.
    """
    scheme = "leveldb" if find_spec("plyvel") else "sqlite"
    return existing_default(directory) or STORES[scheme].url(str((directory / f"state.{scheme}").absolute()))


def existing_default(directory: Path) -> str:
    """The URL of the state in a directory of default states; empty if there is none."""
    for scheme in ("leveldb", "sqlite"):
        path = directory / f"state.{scheme}"
        # A witness without its database is that of a state which is gone: told of, not switched. So is a state whose
        # files a migration was moving.
        if path.exists() or STORES[scheme].exists(str(path)) or is_unfinished(str(path)):
            return STORES[scheme].url(str(path.absolute()))
    return ""


def existing_states(url: str) -> list[str]:
    """The URLs of the states that there are at a URL: of one with placeholders those of all values."""
    if not has_placeholders(url):
        kind, location = parse_url(url)
        return [url] if kind.exists(location) else []
    kind, _ = parse_url(placeholders_checked(url))
    if kind.is_shared:  # where nobody can tell which of its states a URL means
        return []
    return [kind.url(path) for path in matching(url) if kind.exists(path)] if kind.lasts else []


def parse_url(url: str, named_by: str = SETTING) -> tuple[type[Store], str]:
    """The store and the location that a URL names; raises SettingsError that shows the forms.

    ``named_by`` is what the user wrote the URL into, and is told to change.
    """
    try:
        if any(character in url for character in "\t\r\n"):  # which urlsplit leaves out
            raise ValueError
        parts = urlsplit(url)
    except ValueError:  # half a bracket, a line end
        parts = urlsplit("")
    if parts.scheme not in _ALL:
        there = states_near(url) if url and not parts.scheme else []
        forms = " or ".join(there) if there else f"{STORES.forms()}; or on a server: {SERVERS.forms()}"
        raise SettingsError(f"{named_by} is {without_password(url)!r}, which names no state. Use {forms}.")
    kind = _ALL[parts.scheme]
    try:
        location = kind.read_url(parts)
    except ValueError as error:
        raise SettingsError(f"{named_by} is {without_password(url)!r}, {error}.") from None
    if hint := kind.misplaced(location):
        _warn_once(named_by, hint)
    return kind, location


@cache
def _warn_once(named_by: str, hint: str) -> None:
    logger.warning("%s: %s", named_by, hint)


def states_near(path: str) -> list[str]:
    """The URLs of states that somebody may mean who names a path: at it, or under their usual name in that folder."""
    if not path.isprintable():
        return []
    place = Path(path).resolve()
    return [
        kind.url(str(location))
        for scheme, kind in STORES.items()
        for location in (place, place / f"state.{scheme}")
        if kind.lasts and kind.exists(str(location))
    ]


def open_store(
    url: str,
    recipe: Mapping[str, Any] | None,
    named_by: str = SETTING,
    secret: Secret | None = None,
    *,
    dry_run: bool = False,
    options: Options = DEFAULT,
) -> Store:
    """The store at a URL, opened once for each location of this process; give it back with ``close_store``.

    Without a recipe there must be a state, written by any. ``named_by``: see ``parse_url``. ``secret``: see ``Store``.
    ``dry_run``: what is written is held in memory, nothing of the state changes, and none is made (see ``Overlay``).
    ``options``: how it is to use memory, if it is not open yet.
    """
    kind, location = parse_url(url, named_by)
    if not kind.lasts:
        return kind(location, recipe, named_by, secret)
    if kind.scheme in STORES:
        refuse_unfinished(location)
    opened = _tried if dry_run else _open
    if location not in opened:
        made: Store
        if dry_run:
            made = _look_of(kind)(location, recipe, named_by, secret, is_written=True)
        else:
            made = kind(location, recipe, named_by, secret, options)
        opened[location] = made, 1
        return made
    store, holders = opened[location]
    if store.scheme != kind.scheme or (recipe is not None and not fits(store.recipe, recipe)):
        raise StoreMismatch(
            f"This process already uses {location} with other parameters, in another crawl or in an open Deduplicator. "
            f"Give both the same parameters, give each its own state with {named_by}, or close the first."
        )
    opened[location] = store, holders + 1
    return store


def open_temporary(folder: Path, recipe: Mapping[str, Any], secret: Secret | None, options: Options) -> Store:
    """A state that ends with whoever opened it, in a folder that this one removes; give it back with ``close_store``.

    LevelDB where plyvel is installed, else SQLite, as of states that last. ``recipe``: nobody holds it against another.
    """
    if find_spec("plyvel") is None:
        return open_store(default_url(folder), recipe, SETTING, secret, options=options)
    from scrapy_neardup.stores.temporary import TemporaryStore

    return TemporaryStore(str(folder), recipe, SETTING, secret, options)


def look_into(
    url: str, recipe: Mapping[str, Any] | None = None, named_by: str = SETTING, secret: Secret | None = None
) -> Store:
    """The state at a URL as it is now, to be read, whoever is at work on it; give it back with ``close_store``.

    One of a kind that nobody can look into is opened. Raises StoreError if there is none.
    """
    kind, location = parse_url(url, named_by)
    if kind.scheme in STORES:
        refuse_unfinished(location)
    if kind.scheme in _LOOKS:
        return _look_of(kind)(location, recipe, named_by, secret)
    store = open_store(url, recipe, named_by, secret)
    store.as_of = time.time()
    return store


def close_store(store: Store) -> None:
    """Give a store back; the last one to do so closes it."""
    opened = _tried if isinstance(store, Overlay) else _open
    held, holders = opened.get(store.location, (None, 0))
    if held is not store:
        store.close()
    elif holders > 1:
        opened[store.location] = store, holders - 1
    else:
        del opened[store.location]
        store.close()


def _look_of(kind: type[Store]) -> type[Overlay]:
    try:
        module, _, name = _LOOKS[kind.scheme].partition(":")
    except KeyError:
        raise StoreError(
            f"A dry run is not possible with a {kind.scheme} state. Set NEARDUP_STORE to another state, for example a "
            "copy made with scrapy neardup merge."
        ) from None
    found: type[Overlay] = getattr(import_module(module), name)
    return found


__all__ = [
    "NO_SECRET",
    "SERVERS",
    "SETTING",
    "STORES",
    "Bounds",
    "Evidence",
    "Keep",
    "MemoryStore",
    "Overlay",
    "Record",
    "Secret",
    "Store",
    "TakenBack",
    "close_store",
    "default_url",
    "evidence",
    "existing_default",
    "existing_states",
    "leader",
    "look_into",
    "open_store",
    "open_temporary",
    "parse_url",
    "placeholders_checked",
    "placeholders_filled",
    "stands_for",
    "states_near",
    "with_first",
]
