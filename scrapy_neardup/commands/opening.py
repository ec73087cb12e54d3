"""The state that a command works on."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from scrapy.settings import BaseSettings
from scrapy.spiderloader import get_spider_loader

from scrapy_neardup.commands.output import iso, line
from scrapy_neardup.crawl.state_location import data_directory, state_url, states_there
from scrapy_neardup.errors import SettingsError, StoreError
from scrapy_neardup.judge.former import check_tools
from scrapy_neardup.settings import Config
from scrapy_neardup.state.kv import SETTING
from scrapy_neardup.state.opening import (
    STORES,
    close_store,
    existing_states,
    open_snapshot,
    open_store,
    parse_url,
    states_near,
)
from scrapy_neardup.state.options import DEFAULT, Options
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import Secret

# ----------------------------------------------------------------------------------------------------------------------
# The state that a command writes into, made if it is not there.


#: The option that names the state, as messages tell it.
OPTION = "--store"


@contextmanager
def opened_or_made(
    url: str,
    recipe: Mapping[str, Any] | None,
    secret: Secret | None,
    named_by: str = OPTION,
    options: Options = DEFAULT,
) -> Iterator[PageStore]:
    """The state at a URL, closed at the end; without a recipe it must be there.

    Raises StoreMismatch that speaks of ``named_by`` if it is of another recipe. What a crawl would take back when it
    opens the state is taken back now; a line on standard error says so.
    """
    kind, location = parse_url(url, named_by)
    if hint := kind.misplaced(location):
        sys.stderr.write(f"{named_by}: {hint}\n")
    store = open_store(url, recipe, named_by, secret, options=options)
    try:
        tell_taken_back(store)
        yield store
    finally:
        close_store(store)


def tell_taken_back(store: PageStore) -> None:
    """A line on standard error if the opening of a state took something back."""
    if back := store.taken_back.pages:
        many, whose = (f"{back:,} pages are", "their") if back > 1 else ("1 page is", "its")
        crawls = ", ".join(store.taken_back.crawls) or "unknown"
        sys.stderr.write(
            f"{many} rolled back in the state, because {whose} crawl ({crawls}) was killed or its feed was not "
            "stored.\n"
        )


# ----------------------------------------------------------------------------------------------------------------------
# ``--spider NAME``: a command works with the settings and the state of one spider.


def add_spider(parser: argparse.ArgumentParser) -> None:
    """The option."""
    parser.add_argument("--spider", metavar="NAME", help="use the state and settings of this spider")


def settings_of(settings: BaseSettings, name: str) -> BaseSettings:
    """The project's settings as this spider has them, with its state for NEARDUP_STORE.

    A spider that the project has no more has the settings of the project, if its state is there. Raises SettingsError
    for any other name, and where a spider's class does not tell which state is its own.
    """
    own, names = settings.copy(), get_spider_loader(settings).list()
    if name in names:
        spider = get_spider_loader(settings).load(name)
        spider.update_settings(own)
        own.set(SETTING, state_url(Config.from_settings(own), spider), "cmdline")
        return own
    url = state_url(config := Config.from_settings(own), SimpleNamespace(name=name))
    is_its_own = url != state_url(config, SimpleNamespace(name=f"{name}_"))
    if not (is_its_own and existing_states(url)):
        spiders = f"the spiders here are {', '.join(map(line, sorted(names)))}" if names else "there is no spider here"
        raise SettingsError(f"--spider is {name!r}, but {spiders}. Name one of them, or the state with --store URL.")
    own.set(SETTING, url, "cmdline")
    return own


# ----------------------------------------------------------------------------------------------------------------------
# The state that a command works on, opened for as long as it works, or looked into while a crawl is at work on it.


def add_store(parser: argparse.ArgumentParser) -> None:
    """The options that name the state."""
    forms = STORES.forms(lasting=True)
    parser.add_argument(OPTION, metavar="URL", help=f"the state: {forms} (default: that of this project or directory)")
    add_spider(parser)


def add_strict(parser: argparse.ArgumentParser) -> None:
    """The option that has a state refused which other versions wrote."""
    parser.add_argument(
        "--strict", action="store_true", help="refuse a state written by other versions, even if they read pages alike"
    )


def config_of(arguments: argparse.Namespace) -> Config:
    """The settings, with the option that ``add_strict`` adds."""
    config = Config.from_settings(arguments.settings)
    return replace(config, strict=config.strict or arguments.strict)


def warn(said: str) -> None:
    """A line on standard error."""
    sys.stderr.write(f"{said}\n")


@contextmanager
def opened(asked: str | None, config: Config, recipe: Mapping[str, Any] | None = None) -> Iterator[PageStore]:
    """The state at the URL that was asked for, or where a crawl here keeps it; closed at the end.

    Without a recipe any state will do, but nothing can be judged by it. Raises StoreError if there is none: opening one
    would make it.
    """
    with opened_or_made(existing(asked, config), recipe, config.secret, OPTION if asked else SETTING) as store:
        check_tools(store, strict=config.strict, say=warn)
        yield store


@contextmanager
def looked(asked: str | None, config: Config, recipe: Mapping[str, Any] | None = None) -> Iterator[PageStore]:
    """The same state as it is now, for a command that only reads: it keeps no crawl waiting, and waits for none.

    A line on standard error says as of when, where that is not all the same: a crawl is at work on it, or was killed.
    """
    store = open_snapshot(existing(asked, config), recipe, OPTION if asked else SETTING, config.secret)
    try:
        tell_taken_back(store)
        check_tools(store, strict=config.strict, say=warn)
        sys.stderr.write(as_of(store))
        yield store
    finally:
        close_store(store)


def as_of(store: PageStore) -> str:
    """What is to be known of a state that others may be changing; nothing of one that nobody does."""
    left = store.pending()
    if not store.is_held and not left.pages:
        return ""
    crawls = ", ".join(map(line, left.crawls))
    work = f"{crawls or 'another process'} is using it" if store.is_held else "nobody is using it"
    said = f"As of {iso(store.as_of)}, {work}."
    if left.pages:
        many = f"{left.pages:,} pages are" if left.pages > 1 else "1 page is"
        later = (
            "pages become permanent when their feeds are stored"
            if store.is_held
            else f"the crawl ({crawls or 'unknown'}) was killed or its feed was not stored, so the next crawl rolls "
            "back what it left"
        )
        said += f" {many} unsealed: {later}."
    return f"{said}\n"


@contextmanager
def opened_if_there(
    asked: str | None, config: Config, recipe: Mapping[str, Any]
) -> Iterator[tuple[PageStore | None, str]]:
    """The same for whoever can do without: no state, and why, where none was asked for and a crawl's cannot be had.

    That is where none was written yet, or it was written under other settings than these. It is only looked into.
    """
    with ExitStack() as stack:
        store, why = None, ""
        try:
            store = stack.enter_context(looked(asked, config, recipe))
        except (StoreError, SettingsError) as error:
            if asked:
                raise
            why = str(error)
        yield store, why


def existing(asked: str | None, config: Config) -> str:
    """The URL of a state that is there; raises StoreError if it is not, SettingsError if it may be one of several."""
    url = asked or only_state(config)
    kind, location = location_of(url)
    if not kind.exists(location):
        there = states_near(location)
        if there:
            raise StoreError(f"There is no state at {location}. Name the one that exists: {OPTION} {there[0]}")
        hint = f" {hint}" if (hint := kind.misplaced(location)) else ""
        raise StoreError(
            f"There is no state at {location}. Name the state of a crawl with {OPTION} "
            f"{STORES.forms(lasting=True)}.{hint}"
        )
    return url


def existing_or_new(asked: str | None, config: Config) -> str:
    """The URL of the state that was asked for, or the only one there, or the one that crawls here would make.

    Raises SettingsError where that may be one of several, or is each spider's own.
    """
    there = [] if asked else states_there(config)
    return asked or (there[0] if len(there) == 1 else state_url(config))


def only_state(config: Config) -> str:
    """The state that crawls here have made, whichever spider's it is, if there is one; else the one they would make."""
    there = states_there(config)
    if len(there) == 1:
        return there[0]
    try:
        return state_url(config)
    except SettingsError as error:
        if there:
            raise SettingsError(f"{error} States that exist: {', '.join(map(line, there))}") from None
        place = config.store or data_directory().absolute()
        raise StoreError(
            f"There is no state at {place}. Name the state of a crawl with --spider NAME, or {OPTION} "
            f"{STORES.forms(lasting=True)}."
        ) from None


def location_of(url: str) -> tuple[type[PageStore], str]:
    """The kind and the place of a state that lasts; raises SettingsError or StoreError that speak of --store."""
    kind, location = parse_url(url, OPTION)
    if not kind.lasts:
        raise StoreError(f"{url} is a state in memory, which ends with its crawl. Name a lasting state with {OPTION}.")
    return kind, location
