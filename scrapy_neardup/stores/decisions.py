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
    if packed is None:  # of a state that has all parameters in its recipe
        found = store.recipe.get(PARAMETERS)
        return dict(found) if isinstance(found, dict) else {}
    try:
        return dict(json.loads(packed))
    except (ValueError, TypeError):
        raise store.damaged("what its last crawl decided by cannot be read") from None


def decide(store: Store, said: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Remember by what this crawl decides; returns what has changed, as it was and as it is. Raises StoreError."""
    plain = json.loads(json.dumps(said))
    before = decisions_of(store)
    if store.value(KEY) is None or before != plain:
        packed = json.dumps(plain, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")
        store.write(Changes({KEY: packed}))
    return {name: (before[name], now) for name, now in plain.items() if name in before and before[name] != now}
