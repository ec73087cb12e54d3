"""Where the state of a spider lies, and by which recipe it is opened."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

from scrapy.exceptions import NotConfigured
from scrapy.utils.project import data_path

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.oneline import line_logger
from scrapy_neardup.page.extraction import Extractor
from scrapy_neardup.settings import Config, load_extractor
from scrapy_neardup.state.kv import without_password
from scrapy_neardup.state.opening import default_url, existing_default, existing_states, placeholders_filled, safe_name

logger = line_logger(__name__)


#: Below the directory of a project's states: those of its spiders, a directory each.
_SPIDERS = "spiders"


def state_url(config: Config, spider: object | None = None) -> str:
    """The URL of the state of a spider: NEARDUP_STORE, or else the default one in the data directory of Scrapy.

    The default is one for each spider, unless NEARDUP_SCOPE says "project"; a state that the project has is never left
    without its being asked for. The state itself is not made.
    """
    if config.store:
        return placeholders_filled(config.store, partial(_attribute, spider, config.store))
    directory = data_directory()
    shared = existing_default(directory)
    if config.scope == "project" or (shared and not config.scope):
        return shared or default_url(directory)
    name = getattr(spider, "name", None)
    if not isinstance(name, str) or not name:
        raise SettingsError(
            "Each spider has its own state here. Name the spider with --spider NAME, or the state with --store URL. "
            "For one state for all spiders, set NEARDUP_SCOPE = 'project'."
        )
    return default_url(directory / _SPIDERS / safe_name(name))


def tell_of_scope(config: Config, url: str) -> None:
    """In the log of a crawl: that its state is shared though nobody said so, or that it leaves a shared one behind."""
    shared = "" if config.store else existing_default(data_directory())
    if shared and not config.scope:
        logger.info(
            "All spiders of this project share the existing state %s. If you want that, set NEARDUP_SCOPE = 'project'. "
            "With 'spider' each has its own state.",
            shared,
        )
    elif shared and config.scope == "spider" and not existing_states(url):
        logger.warning(
            "NEARDUP_SCOPE is 'spider', so this spider starts its own state and does not know the pages of the "
            "project's state at %s. To copy them: scrapy neardup export --store %s -o all.gz, and then scrapy neardup "
            "import all.gz --store %s",
            shared,
            shared,
            url,
        )


def states_there(config: Config) -> list[str]:
    """The URLs of the states that the crawls of this place have made."""
    if config.store:
        return existing_states(config.store)
    directory = data_directory()
    shared = existing_default(directory)
    if config.scope == "project" or (shared and not config.scope):
        return [shared] if shared else []
    folders = sorted((directory / _SPIDERS).glob("*"))
    return [url for folder in folders if (url := existing_default(folder))]


def data_directory() -> Path:
    """Where default states lie.

    Inside a project Scrapy makes that directory, ``.scrapy``, when it is asked for it. Where there are settings of a
    project but no scrapy.cfg (under scrapyd, in a container) Scrapy has no such directory and says NotConfigured, by
    which a crawl would go on without us: then it is the one below the working directory, as outside of projects.
    """
    try:
        return Path(data_path("neardup"))
    except NotConfigured:
        directory = Path(".scrapy", "neardup").absolute()
        _tell_of_no_project(directory)
        return directory


@cache
def _tell_of_no_project(directory: Path) -> None:
    """Once for each directory, though that is asked for several times."""
    logger.warning(
        "There is no scrapy.cfg above %s, so the state is kept in %s. If that directory does not outlive the crawl, "
        "set NEARDUP_STORE, for example to 'leveldb:///var/crawls/state'.",
        Path.cwd(),
        directory,
    )


def _attribute(spider: object | None, url: str, name: str) -> object:
    """What a placeholder stands for."""
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


def page_extractor(config: Config) -> Extractor | None:
    """The user's own way to take the text out of HTML, NEARDUP_EXTRACTOR; None where it is ours."""
    return load_extractor(config.extractor) if config.extractor else None
