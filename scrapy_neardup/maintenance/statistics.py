"""Counts of a state: pages, kinds, sites, size."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.judge.manual_verdicts import judgements
from scrapy_neardup.maintenance.scan import Ids, Watch, column, place, unwatched, with_evidence
from scrapy_neardup.maintenance.tables import SiteDrops, most_dropped
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.layout import unpack_seen
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record

# ----------------------------------------------------------------------------------------------------------------------
# How many pages of which sort a state holds, counted as they go by.


#: The kind of copies without evidence.
UNKNOWN = "unknown"


class Census:
    """Takes every page once, by id; what grows with the state are eight bytes for each copy.

    ``kinds``: copies by likeness. ``passed``: originals that are like an earlier page, by likeness. ``witnesses``:
    copies that others are compared with. ``better``: copies that have come to stand for their group. ``first_seen``: of
    the first page, in seconds since 1970, 0 if there is none. ``rows``: of listings, which are compared with no page.
    """

    def __init__(self) -> None:
        self.pages = self.originals = self.witnesses = self.better = self.rows = 0
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
            self.witnesses += record.is_witness
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
        """Pages that were dropped for another one."""
        return len(self._copied)

    @property
    def unjudged(self) -> int:
        """Pages that could not be judged; rows of listings are not among them."""
        return self.pages - self.originals - self.copies - self.rows

    def groups(self) -> tuple[Ids, npt.NDArray[np.intp]]:
        """Ids of the originals that have copies, also of those that are gone, in their order; how many each has."""
        return np.unique(column(self._copied), return_counts=True)

    def led(self) -> Ids:
        """Ids of the groups for which a better page stands."""
        return np.unique(column(self._led))

    def last_seen(self, store: PageStore) -> int:
        """When any page of the state was last judged, in seconds since 1970; 0 if there is none."""
        return max(int(self._newest), max((unpack_seen(seen)[1] for _, seen in store.rows(b"u")), default=0))


# ----------------------------------------------------------------------------------------------------------------------
# What is in a state, in numbers.


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


def statistics(store: PageStore, limit: int = 10, watch: Watch = unwatched) -> Statistics:
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

    def sites_of(self, store: PageStore, limit: int) -> tuple[int, tuple[Site, ...]]:
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
