"""Small tables of a state: the last crawls, feeds that may be overwritten, drops of each site."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from scrapy_neardup.kv.base import Changes
from scrapy_neardup.maintenance.forget import Forgetting, pages_where
from scrapy_neardup.maintenance.scan import Watch, unwatched
from scrapy_neardup.model import ROW
from scrapy_neardup.state.layout import crawl_key, feed_key, last_id, site_key
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record

#: The state remembers this many crawls, the last ones.
_CRAWLS = 1000


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


def verdict_counts(counts: Mapping[str, float]) -> dict[str, int]:
    """Count the pages of a crawl by verdict, from its stats. Rows of listings, which are not judged, are ``rows``.

    >>> verdict_counts({"pages": 9, "unique": 2, "unjudged/no_text": 1, "unjudged/listing": 6})
    {'unique': 2, 'duplicate': 0, 'unchanged': 0, 'updated': 0, 'better': 0, 'rows': 6, 'unjudged': 1}
    """
    found = {kind: int(counts.get(kind, 0)) for kind in ("unique", "duplicate", "unchanged", "updated", "better")}
    reasons = {name: int(many) for name, many in counts.items() if name.startswith("unjudged/")}
    rows = reasons.pop(f"unjudged/{ROW}", 0)
    return {**found, "rows": rows, "unjudged": sum(reasons.values())}


def remember_crawl(store: PageStore, crawl: Crawl) -> None:
    """Write a crawl when it begins and when it ends. The oldest crawls go."""
    about = {"who": crawl.who, "ended": crawl.ended, "counts": dict(crawl.counts)}
    changes = Changes({crawl_key(crawl.generation): json.dumps(about).encode()})
    others = [key for key, _ in store.rows(b"c") if key not in changes.puts]
    for key in others[: max(0, len(others) - _CRAWLS + 1)]:
        changes.delete(key)
    store.write(changes)


def crawls(store: PageStore) -> Iterator[Crawl]:
    """Yield the crawls, oldest first. Raises StoreDamaged."""
    return store.unpacked(b"c", unpacked_crawl)


def unpacked_crawl(key: bytes, packed: bytes) -> Crawl:
    """Unpack the row of a crawl. Raises ValueError."""
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


#: The state remembers this many feeds, those written last, and this many spans of each.
_FEEDS, _SPANS = 1000, 16

#: First id, last id and number of pages that were stored together. Pages of other feeds may lie between.
Span = tuple[int, int, int]


@dataclass(slots=True)
class Delivery:
    """A feed: spans of the pages that it holds, and of pages that it held before it was overwritten."""

    feed: str
    held: list[Span] = field(default_factory=list)
    gone: list[Span] = field(default_factory=list)
    #: Seconds since 1970.
    when: int = 0

    def stored(self, span: Span, crawl: int) -> None:
        """Add pages to the feed. Pages of one crawl, whose ids are larger than the crawl's, are one span."""
        if self.held and self.held[-1][0] > crawl:
            span = _joined(self.held.pop(), span)
        self.held = _few([*self.held, span])

    def overwritten(self, *, known: bool) -> None:
        """The feed was emptied. Its pages are gone, or ``known`` if somebody fetched them before."""
        self.gone, self.held = _few([*self.gone, *([] if known else self.held)]), []


def deliveries(store: PageStore) -> Iterator[Delivery]:
    """Yield the feeds. Raises StoreDamaged."""
    return store.unpacked(b"f", unpacked_delivery)


def unpacked_delivery(key: bytes, packed: bytes) -> Delivery:
    """Unpack the row of a feed. Raises ValueError."""
    try:
        about = json.loads(packed)
        held, gone = ([(int(a), int(b), int(n)) for a, b, n in about[name]] for name in ("held", "gone"))
        found = Delivery(str(about["feed"]), held, gone, int(about["when"]))
    except (ValueError, TypeError, KeyError):
        raise ValueError(f"the row of a feed cannot be read ({packed[:60]!r})") from None
    if key != feed_key(found.feed):
        raise ValueError(f"the row of the feed {found.feed} is that of another one")
    return found


def remember(store: PageStore, delivery: Delivery) -> None:
    """Write a feed, and wait for the disk. The oldest feeds go."""
    delivery.when = int(time.time())
    about = {name: getattr(delivery, name) for name in ("feed", "held", "gone", "when")}
    changes = Changes({feed_key(delivery.feed): json.dumps(about).encode()})
    if store.value(feed_key(delivery.feed)) is None:
        others = sorted(deliveries(store), key=lambda one: one.when, reverse=True)
        for old in others[_FEEDS - 1 :]:
            changes.delete(feed_key(old.feed))
    store.write(changes)


def overwritten(store: PageStore, watch: Watch = unwatched) -> Forgetting:
    """Return the pages that overwritten feeds held."""
    return pages_of(store, [span for one in deliveries(store) for span in one.gone], watch)


def settle(store: PageStore) -> None:
    """Clear the list of overwritten pages: they were forgotten."""
    for one in list(deliveries(store)):
        if one.gone:
            one.gone = []
            remember(store, one)


def within(spans: Iterable[Span]) -> Callable[[Record], bool]:
    """Return a predicate: was a page first seen within one of these spans?"""
    bounds = [(first, last) for first, last, _ in spans]
    return lambda record: any(first <= record.id <= last for first, last in bounds)


def pages_of(store: PageStore, spans: Iterable[Span], watch: Watch = unwatched) -> Forgetting:
    """Return the pages of these spans, with the copies of originals among them."""
    return pages_where(store, within(spans), watch)


def _few(spans: list[Span]) -> list[Span]:
    """Join the oldest spans until there are few enough."""
    while len(spans) > _SPANS:
        spans = [_joined(spans[0], spans[1]), *spans[2:]]
    return spans


def _joined(one: Span, other: Span) -> Span:
    return min(one[0], other[0]), max(one[1], other[1]), one[2] + other[2]


#: The state remembers this many sites, those crawled last. Strangers choose how many sites there are.
_SITES = 5000
#: Above this many pages the counts shrink in proportion, so they describe the last crawls.
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


def site_drops(store: PageStore) -> Iterator[SiteDrops]:
    """Yield the counts of all sites. Raises StoreDamaged."""
    return store.unpacked(b"h", unpacked_site_drops)


def most_dropped(store: PageStore, limit: int) -> list[SiteDrops]:
    """Return the sites with drops: first those that lost delivered pages, then those with most drops."""
    found = [one for one in site_drops(store) if one.drops]
    return sorted(found, key=lambda one: (-one.delivered, -one.drops, one.site))[:limit]


def add_site_drops(store: PageStore, found: Iterable[SiteDrops], crawled: int) -> None:
    """Add the counts of a crawl at its end. Above 5,000 sites, those crawled longest ago go."""
    known = {one.site: one for one in site_drops(store)}
    changed = {one.site: known.get(one.site, SiteDrops(one.site)).plus(one, crawled) for one in found}
    latest = sorted((known | changed).values(), key=lambda one: (one.crawled, one.pages), reverse=True)
    changes = Changes()
    for one in latest[:_SITES]:
        if one.site in changed:
            about = [one.site, one.pages, one.drops, one.delivered, one.crawled]
            changes.put(site_key(one.site), json.dumps(about).encode())
    for one in latest[_SITES:]:
        if one.site in known:
            changes.delete(site_key(one.site))
    if changed:
        store.write(changes)


def unpacked_site_drops(key: bytes, packed: bytes) -> SiteDrops:
    """Unpack the counts of a site. Raises ValueError."""
    try:
        site, pages, drops, delivered, crawled = list[Any](json.loads(packed))
        found = SiteDrops(str(site), int(pages), int(drops), int(delivered), int(crawled))
    except (ValueError, TypeError):
        raise ValueError(f"the counts of a site cannot be read ({packed[:60]!r})") from None
    if key != site_key(found.site):
        raise ValueError(f"the counts of {found.site} are stored under another site")
    return found
