"""Stores by URL. A new one is a file beside this one and a line in ``STORES``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from scrapy_neardup.errors import SettingsError, StoreMismatch
from scrapy_neardup.stores.base import Store, TakenBack
from scrapy_neardup.stores.evidence import Evidence, Keep, evidence
from scrapy_neardup.stores.layout import Record
from scrapy_neardup.stores.leveldb import LevelDBStore
from scrapy_neardup.stores.memory import MemoryStore
from scrapy_neardup.stores.recipe import is_recipe
from scrapy_neardup.stores.sqlite import SQLiteStore

STORES: dict[str, type[Store]] = {store.scheme: store for store in (LevelDBStore, SQLiteStore, MemoryStore)}

# Location -> the store that is open there, and how many hold it. One handle for each path in a process: a second one
# would drop the first one's lock.
_open: dict[str, tuple[Store, int]] = {}


def default_url(directory: Path) -> str:
    """The store that is used where none is named: LevelDB where plyvel is installed, else SQLite.

    What is in ``directory`` already decides first: an existing state is never switched.
    """
    paths = {LevelDBStore.scheme: directory / "state.leveldb", SQLiteStore.scheme: directory / "state.sqlite"}
    existing = [scheme for scheme, path in paths.items() if path.exists()]
    scheme = existing[0] if existing else LevelDBStore.scheme if find_spec("plyvel") else SQLiteStore.scheme
    return paths[scheme].absolute().as_uri().replace("file", scheme, 1)


def parse_url(url: str) -> tuple[type[Store], str]:
    """The store and the location that a URL names; raises SettingsError that shows the forms."""
    try:
        parts = urlsplit(url)
    except ValueError:  # half a bracket
        parts = urlsplit("")
    if parts.scheme not in STORES:
        raise SettingsError(
            f"NEARDUP_STORE is {url!r}, which names no store; use leveldb:///path, sqlite:///path or memory:."
        )
    if parts.scheme == MemoryStore.scheme:
        return MemoryStore, "memory:"
    if parts.netloc or not parts.path.startswith("/") or not parts.path.strip("/"):
        raise SettingsError(
            f"NEARDUP_STORE is {url!r}, which names no absolute path; write three slashes: {parts.scheme}:///path."
        )
    if parts.query or parts.fragment:
        raise SettingsError(f"NEARDUP_STORE is {url!r}; in a path write %3F for a question mark, %23 for a hash.")
    return STORES[parts.scheme], os.path.realpath(url2pathname(parts.path))


def open_store(url: str, recipe: Mapping[str, Any] | None) -> Store:
    """The store at a URL, opened once for each location of this process; give it back with ``close_store``.

    Without a recipe there must be a state, written by any.
    """
    kind, location = parse_url(url)
    if kind is MemoryStore:
        return MemoryStore(location, recipe)
    if location not in _open:
        _open[location] = kind(location, recipe), 1
        return _open[location][0]
    store, holders = _open[location]
    if not isinstance(store, kind) or (recipe is not None and not is_recipe(store.recipe, recipe)):
        raise StoreMismatch(
            f"Another crawl of this process has opened {location} with other parameters. Give the two crawls "
            "the same NEARDUP settings, or each a state of its own with NEARDUP_STORE."
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
    "STORES",
    "Evidence",
    "Keep",
    "MemoryStore",
    "Record",
    "Store",
    "TakenBack",
    "close_store",
    "default_url",
    "evidence",
    "open_store",
    "parse_url",
]
