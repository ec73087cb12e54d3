"""What is in a state, in numbers."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass

import numpy as np

from scrapy_neardup.hashing import fingerprint64
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.states.members import Collector, Members, column, last_seen
from scrapy_neardup.states.reading import Watch, unwatched, with_evidence
from scrapy_neardup.stores import Store

#: Copies and pages without evidence.
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Site:
    """Pages of one site (see ``site_of``; empty for pages without one), and how many of them are copies."""

    name: str
    pages: int
    copies: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """The numbers of a state.

    ``kinds``: copies by their likeness. ``passed``: originals that are like an earlier page, by likeness.
    ``lost``: copies whose original is gone. ``groups``: those of two pages or more. Times in seconds since 1970, 0 for
    an empty state.
    """

    pages: int
    originals: int
    copies: int
    unjudged: int
    witnesses: int
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


def statistics(store: Store, limit: int = 10, watch: Watch = unwatched) -> Statistics:
    """Count the pages of a state; ``limit``: how many sites are named, those with the most pages. Reads all once."""
    collector, sites = Collector(), array("Q")
    kinds: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    witnesses = 0
    for record, evidence in with_evidence(store, watch):
        collector.add(record)
        sites.append(fingerprint64(site_of(record.url)))
        likeness = evidence.likeness if evidence else ""
        if record.original != record.id:
            kinds[likeness or UNKNOWN] += 1
            witnesses += bool(record.keys)
        elif likeness:
            passed[likeness] += 1
    found = collector.members()
    sizes = found.sizes()
    copies = found.copies
    many, top = _sites(store, found, sites, limit)
    return Statistics(
        pages=len(found.ids),
        originals=int((found.judged & ~copies).sum()),
        copies=int(copies.sum()),
        unjudged=int((~found.judged).sum()),
        witnesses=witnesses,
        lost=int((~found.place(found.originals)[1]).sum()),
        kinds=dict(kinds.most_common()),
        passed=dict(passed.most_common()),
        groups=int((sizes > 1).sum()),
        largest=int(sizes.max(initial=0)),
        sites=many,
        top=top,
        first_seen=float(found.ids[0]) / 1e9 if len(found.ids) else 0.0,
        last_seen=int(last_seen(store, found).max(initial=0)),
        bytes=store.size(),
    )


def _sites(store: Store, found: Members, sites: array[int], limit: int) -> tuple[int, tuple[Site, ...]]:
    """How many there are, and those with the most pages; their names are read from the first page of each."""
    names, first, place, pages = np.unique(column(sites), return_index=True, return_inverse=True, return_counts=True)
    copies = np.bincount(place.ravel(), weights=found.copies, minlength=len(names)).astype(np.int64)
    largest = np.lexsort((first, -pages))[:limit]
    top = []
    for at in largest.tolist():
        record = store.record(int(found.ids[first[at]]))
        top.append(Site(site_of(record.url) if record else "", int(pages[at]), int(copies[at])))
    return len(names), tuple(top)
