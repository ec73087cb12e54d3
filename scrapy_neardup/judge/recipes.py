"""The recipe of a crawl, and what a crawl records of its settings in the state."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing import HASH_NAME
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.methods import Method
from scrapy_neardup.page.extraction import Extractor, extractor_name, reader_sample
from scrapy_neardup.state.layout import meta_key
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import SAMPLES
from scrapy_neardup.state.urls import parse_url
from scrapy_neardup.text.samples import converter_sample, segmenter_sample
from scrapy_neardup.text.tokens import segmenter_name

#: The row with the parameters and settings of the last crawl that only decide.
DECISIONS_KEY = meta_key("decisions")


def state_recipe(method: Method, extractor: Extractor | None) -> dict[str, Any]:
    """Everything that must be equal for the pages of two crawls to be comparable, as plain data."""
    recipe = {
        **method.recipe(),
        "hash": HASH_NAME,
        "segmenter": segmenter_name(),
        "extractor": extractor_name(extractor),
    }
    samples = {"segmenter": segmenter_sample()}
    if extractor is None:
        samples["extractor"] = reader_sample()
    if "script" in recipe:
        samples["script"] = converter_sample()
    return {**recipe, SAMPLES: samples}


def need_lasting_method(method: Method, url: str) -> None:
    """Raise SettingsError if the state at a URL lasts and the method works only in memory. Call it before opening.

    An opened state would keep the method as its recipe and refuse every other one.
    """
    if method.memory_only and parse_url(url)[0].is_persistent:
        raise SettingsError(
            f"The method {method.name} keeps several kilobytes per page and works only in memory. "
            "Set NEARDUP_STORE = 'memory:', or choose another method."
        )


def check_tools(store: PageStore, *, say: Callable[[str], object]) -> None:
    """Warn if other versions of the tools wrote the state. It is open, so both read the samples of the recipe alike."""
    if store.renamed:
        renamed = "; ".join(f"the {tool} was {old} and is {new} now" for tool, (old, new) in store.renamed.items())
        say(
            f"Other versions wrote the state at {store.location}: {renamed}. Both read the test samples alike, so the "
            "state is used. A page that they read differently may pass once more as updated."
        )


def decisions_of(store: PageStore) -> dict[str, Any]:
    """Return the deciding values of the last crawl: they are not in the recipe, and crawls of one state may differ in
    them. Raises StoreDamaged.
    """
    packed = store.kv.get(DECISIONS_KEY)
    try:
        return {} if packed is None else dict(json.loads(packed))
    except (ValueError, TypeError):
        raise store.kv.damage_error("the deciding settings of its last crawl cannot be read") from None


def decide(store: PageStore, said: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Remember the deciding values of this crawl; return the changes, old and new. Raises StoreError."""
    plain = json.loads(json.dumps(said))
    before = decisions_of(store)
    if before != plain:
        packed = json.dumps(plain, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")
        store.write(Changes({DECISIONS_KEY: packed}))
    return {name: (before[name], now) for name, now in plain.items() if name in before and before[name] != now}


def take_over(
    store: PageStore,
    recipe: Mapping[str, Any],
    deciding: Mapping[str, Any],
    *,
    warn: Callable[[str], object],
    inform: Callable[[str], object],
) -> None:
    """Record the tools and the deciding values of a crawl in the state, and name the changes.

    Raises StoreError.
    """
    check_tools(store, say=warn)
    store.update_recipe(recipe)
    if changed := decide(store, deciding):
        now = ", ".join(f"{name} = {value}" for name, (_, value) in changed.items())
        before = ", ".join(str(before) for before, _ in changed.values())
        inform(f"The state at {store.location} now decides by {now}; before by {before}.")
