"""The last crawls on a state: who they were, when, and what came of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from scrapy_neardup.model import ROW
from scrapy_neardup.stores import Store
from scrapy_neardup.stores.changes import Changes
from scrapy_neardup.stores.layout import crawl_key, last_id

#: Crawls that are remembered: the last ones.
_CRAWLS = 1000


@dataclass(frozen=True, slots=True)
class Crawl:
    """A crawl by its generation, which is the time at which it began in nanoseconds since 1970.

    ``ended``: in seconds since 1970, 0 for one that runs, or was killed. ``counts``: its stats, by their names without
    ``neardup/``; empty until it has ended.
    """

    generation: int
    who: str
    ended: int = 0
    counts: Mapping[str, float] = field(default_factory=dict)

    @property
    def begun(self) -> float:
        """Seconds since 1970."""
        return self.generation / 1e9


def verdict_counts(counts: Mapping[str, float]) -> dict[str, int]:
    """Pages of a crawl by verdict, from its stats; rows of listings, which are not judged, are counted as ``rows``.

    >>> verdict_counts({"pages": 9, "unique": 2, "unjudged/no_text": 1, "unjudged/listing": 6})
    {'unique': 2, 'duplicate': 0, 'unchanged': 0, 'updated': 0, 'better': 0, 'rows': 6, 'unjudged': 1}
    """
    found = {kind: int(counts.get(kind, 0)) for kind in ("unique", "duplicate", "unchanged", "updated", "better")}
    reasons = {name: int(many) for name, many in counts.items() if name.startswith("unjudged/")}
    rows = reasons.pop(f"unjudged/{ROW}", 0)
    return {**found, "rows": rows, "unjudged": sum(reasons.values())}


def remember_crawl(store: Store, crawl: Crawl) -> None:
    """Write down a crawl, when it begins and when it ends; of too many the oldest are not remembered."""
    about = {"who": crawl.who, "ended": crawl.ended, "counts": dict(crawl.counts)}
    changes = Changes({crawl_key(crawl.generation): json.dumps(about).encode()})
    others = [key for key, _ in store.rows(b"c") if key not in changes.puts]
    for key in others[: max(0, len(others) - _CRAWLS + 1)]:
        changes.delete(key)
    store.write(changes)


def crawls(store: Store) -> Iterator[Crawl]:
    """All crawls that the state remembers, the oldest first; raises StoreDamaged for a row that is none."""
    return store.unpacked(b"c", unpacked_crawl)


def unpacked_crawl(key: bytes, packed: bytes) -> Crawl:
    """The crawl that ``remember_crawl`` wrote; raises ValueError for another row."""
    generation = last_id(key)
    try:
        about = json.loads(packed)
        counts = {str(name): count for name, count in about["counts"].items() if isinstance(count, (int, float))}
        found = Crawl(generation, str(about["who"]), int(about["ended"]), counts)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ValueError(f"the row of a crawl cannot be read ({packed[:60]!r})") from None
    if key != crawl_key(generation):
        raise ValueError(f"{key!r} is no key of a crawl")
    return found
