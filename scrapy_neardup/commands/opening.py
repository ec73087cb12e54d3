"""The state that a command works on, opened for as long as it works."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scrapy_neardup.config import Config
from scrapy_neardup.crawl.state import state_url
from scrapy_neardup.errors import SettingsError, StoreError
from scrapy_neardup.stores import MemoryStore, Store, close_store, open_store, parse_url


def add_store(parser: argparse.ArgumentParser) -> None:
    """The option that names the state."""
    parser.add_argument(
        "--store",
        metavar="URL",
        help="the state: leveldb:///path or sqlite:///path (default: the project's, or that of this directory)",
    )


@contextmanager
def opened(asked: str | None, config: Config, recipe: Mapping[str, Any] | None = None) -> Iterator[Store]:
    """The state at the URL that was asked for, or where a crawl here keeps it; closed at the end.

    Without a recipe any state will do, but nothing can be judged by it. Raises StoreError if there is none: opening one
    would make it. What a crawl would take back when it opens the state is taken back now; a line on standard error
    says so.
    """
    url = existing(asked, config)
    store = open_store(url, recipe)
    try:
        tell_taken_back(store)
        yield store
    finally:
        close_store(store)


def existing(asked: str | None, config: Config) -> str:
    """The URL of a state that is there; raises StoreError if it is not."""
    url = asked or state_url(config)
    kind, location = location_of(url)
    path = Path(location)
    if not (path.is_file() and path.stat().st_size if kind.scheme == "sqlite" else (path / "db").is_dir()):
        raise StoreError(
            f"There is no state at {location}; name the one that a crawl has written with --store leveldb:///path or "
            "sqlite:///path."
        )
    return url


def location_of(url: str) -> tuple[type[Store], str]:
    """The kind and the place of a state that lasts; raises SettingsError or StoreError that speak of --store."""
    try:
        kind, location = parse_url(url)
    except SettingsError as error:
        raise SettingsError(str(error).replace("NEARDUP_STORE", "--store")) from None
    if kind is MemoryStore:
        raise StoreError(f"{url} is a state in memory, which ends with its crawl; name one that lasts with --store.")
    return kind, location


def tell_taken_back(store: Store) -> None:
    """A line on standard error if the opening of a state took something back."""
    if back := store.taken_back.pages:
        many, them = (f"{back:,} pages were", "them") if back > 1 else ("1 page was", "it")
        crawls = ", ".join(store.taken_back.crawls) or "unknown"
        sys.stderr.write(
            f"{many} taken back from the state: the crawl that added {them} ({crawls}) was killed, or its feed was "
            "not stored.\n"
        )
