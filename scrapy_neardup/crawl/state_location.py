"""Where the state of a spider lies."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

from scrapy.exceptions import NotConfigured
from scrapy.utils.project import data_path

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.kv.base import without_password
from scrapy_neardup.settings import Config
from scrapy_neardup.state.urls import default_url, existing_default, existing_states, placeholders_filled, safe_name
from scrapy_neardup.untrusted import line_logger

logger = line_logger(__name__)


def state_url(config: Config, spider: object | None = None) -> str:
    """The URL of the state of a spider: NEARDUP_STORE, or the default in Scrapy's data directory.

    Each spider has its own default state, unless NEARDUP_SCOPE is "project". The state itself is not made.
    """
    if config.store:
        return placeholders_filled(config.store, partial(_attribute, spider, config.store))
    directory = data_directory()
    if config.scope == "project":
        return default_url(directory)
    name = getattr(spider, "name", None)
    if not isinstance(name, str) or not name:
        raise SettingsError(
            "Each spider has its own state here. Name the spider with --spider NAME, or the state with --store URL. "
            "For one state for all spiders, set NEARDUP_SCOPE = 'project'."
        )
    return default_url(directory / "spiders" / safe_name(name))


def states_there(config: Config) -> list[str]:
    """The URLs of the states that the crawls of this project have made."""
    if config.store:
        return existing_states(config.store)
    directory = data_directory()
    folders = [directory] if config.scope == "project" else sorted((directory / "spiders").glob("*"))
    return [url for folder in folders if (url := existing_default(folder))]


def data_directory() -> Path:
    """The directory of default states.

    Inside a project Scrapy makes it, ``.scrapy``. With settings of a project but no scrapy.cfg (under scrapyd, in a
    container) Scrapy raises NotConfigured, and the crawl would go on without this package. Then, and outside of
    projects, the directory is below the working directory.
    """
    try:
        return Path(data_path("neardup"))
    except NotConfigured:
        directory = Path(".scrapy", "neardup").absolute()
        _warn_of_no_project(directory)
        return directory


@cache
def _warn_of_no_project(directory: Path) -> None:
    logger.warning(
        "There is no scrapy.cfg above %s, so the state is kept in %s. If that directory does not outlive the crawl, "
        "set NEARDUP_STORE, for example to 'leveldb:///var/crawls/state'.",
        Path.cwd(),
        directory,
    )


def _attribute(spider: object | None, url: str, name: str) -> object:
    """The value of a placeholder in NEARDUP_STORE."""
    shown = without_password(url)
    if spider is None:
        raise SettingsError(
            f"NEARDUP_STORE is {shown!r}, which needs the {name} of a spider. Name the spider with "
            "--spider NAME, or the state with --store URL."
        )
    if name.startswith("_") or (found := getattr(spider, name, None)) is None:
        raise SettingsError(
            f"NEARDUP_STORE is {shown!r}, but the spider {getattr(spider, 'name', '')!s} has no {name}. Set that "
            f"attribute (in its class, or with -a {name}=…), or use another one, such as %(name)s."
        )
    return found
