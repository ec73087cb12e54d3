"""``--spider NAME``: a command works with the settings and the state of one spider."""

from __future__ import annotations

import argparse
from types import SimpleNamespace

from scrapy.settings import BaseSettings
from scrapy.spiderloader import get_spider_loader

from scrapy_neardup.commands.wording import line
from scrapy_neardup.config import Config
from scrapy_neardup.crawl.state import state_url
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.stores import SETTING, existing_states


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
