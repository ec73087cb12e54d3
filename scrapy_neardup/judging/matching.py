"""Which earlier pages a page may be like: those that share keys with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from scrapy_neardup.methods import Method
from scrapy_neardup.stores import Store


def candidates(method: Method, store: Store, keys: Iterable[int]) -> tuple[frozenset[int], list[int]]:
    """The keys that are no evidence, and the ids of the pages that share others, those with the most of them first.

    A key that is common is not filed once more, so none has many more postings than that.
    """
    found: Counter[int] = Counter()
    common = set()
    limit = method.common
    for key in keys:
        ids = store.postings(key, limit)
        if len(ids) >= limit:
            common.add(key)
        elif ids:
            found.update(ids)
    return frozenset(common), [id for id, _ in found.most_common(method.candidates)]
