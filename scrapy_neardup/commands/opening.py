"""The state that a command works on, opened for as long as it works."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from scrapy_neardup.commands.making import OPTION, opened_or_made
from scrapy_neardup.config import Config
from scrapy_neardup.crawl.state import state_url
from scrapy_neardup.errors import StoreError
from scrapy_neardup.judging.recipe import check_tools
from scrapy_neardup.stores import SETTING, STORES, Store, parse_url, states_near


def add_store(parser: argparse.ArgumentParser) -> None:
    """The option that names the state."""
    forms = STORES.forms(lasting=True)
    parser.add_argument(
        OPTION, metavar="URL", help=f"the state: {forms} (default: the project's, or that of this directory)"
    )


def add_strict(parser: argparse.ArgumentParser) -> None:
    """The option that has a state refused which other versions wrote."""
    parser.add_argument(
        "--strict", action="store_true", help="refuse a state that other versions wrote, though they read alike"
    )


def config_of(arguments: argparse.Namespace) -> Config:
    """The settings, with the option that ``add_strict`` adds."""
    config = Config.from_settings(arguments.settings)
    return replace(config, strict=config.strict or arguments.strict)


def warn(said: str) -> None:
    """A line on standard error."""
    sys.stderr.write(f"{said}\n")


@contextmanager
def opened(asked: str | None, config: Config, recipe: Mapping[str, Any] | None = None) -> Iterator[Store]:
    """The state at the URL that was asked for, or where a crawl here keeps it; closed at the end.

    Without a recipe any state will do, but nothing can be judged by it. Raises StoreError if there is none: opening one
    would make it.
    """
    with opened_or_made(existing(asked, config), recipe, config.secret, OPTION if asked else SETTING) as store:
        check_tools(store, strict=config.strict, say=warn)
        yield store


@contextmanager
def opened_if_there(asked: str | None, config: Config, recipe: Mapping[str, Any]) -> Iterator[tuple[Store | None, str]]:
    """The same for whoever can do without: no state, and why, where none was asked for and a crawl's cannot be had.

    That is where none was written yet, a crawl is at work on it, or it was written under other settings than these.
    """
    with ExitStack() as stack:
        store, why = None, ""
        try:
            store = stack.enter_context(opened(asked, config, recipe))
        except StoreError as error:
            if asked:
                raise
            why = str(error)
        yield store, why


def existing(asked: str | None, config: Config) -> str:
    """The URL of a state that is there; raises StoreError if it is not."""
    url = asked or state_url(config)
    kind, location = location_of(url)
    if not kind.exists(location):
        there = states_near(location)
        if there:
            raise StoreError(f"There is no state at {location}; name the one that is there: {OPTION} {there[0]}")
        raise StoreError(
            f"There is no state at {location}; name the one that a crawl has written with {OPTION} "
            f"{STORES.forms(lasting=True)}."
        )
    return url


def location_of(url: str) -> tuple[type[Store], str]:
    """The kind and the place of a state that lasts; raises SettingsError or StoreError that speak of --store."""
    kind, location = parse_url(url, OPTION)
    if not kind.lasts:
        raise StoreError(f"{url} is a state in memory, which ends with its crawl; name one that lasts with {OPTION}.")
    return kind, location
