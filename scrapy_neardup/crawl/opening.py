"""The opening of the state for a crawl: by its settings, and as they were when the state was written."""

from __future__ import annotations

from collections.abc import Callable

from scrapy_neardup.config import Config
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.judging.detector import Detector
from scrapy_neardup.judging.preference import make_preference
from scrapy_neardup.judging.recipe import check_tools, state_recipe, take_over
from scrapy_neardup.model import Verdict
from scrapy_neardup.oneline import line_logger
from scrapy_neardup.page.extraction import Extractor
from scrapy_neardup.stores import close_store, open_store, parse_url

logger = line_logger(__name__)


def opened_detector(
    config: Config,
    store_url: str,
    extractor: Extractor | None,
    who: str,
    job: str,
    passes: Callable[[Verdict], bool],
    on_expired: Callable[[int], None],
) -> Detector:
    """A detector on the state, which is open from here on. Raises SettingsError or StoreError.

    ``who`` names the crawl; ``job``, ``passes`` and ``on_expired``: see ``Detector``.
    """
    method = config.make_method()
    recipe = state_recipe(method, extractor)
    if parse_url(store_url)[0].is_shared:
        from scrapy_neardup.crawl.sharing import need_asyncio

        need_asyncio()
    elif config.on_store_error == "wait":
        raise SettingsError(
            "NEARDUP_ON_STORE_ERROR = 'wait' works only with a state on a server. Set it to 'close' or 'pass'."
        )
    store = open_store(
        store_url, recipe, secret=config.secret, dry_run=bool(config.dry_run), options=config.store_options
    )
    try:
        check_tools(store, strict=config.strict, say=logger.warning)
        if changed := take_over(store, recipe, config.deciding(method)):
            logger.info("The state at %s %s.", store.location, changed)
        return Detector(
            method,
            store,
            min_letters=config.min_letters,
            who=who,
            job=job,
            also_copies=config.also_copies,
            passes=passes,
            keep=config.keep,
            preference=make_preference(config.keep_policy),
            # A dry run forgets nothing, and on a server that is done beside the judging.
            bounds=None if config.dry_run or store.is_shared else config.bounds,
            on_expired=on_expired,
        )
    except BaseException:
        close_store(store)
        raise
