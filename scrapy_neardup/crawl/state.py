"""What a crawl and whoever looks at its state afterwards must agree on: where it lies, and by which recipe."""

from __future__ import annotations

from pathlib import Path

from scrapy.exceptions import NotConfigured
from scrapy.utils.project import data_path

from scrapy_neardup.config import Config, load_extractor
from scrapy_neardup.oneline import line_logger
from scrapy_neardup.page.extraction import Extractor
from scrapy_neardup.stores import default_url

logger = line_logger(__name__)


def state_url(config: Config) -> str:
    """The URL of the state: NEARDUP_STORE, or else the default one in the data directory of Scrapy.

    Inside a project Scrapy makes that directory, ``.scrapy``, when it is asked for it; the state itself is not made.
    Where there are settings of a project but no scrapy.cfg (under scrapyd, in a container) Scrapy has no such directory
    and says NotConfigured, by which a crawl would go on without us: then it is the one below the working directory, as
    outside of projects.
    """
    if config.store:
        return config.store
    try:
        directory = Path(data_path("neardup"))
    except NotConfigured:
        directory = Path(".scrapy", "neardup").absolute()
        logger.warning(
            "There is no scrapy.cfg above %s to tell where the project's data lies, so the state is kept in %s. Where "
            "that does not outlive the crawl, set NEARDUP_STORE, such as 'leveldb:///var/crawls/state'.",
            Path.cwd(),
            directory,
        )
    return default_url(directory)


def page_extractor(config: Config) -> Extractor | None:
    """The user's own way to take the text out of HTML, NEARDUP_EXTRACTOR; None where it is ours."""
    return load_extractor(config.extractor) if config.extractor else None
