"""How many pages of each site the last crawls judged, and how many of them they dropped as copies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from scrapy_neardup.stores import Store
from scrapy_neardup.stores.changes import Changes
from scrapy_neardup.stores.layout import site_key

#: Sites that a state remembers: those that were crawled last. Strangers choose how many there are.
_SITES = 5000
#: Of more pages the counts shrink together, so that they tell of the last crawls.
_PAGES = 1000


@dataclass(frozen=True, slots=True)
class SiteDrops:
    """Pages of a site that were judged, and drops among them. ``delivered``: drops of pages delivered before.

    ``crawled``: when a crawl last counted the site, in seconds since 1970.
    """

    site: str
    pages: int = 0
    drops: int = 0
    delivered: int = 0
    crawled: int = 0

    def plus(self, other: SiteDrops, crawled: int) -> SiteDrops:
        """The sum of both, of the last pages."""
        pages = self.pages + other.pages
        share = min(1.0, _PAGES / max(1, pages))
        drops, delivered = self.drops + other.drops, self.delivered + other.delivered
        return SiteDrops(self.site, round(pages * share), round(drops * share), round(delivered * share), crawled)


def site_drops(store: Store) -> Iterator[SiteDrops]:
    """The counts of all sites; raises StoreDamaged for a row that is none."""
    return store.unpacked(b"h", unpacked_site_drops)


def most_dropped(store: Store, limit: int) -> list[SiteDrops]:
    """The sites with drops; those whose delivered pages were dropped come first, then those with most drops."""
    found = [one for one in site_drops(store) if one.drops]
    return sorted(found, key=lambda one: (-one.delivered, -one.drops, one.site))[:limit]


def add_site_drops(store: Store, found: Iterable[SiteDrops], crawled: int) -> None:
    """Add the counts of a crawl at its end; above 5,000 sites those that were crawled longest ago go."""
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
    """What ``add_site_drops`` wrote; raises ValueError for another row."""
    try:
        site, pages, drops, delivered, crawled = list[Any](json.loads(packed))
        found = SiteDrops(str(site), int(pages), int(drops), int(delivered), int(crawled))
    except (ValueError, TypeError):
        raise ValueError(f"the counts of a site cannot be read ({packed[:60]!r})") from None
    if key != site_key(found.site):
        raise ValueError(f"the counts of {found.site} are stored under another site")
    return found
