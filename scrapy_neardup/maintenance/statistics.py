"""Counts of a state: pages, kinds, sites, size."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scrapy_neardup.judge.manual_verdicts import manual_verdicts
from scrapy_neardup.maintenance.scan import Ids, Watch, place, unwatched, with_evidence
from scrapy_neardup.maintenance.tables import SiteDrops, most_dropped
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.layout import unpack_seen
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record

#: The kind of copies without evidence.
UNKNOWN = "unknown"


class Census:
    """Counts pages that come by id. It keeps eight bytes for each copy.

    ``kinds``: copies by kind. ``passed``: originals that resemble an earlier page, by kind. ``variants``: copies that
    later pages are compared with. ``better``: copies that replaced their original. ``first_seen``: the oldest page, in
    seconds since 1970; 0 for none. ``rows``: rows of listings, which are compared with no page.
    """

    def __init__(self) -> None:
        self.pages = self.originals = self.variants = self.better = self.rows = 0
        self.first_seen = self._newest = 0.0
        self.kinds: Counter[str] = Counter()
        self.passed: Counter[str] = Counter()
        #: The original of each copy.
        self._copied = array("Q")
        self._led = array("Q")

    def add(self, record: Record, evidence: Evidence | None) -> None:
        """Count a page."""
        if not self.pages:
            self.first_seen = record.first_seen
        self._newest = record.first_seen
        self.pages += 1
        likeness = evidence.likeness if evidence else ""
        if record.original != record.id:
            self._copied.append(record.original)
            self.kinds[likeness or UNKNOWN] += 1
            self.variants += record.is_variant
            if record.leads:
                self.better += 1
                self._led.append(record.original)
        elif record.is_original:
            self.originals += 1
            if evidence and likeness and evidence.like:
                self.passed[likeness] += 1
        else:
            self.rows += record.is_row

    @property
    def copies(self) -> int:
        """How many copies there are."""
        return len(self._copied)

    @property
    def unjudged(self) -> int:
        """How many pages could not be judged, without rows of listings."""
        return self.pages - self.originals - self.copies - self.rows

    def groups(self) -> tuple[Ids, npt.NDArray[np.intp]]:
        """Return the sorted ids of originals with copies, even of originals that are gone, and the number of copies of
        each.
        """
        return np.unique(np.array(self._copied, np.uint64), return_counts=True)

    def led(self) -> Ids:
        """Return the ids of groups that a better page stands for."""
        return np.unique(np.array(self._led, np.uint64))

    def last_seen(self, store: PageStore) -> int:
        """Return when any page was last seen, in seconds since 1970; 0 for an empty state."""
        return max(int(self._newest), max((unpack_seen(seen)[1] for _, seen in store.rows(b"u")), default=0))


@dataclass(frozen=True, slots=True)
class Site:
    """Pages of one site, and copies among them. The name is empty for pages without a site."""

    name: str
    pages: int
    copies: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """The counts of a state, as in the JSON of ``stats``. Times are in seconds since 1970, 0 for an empty state.

    ``rows``: rows of listings. ``kinds``: copies by kind. ``originals_like_others``: originals that resemble an earlier
    page, by kind. ``better``: copies that replaced their original. ``judged_by_hand``: manual verdicts by sort.
    ``groups``: groups of two pages or more. ``dropped_sites``: the sites with most drops in the last crawls.
    """

    pages: int
    originals: int
    copies: int
    rows: int
    unjudged: int
    kinds: dict[str, int]
    originals_like_others: dict[str, int]
    variants: int
    better: int
    copies_without_original: int
    judged_by_hand: dict[str, int]
    groups: int
    largest_group: int
    sites: int
    top_sites: tuple[Site, ...]
    dropped_sites: tuple[SiteDrops, ...]
    first_seen: float
    last_seen: int
    bytes: int


def statistics(store: PageStore, limit: int = 10, watch: Watch = unwatched) -> Statistics:
    """Count a state in one pass, with eight bytes a page and the name of each site.

    ``limit``: how many sites to name, those with most pages first.
    """
    census, ids = Census(), array("Q")
    pages, copied = Counter[str](), Counter[str]()
    for record, evidence in with_evidence(store, watch):
        census.add(record, evidence)
        ids.append(record.id)
        site = site_of(record.url)
        pages[site] += 1
        copied[site] += record.original != record.id
    originals, copies = census.groups()
    there = place(np.array(ids, np.uint64), originals)[1]
    sizes = copies + there
    return Statistics(
        pages=census.pages,
        originals=census.originals,
        copies=census.copies,
        rows=census.rows,
        unjudged=census.unjudged,
        kinds=dict(census.kinds.most_common()),
        originals_like_others=dict(census.passed.most_common()),
        variants=census.variants,
        better=census.better,
        copies_without_original=int(copies[~there & ~np.isin(originals, census.led())].sum()),
        judged_by_hand=dict(Counter(one.kind.value for one in manual_verdicts(store))),
        groups=int((sizes > 1).sum()),
        largest_group=int(sizes.max(initial=min(census.originals, 1))),
        sites=len(pages),
        top_sites=tuple(Site(name, many, copied[name]) for name, many in pages.most_common(limit)),
        dropped_sites=tuple(most_dropped(store, limit)),
        first_seen=census.first_seen,
        last_seen=census.last_seen(store),
        bytes=store.size(),
    )
