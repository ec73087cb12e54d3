"""Small tables of a state, each with a maximum number of rows: the last crawls, and the drops of each site."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from scrapy_neardup.kv.base import Changes, Row
from scrapy_neardup.model import LISTING, Outcome
from scrapy_neardup.state.layout import crawl_key, last_id, site_key
from scrapy_neardup.state.pages import PageStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Table(Generic[T]):
    """A table below ``prefix``; ``name`` is for messages.

    ``encode`` returns the row of a value, ``decode`` the value of a row. Above ``limit`` rows, those with the least
    ``age`` go.
    """

    prefix: bytes
    name: str
    encode: Callable[[T], Row]
    decode: Callable[[bytes, bytes], T]
    limit: int
    age: Callable[[T], Any]

    def unpack(self, key: bytes, packed: bytes) -> T:
        """Return the value of a row. Raises ValueError for a damaged one."""
        try:
            value = self.decode(key, packed)
        except (ValueError, TypeError, KeyError, AttributeError, struct.error):
            raise ValueError(f"the row of a {self.name} cannot be read ({packed[:60]!r})") from None
        if self.encode(value)[0] != key:
            raise ValueError(f"the row {key!r} holds the {self.name} of another key")
        return value

    def read(self, store: PageStore) -> Iterator[T]:
        """Yield all values by key. Raises StoreDamaged."""
        return store.unpacked(self.prefix, self.unpack)

    def write(self, store: PageStore, *values: T) -> None:
        """Write values in one batch and wait for the disk. Rows above the limit go."""
        changes = Changes(dict(map(self.encode, values)))
        if any(store.kv.get(key) is None for key in changes.puts):
            rows = {self.encode(value)[0]: value for value in (*self.read(store), *values)}
            for key in sorted(rows, key=lambda key: self.age(rows[key]), reverse=True)[self.limit :]:
                changes.delete(key)
        store.write(changes)


@dataclass(frozen=True, slots=True)
class Crawl:
    """A crawl. ``generation``: when it began, in nanoseconds since 1970.

    ``ended``: in seconds since 1970; 0 while it runs, or if it was killed. ``counts``: its stats without the prefix
    ``neardup/``, empty until it ends.
    """

    generation: int
    who: str
    ended: int = 0
    counts: Mapping[str, float] = field(default_factory=dict)

    @property
    def begun(self) -> float:
        """Seconds since 1970."""
        return self.generation / 1e9

    @property
    def ended_well(self) -> bool:
        """Whether it was not killed, and its feeds were stored."""
        return self.ended > 0 and "unsealed" not in self.counts


def count_verdicts(counts: Mapping[str, float]) -> dict[str, int]:
    """Count the pages of a crawl by verdict, from its stats. Rows of listings, which are not judged, are ``rows``.

    >>> counts = count_verdicts({"pages": 9, "unique": 2, "unjudged/no_text": 1, "unjudged/listing": 6})
    >>> {kind: many for kind, many in counts.items() if many}
    {'unique': 2, 'rows': 6, 'unjudged': 1}
    """
    found = {outcome.value: int(counts.get(outcome.value, 0)) for outcome in Outcome if outcome is not Outcome.UNJUDGED}
    reasons = {name: int(many) for name, many in counts.items() if name.startswith("unjudged/")}
    rows = reasons.pop(f"unjudged/{LISTING}", 0)
    return {**found, "rows": rows, "unjudged": sum(reasons.values())}


def _encode_crawl(crawl: Crawl) -> Row:
    about = {"who": crawl.who, "ended": crawl.ended, "counts": dict(crawl.counts)}
    return crawl_key(crawl.generation), json.dumps(about).encode()


def _decode_crawl(key: bytes, packed: bytes) -> Crawl:
    about = json.loads(packed)
    counts = {str(name): count for name, count in about["counts"].items() if isinstance(count, (int, float))}
    return Crawl(last_id(key), str(about["who"]), int(about["ended"]), counts)


#: The last crawls.
CRAWLS = Table(b"c", "crawl", _encode_crawl, _decode_crawl, limit=1000, age=lambda crawl: crawl.generation)


#: Above this many pages the counts of a site shrink in proportion, so they describe the last crawls.
_PAGES = 1000


@dataclass(frozen=True, slots=True)
class SiteDrops:
    """Judged pages of a site and drops among them. ``delivered``: drops of pages that were delivered before.

    ``crawled``: when a crawl last counted the site, in seconds since 1970.
    """

    site: str
    pages: int = 0
    drops: int = 0
    delivered: int = 0
    crawled: int = 0

    def plus(self, other: SiteDrops, crawled: int) -> SiteDrops:
        """Add counts, and shrink them to the last pages."""
        pages = self.pages + other.pages
        share = min(1.0, _PAGES / max(1, pages))
        drops, delivered = self.drops + other.drops, self.delivered + other.delivered
        return SiteDrops(self.site, round(pages * share), round(drops * share), round(delivered * share), crawled)


def _encode_site(one: SiteDrops) -> Row:
    return site_key(one.site), json.dumps([one.site, one.pages, one.drops, one.delivered, one.crawled]).encode()


def _decode_site(key: bytes, packed: bytes) -> SiteDrops:
    site, *counts = json.loads(packed)
    pages, drops, delivered, crawled = map(int, counts)
    return SiteDrops(str(site), pages, drops, delivered, crawled)


#: Sites crawled last. Strangers choose how many sites there are.
SITES = Table(b"h", "site", _encode_site, _decode_site, limit=5000, age=lambda one: (one.crawled, one.pages))


def most_dropped(store: PageStore, limit: int) -> list[SiteDrops]:
    """Return the sites with drops: first those that lost delivered pages, then those with most drops."""
    found = [one for one in SITES.read(store) if one.drops]
    return sorted(found, key=lambda one: (-one.delivered, -one.drops, one.site))[:limit]


def add_site_drops(store: PageStore, found: Iterable[SiteDrops], crawled: int) -> None:
    """Add the counts of a crawl at its end."""
    known = {one.site: one for one in SITES.read(store)}
    changed = [known.get(one.site, SiteDrops(one.site)).plus(one, crawled) for one in found]
    if changed:
        SITES.write(store, *changed)
