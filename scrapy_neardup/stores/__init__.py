"""Stores by URL. A new one is a file beside this one and a line in ``STORES``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scrapy_neardup.errors import SettingsError, StoreMismatch
from scrapy_neardup.stores.base import Store, TakenBack
from scrapy_neardup.stores.evidence import Evidence, Keep, evidence
from scrapy_neardup.stores.exchanged import refuse_unfinished
from scrapy_neardup.stores.expiry import Bounds
from scrapy_neardup.stores.layout import Record
from scrapy_neardup.stores.leading import leader, stands_for
from scrapy_neardup.stores.memory import MemoryStore
from scrapy_neardup.stores.place import SETTING
from scrapy_neardup.stores.recipe import fits
from scrapy_neardup.stores.registry import Registry
from scrapy_neardup.stores.secret import NO_SECRET, Secret

STORES = Registry(
    {
        "leveldb": "scrapy_neardup.stores.leveldb:LevelDBStore",
        "sqlite": "scrapy_neardup.stores.sqlite:SQLiteStore",
        "memory": "scrapy_neardup.stores.memory:MemoryStore",
    }
)

# Location -> the store that is open there, and how many hold it. One handle for each path in a process: a second one
# would drop the first one's lock.
_open: dict[str, tuple[Store, int]] = {}


def default_url(directory: Path) -> str:
    """The store that is used where none is named: LevelDB where plyvel is installed, else SQLite.

    What is in ``directory`` already decides first: an existing state is never switched.
    """
    paths = {scheme: directory / f"state.{scheme}" for scheme in ("leveldb", "sqlite")}
    # A witness without its database is that of a state which is gone: told of, not switched.
    existing = [name for name, path in paths.items() if path.exists() or STORES[name].exists(str(path))]
    scheme = existing[0] if existing else "leveldb" if find_spec("plyvel") else "sqlite"
    return STORES[scheme].url(str(paths[scheme].absolute()))


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
    if parts.scheme not in STORES:
        there = states_near(url) if url and not parts.scheme else []
        raise SettingsError(
            f"{named_by} is {url!r}, which names no store; use {' or '.join(there) if there else STORES.forms()}."
        )
    kind = STORES[parts.scheme]
    try:
        return kind, kind.read_url(parts)
    except ValueError as error:
        raise SettingsError(f"{named_by} is {url!r}, {error}.") from None


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
    url: str, recipe: Mapping[str, Any] | None, named_by: str = SETTING, secret: Secret | None = None
) -> Store:
    """The store at a URL, opened once for each location of this process; give it back with ``close_store``.

    Without a recipe there must be a state, written by any. ``named_by``: see ``parse_url``. ``secret``: see ``Store``.
    """
    kind, location = parse_url(url, named_by)
    if not kind.lasts:
        return kind(location, recipe, named_by, secret)
    refuse_unfinished(location)
    if location not in _open:
        _open[location] = kind(location, recipe, named_by, secret), 1
        return _open[location][0]
    store, holders = _open[location]
    if not isinstance(store, kind) or (recipe is not None and not fits(store.recipe, recipe)):
        raise StoreMismatch(
            f"In this process {location} is open already, with other parameters: by another crawl, or a Deduplicator "
            f"that was not closed. Give both the same, or each a state of its own with {named_by}, or close the first."
        )
    _open[location] = store, holders + 1
    return store


def close_store(store: Store) -> None:
    """Give a store back; the last one to do so closes it."""
    held, holders = _open.get(store.location, (None, 0))
    if held is not store:
        store.close()
    elif holders > 1:
        _open[store.location] = store, holders - 1
    else:
        del _open[store.location]
        store.close()


__all__ = [
    "NO_SECRET",
    "SETTING",
    "STORES",
    "Bounds",
    "Evidence",
    "Keep",
    "MemoryStore",
    "Record",
    "Secret",
    "Store",
    "TakenBack",
    "close_store",
    "default_url",
    "evidence",
    "leader",
    "open_store",
    "parse_url",
    "stands_for",
    "states_near",
]
