"""Which pages are too many, or were not seen for too long: all at once, where a crawl takes a few with each page."""

from __future__ import annotations

import numpy as np

from scrapy_neardup.states.forgetting import Forgetting, forgetting_of, last_sights
from scrapy_neardup.states.reading import Watch, unwatched
from scrapy_neardup.stores import Bounds, Store


def expired(store: Store, bounds: Bounds, watch: Watch = unwatched) -> Forgetting:
    """The pages that were last seen longer ago than the TTL, and of what is left those that are too many.

    Those that were seen longest ago go first. An original is seen in its copies, so none of these outlives it.
    """
    found, seen = last_sights(store, watch)
    going = np.zeros(len(seen), np.bool_)
    if bounds.ttl is not None:
        going = seen < np.uint64(max(store.now() - bounds.ttl, 0))
    if bounds.exceeded(len(seen) - int(going.sum())):
        # Of those that were seen at the same time a copy goes before its original, and else the older one.
        order = np.lexsort((found.ids, ~found.copies, seen, ~going))
        going[order[: len(seen) - (bounds.max_pages or 0)]] = True
    return forgetting_of(found, going)
