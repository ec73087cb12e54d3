"""What is in a state, in numbers."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.judging.judgements import judgements
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.states.census import Census
from scrapy_neardup.states.members import column, place
from scrapy_neardup.states.reading import Watch, unwatched, with_evidence
from scrapy_neardup.states.site_drops import SiteDrops, most_dropped
from scrapy_neardup.stores import Record, Store


@dataclass(frozen=True, slots=True)
class Site:
    """Pages of one site (see ``site_of``; empty for pages without one), and how many of them are copies."""

    name: str
    pages: int
    copies: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """The numbers of a state.

    ``kinds``: copies by their likeness. ``passed``: originals that are like an earlier page, by likeness. ``better``:
    copies that have come to stand for their group. ``lost``: copies whose original is gone. ``groups``: those of two
    pages or more. Times in seconds since 1970, 0 for an empty state. ``judged``: manual verdicts
    by their sort. ``rows``: rows of listings, which are compared with no page. ``dropped``: the sites with the largest
    number of drops in the last crawls.
    """

    pages: int
    originals: int
    copies: int
    unjudged: int
    witnesses: int
    better: int
    lost: int
    kinds: dict[str, int]
    passed: dict[str, int]
    groups: int
    largest: int
    sites: int
    top: tuple[Site, ...]
    first_seen: float
    last_seen: int
    bytes: int
    judged: dict[str, int] = field(default_factory=dict)
    dropped: tuple[SiteDrops, ...] = ()
    rows: int = 0


def statistics(store: Store, limit: int = 10, watch: Watch = unwatched) -> Statistics:
    """Count the pages of a state; ``limit``: how many sites are named, those with the most pages. Reads all once."""
    census, pages = Census(), _Pages()
    for record, evidence in with_evidence(store, watch):
        census.add(record, evidence)
        pages.add(record)
    originals, copies = census.groups()
    there = place(column(pages.ids), originals)[1]
    sizes = copies + there
    sites, top = pages.sites_of(store, limit)
    return Statistics(
        pages=census.pages,
        originals=census.originals,
        copies=census.copies,
        unjudged=census.unjudged,
        witnesses=census.witnesses,
        better=census.better,
        lost=int(copies[~there & ~np.isin(originals, census.led())].sum()),
        kinds=dict(census.kinds.most_common()),
        passed=dict(census.passed.most_common()),
        groups=int((sizes > 1).sum()),
        largest=int(sizes.max(initial=min(census.originals, 1))),
        sites=sites,
        top=top,
        first_seen=census.first_seen,
        last_seen=census.last_seen(store),
        bytes=store.size(),
        judged=dict(Counter(one.said.value for one in judgements(store))),
        dropped=tuple(most_dropped(store, limit)),
        rows=census.rows,
    )


class _Pages:
    """What is held of every page: its id, a hash of its site, and whether it is a copy."""

    def __init__(self) -> None:
        self.ids = array("Q")
        self._sites = array("Q")
        self._copies = array("B")

    def add(self, record: Record) -> None:
        self.ids.append(record.id)
        self._sites.append(OPEN.of(site_of(record.url)))
        self._copies.append(record.original != record.id)

    def sites_of(self, store: Store, limit: int) -> tuple[int, tuple[Site, ...]]:
        """How many there are, and those with the most pages; their names are read from the first page of each."""
        names, first, at, pages = np.unique(
            column(self._sites), return_index=True, return_inverse=True, return_counts=True
        )
        copies = np.bincount(at.ravel(), weights=np.array(self._copies), minlength=len(names)).astype(np.int64)
        top = []
        for number in np.lexsort((first, -pages))[:limit].tolist():
            record = store.record(self.ids[first[number]])
            top.append(Site(site_of(record.url) if record else "", int(pages[number]), int(copies[number])))
        return len(names), tuple(top)
