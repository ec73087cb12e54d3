"""The state by which ``dedup`` judges: one that lasts, or one that ends with the command."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scrapy_neardup.commands.making import OPTION, opened_or_made
from scrapy_neardup.commands.opening import warn
from scrapy_neardup.config import Config
from scrapy_neardup.crawl.state import page_extractor
from scrapy_neardup.judging.recipe import check_tools, state_recipe, take_over
from scrapy_neardup.methods import Method
from scrapy_neardup.stores import MemoryStore, Store, close_store, open_store, open_temporary, parse_url


@contextmanager
def state_for(asked: str | None, method: Method, config: Config) -> Iterator[Store]:
    """The state that was asked for, made if it is not there; else one that goes with the command."""
    if asked and parse_url(asked, OPTION)[0].lasts:
        recipe = state_recipe(method, page_extractor(config))
        with opened_or_made(asked, recipe, config.secret, options=config.store_options) as store:
            check_tools(store, strict=config.strict, say=warn)
            if changed := take_over(store, recipe, config.deciding(method)):
                warn(f"The state at {store.location} {changed}.")
            yield store
        return
    recipe = method.recipe()  # whether others read alike takes a quarter of a second to tell, and nobody will ask
    with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
        if asked or method.memory_only:
            store = open_store(asked or MemoryStore.form(), recipe, OPTION, config.secret)
        else:
            store = open_temporary(Path(folder), recipe, config.secret, config.store_options)
        try:
            yield store
        finally:
            close_store(store)
