"""The settings of a command, the state that it works on, and the pages in it that a user names."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from scrapy.settings import BaseSettings
from scrapy.spiderloader import get_spider_loader

from scrapy_neardup.cli.command import STORE
from scrapy_neardup.cli.output import to_line, warn
from scrapy_neardup.crawl.state_location import data_directory, state_url, states_there
from scrapy_neardup.errors import SettingsError, StoreError
from scrapy_neardup.inspect import utc_time
from scrapy_neardup.judge.recipes import check_tools
from scrapy_neardup.kv.base import SETTING, Engine
from scrapy_neardup.kv.files import FileEngine
from scrapy_neardup.kv.sqlite import SQLite
from scrapy_neardup.settings import Config
from scrapy_neardup.state.opening import close_store, open_snapshot, open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import Secret
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.urls import STORES, parse_url, states_near

# Settings.


def config_of(arguments: argparse.Namespace, settings: BaseSettings) -> Config:
    """Return the settings of the project, or of the spider that ``--spider`` names, with its state as NEARDUP_STORE.

    Raises SettingsError if there is no such spider, or if its class does not say which state is its own.
    """
    name: str | None = getattr(arguments, "spider", None)
    if not name:
        return Config.from_settings(settings)
    loader = get_spider_loader(settings)
    if name not in loader.list():
        spiders = ", ".join(map(to_line, sorted(loader.list())))
        here = f"the spiders here are {spiders}" if spiders else "there is no spider here"
        raise SettingsError(f"--spider is {name!r}, but {here}. Name one of them, or the state with --store URL.")
    own, spider = settings.copy(), loader.load(name)
    spider.update_settings(own)
    own.set(SETTING, state_url(Config.from_settings(own), spider), "cmdline")
    return Config.from_settings(own)


# Which state.


def find_state(name: str | None, config: Config, named_by: str = STORE) -> str:
    """Return the URL of an existing state: at a URL or a path, else of the crawls here.

    Raises StoreError if there is none, and SettingsError if it may be one of several. ``named_by``: the option.
    """
    name = existing_state(name or only_state(config))
    if not _is_url(name):
        raise _no_state(os.path.realpath(name), named_by)
    kind, location = locate_state(name, named_by)
    if kind.exists(location):
        return name
    if near := states_near(location):
        raise StoreError(f"There is no state at {location}. Name the one that exists: {named_by} {near[0]}")
    raise _no_state(location, named_by)


def existing_state(name: str) -> str:
    """Return the URL of the state at a path; a URL and a path without a state stay as they are."""
    return name if _is_url(name) else next(iter(states_near(os.path.realpath(name))), name)


def only_state(config: Config) -> str:
    """Return the only state that crawls here have made, else the place where one would make it."""
    there = states_there(config)
    if len(there) == 1:
        return there[0]
    try:
        return state_url(config)
    except SettingsError as error:
        if there:
            raise SettingsError(f"{error} States that exist: {', '.join(map(to_line, there))}") from None
        raise _no_state(config.store or data_directory().absolute(), f"--spider NAME, or {STORE}") from None


def _no_state(place: object, options: str) -> StoreError:
    forms = STORES.forms(persistent=True)
    return StoreError(f"There is no state at {place}. Name the state of a crawl with {options} {forms}.")


def locate_state(url: str, named_by: str = STORE) -> tuple[type[Engine], str]:
    """Return the kind and the place of a lasting state; raises SettingsError or StoreError for any other URL."""
    kind, location = parse_url(url, named_by)
    if not kind.is_persistent:
        raise StoreError(f"{url} is a state in memory, gone after its crawl. Name a lasting state with {named_by}.")
    return kind, location


def locate_new_state(name: str, named_by: str, like: type[Engine] = SQLite) -> tuple[type[FileEngine], str]:
    """Return the kind and the place of a state to be made at a path or URL.

    At a path it is of the kind ``like``, or of SQLite if that is on a server. Raises SettingsError or StoreError.
    """
    if _is_url(name):
        kind, place = locate_state(name, named_by)
    else:
        kind, place = like if issubclass(like, FileEngine) else SQLite, os.path.realpath(name)
    if not issubclass(kind, FileEngine):
        raise StoreError(
            f"{place} is on a server, where this command makes no state. Name a path, then bring that state to the "
            "server with: scrapy neardup merge"
        )
    return kind, place


def _is_url(name: str) -> bool:
    """Whether this is no path. A scheme has more letters than a drive of Windows.

    >>> _is_url("C:/news.sqlite"), _is_url("sqlite:///news"), _is_url("2026-11-28T18:00")
    (False, True, False)
    """
    return re.match(r"[a-z+]{2,}:", name) is not None


def describe_use(url: str) -> str:
    """Return a sentence that says how to use a new state."""
    return (  # a log that stays behind would be read with the new database
        f"To use it, set NEARDUP_STORE = {url!r}. Or first move all files of the old state away, then this one with "
        "its witness to their place."
    )


# An open state.


@contextmanager
def open_or_make_state(
    url: str, recipe: Mapping[str, Any] | None, secret: Secret | None, named_by: str = STORE
) -> Iterator[PageStore]:
    """Open the state at a URL, and close it at the end. Without a recipe it must exist.

    Like a crawl, it rolls back unsealed pages, and a line on standard error says so. Raises StoreMismatch that names
    ``named_by`` if the state has another recipe.
    """
    store = open_store(url, recipe, named_by, secret)
    try:
        report_rollback(store)
        yield store
    finally:
        close_store(store)


@contextmanager
def open_state(url: str | None, config: Config) -> Iterator[PageStore]:
    """Open an existing state for writing; see ``find_state``."""
    with open_or_make_state(find_state(url, config), None, config.secret, STORE if url else SETTING) as store:
        check_tools(store, say=warn)
        yield store


@contextmanager
def snapshot_state(url: str | None, config: Config, recipe: Mapping[str, Any] | None = None) -> Iterator[PageStore]:
    """Open a snapshot of the same state, only for reading. A crawl may go on writing to it.

    A line on standard error names the time, if a crawl is using the state or was killed.
    """
    store = open_snapshot(find_state(url, config), recipe, STORE if url else SETTING, config.secret)
    try:
        report_rollback(store)
        check_tools(store, say=warn)
        if sentence := _describe_snapshot(store):
            warn(sentence)
        yield store
    finally:
        close_store(store)


@contextmanager
def snapshot_if_exists(
    url: str | None, config: Config, recipe: Mapping[str, Any], *, needed: bool = False
) -> Iterator[tuple[PageStore | None, str]]:
    """Open the same state for reading, or return why there is none: it does not exist or has other settings.

    A state that the user named or needs must exist.
    """
    with ExitStack() as stack:
        store, why = None, ""
        try:
            store = stack.enter_context(snapshot_state(url, config, recipe))
        except (StoreError, SettingsError) as error:
            if url or needed:
                raise
            why = str(error)
        yield store, why


def report_rollback(store: PageStore) -> None:
    """Write a line to standard error if the opening of the state rolled pages back."""
    if store.rolled_back.pages:
        warn(store.rolled_back.describe_rollback())


def _describe_snapshot(store: PageStore) -> str:
    """Return when the snapshot was taken and how many pages are unsealed; nothing if nobody changes the state."""
    unsealed = store.pending()
    crawls = ", ".join(map(to_line, unsealed.crawls))
    user, future = crawls or "another process", "They become permanent when their feeds are stored."
    if not store.is_held:
        user = "nobody"
        future = f"Crawl {crawls or 'unknown'} was killed or its feed was not stored: the next crawl rolls them back."
    pages = f" Unsealed pages: {unsealed.pages:,}. {future}" if unsealed.pages else ""
    return f"As of {utc_time(store.as_of)}, {user} is using it.{pages}" if store.is_held or pages else ""


# Pages.


def find_pages(store: PageStore, urls: Iterable[str]) -> tuple[list[Record], list[str]]:
    """Return the records of URLs, and the URLs without one. Each of those is a warning."""
    found = {url: store.find(url) for url in urls}
    missing = [url for url, record in found.items() if record is None]
    for url in missing:
        warn(describe_missing(url, store))
    return [record for record in found.values() if record is not None], missing


def describe_missing(url: str, store: PageStore) -> str:
    """Return a sentence on a URL that is not in the state."""
    return f"{to_line(url)} is not in the state at {store.location}. Write the URL as crawled, to the last slash."
