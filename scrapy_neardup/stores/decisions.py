"""By what the last crawl of a state decided: parameters and settings on which no fingerprint depends.

They are no part of the recipe, so two crawls of one state may have them different. The state remembers those of the
last one, so that a log line can tell what is decided otherwise from here on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scrapy_neardup.stores.base import Store
from scrapy_neardup.stores.changes import Changes
from scrapy_neardup.stores.layout import meta_key
from scrapy_neardup.stores.recipe import PARAMETERS

KEY = meta_key("decisions")


def decisions_of(store: Store) -> dict[str, Any]:
    """Those of the last crawl, by name; empty if there was none. Raises StoreDamaged for a row that is none."""
    packed = store.value(KEY)
    try:
        return {} if packed is None else dict(json.loads(packed))
    except (ValueError, TypeError):
        raise store.damaged("the deciding settings of its last crawl cannot be read") from None


def decide(store: Store, said: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Remember by what this crawl decides; returns what has changed, as it was and as it is. Raises StoreError."""
    plain = json.loads(json.dumps(said))
    before = decisions_of(store)
    if before != plain:
        packed = json.dumps(plain, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")
        store.write(Changes({KEY: packed}))
    known = {**_all_parameters(store), **before}
    return {name: (known[name], now) for name, now in plain.items() if name in known and known[name] != now}


def _all_parameters(store: Store) -> dict[str, Any]:
    """Those in the recipe: of a state that was begun before these were left out of it, all of them."""
    found = store.recipe.get(PARAMETERS)
    return dict(found) if isinstance(found, dict) else {}
