"""``--spider NAME``: a command works with the settings and the state of one spider."""

from __future__ import annotations

import argparse
from types import SimpleNamespace

from scrapy.settings import BaseSettings
from scrapy.spiderloader import get_spider_loader

from scrapy_neardup.config import Config
from scrapy_neardup.crawl.state import state_url
from scrapy_neardup.stores import SETTING


def add_spider(parser: argparse.ArgumentParser) -> None:
    """The option."""
    parser.add_argument(
        "--spider", metavar="NAME", help="the spider whose state and settings are meant, where each has its own"
    )


def settings_of(settings: BaseSettings, name: str) -> BaseSettings:
    """The project's settings as this spider has them, with its state for NEARDUP_STORE.

    One that the project does not have (any more) has a name and the settings of the project: its state may be there.
    Raises SettingsError where its class does not tell which state is its.
    """
    own = settings.copy()
    spider: object = SimpleNamespace(name=name)
    if name in (loader := get_spider_loader(settings)).list():
        spider = kind = loader.load(name)
        kind.update_settings(own)
    own.set(SETTING, state_url(Config.from_settings(own), spider), "cmdline")
    return own
