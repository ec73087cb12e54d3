"""States made by hand, and a plain recount of what a report says of them."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

from scrapy_neardup.maintenance.scan import COPIES, PASSED
from scrapy_neardup.maintenance.source import PageEntry
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record, row_mark

SECOND = 10**9
#: When the first page of most states is first seen, in seconds since 1970.
BEGIN = 1_750_000_000
RECIPE: dict[str, Any] = {"method": "cascade", "version": 1, "parameters": {}}
NO_SITE, GONE = "(no site)", "(no longer in the state)"
LIKENESSES = ["identical", "near", "retitled", "excerpt", "same_title", "", "unheard-of"]


class State:
    """Pages that are made one after the other, a minute apart."""

    def __init__(self, recipe: dict[str, Any] | None = None, step: int = 60) -> None:
        self.store = memory_state(RECIPE if recipe is None else recipe)
        self._step = step
        self._next = BEGIN * SECOND

    def add(
        self, url: str, of: int = 0, similarity: float = 1.0, evidence: Evidence | None = None, *, seen: int = 0
    ) -> int:
        """Put in an original, or a copy ``of`` another page; returns its id."""
        id, self._next = self._next, self._next + self._step * SECOND
        self.store.add(Record(id, url, of or id, similarity), evidence, seen=seen or id // SECOND)
        return id

    def copy(self, url: str, of: int, likeness: str = "near", similarity: float = 0.8, **evidence: Any) -> int:
        """Put in a copy with evidence."""
        return self.add(url, of, similarity, Evidence(likeness, 0, similarity, **evidence))


def filled(pages: list[PageEntry], recipe: dict[str, Any] | None = None) -> PageStore:
    store = memory_state(RECIPE if recipe is None else recipe)
    for one in pages:
        store.add(one.record, one.evidence, seen=one.seen)
    return store


#: URLs with and without a site.
_URLS = ("https://site{site}.example/{n}", "http://www.site{site}.example/{n}", "item {n}", "http://[{n}")


def large_state(pages: int, sites: int, seed: int = 1) -> list[PageEntry]:
    """Pages of many sites: originals, a third copies, also of pages that are gone, unjudged pages, rows of listings."""
    dice = random.Random(seed)
    originals: list[int] = [999]
    found = []
    for number in range(pages):
        id = (BEGIN + 600 * number) * SECOND
        shape = _URLS[min(3, dice.randrange(40))] if number % 9 == 0 else _URLS[0]
        url = shape.format(site=min(dice.randrange(sites), dice.randrange(sites)), n=number)
        evidence = Evidence(
            dice.choice(LIKENESSES), 0, round(dice.random(), 4), 0.9, dice.randrange(5000), f"T {number}"
        )
        if dice.random() < 0.33:
            original = originals[int(len(originals) * dice.random() ** 3)]
            record = Record(id, url, original, round(dice.random(), 4))
        elif dice.random() < 0.05:
            record = Record(id, url, id, 0.0, sketch=row_mark(number) if number % 2 else b"")
        else:
            record = Record(id, url, id, 1.0)
            evidence = replace(evidence, like=dice.choice(originals) if dice.random() < 0.5 else 0)
            originals.append(id)
        seen = dice.choice([0, BEGIN + dice.randrange(10**8)])
        found.append(PageEntry(record, evidence=evidence if dice.random() < 0.8 else None, seen=seen))
    return found


def site(url: str) -> str:
    return site_of(url) or NO_SITE


def kind(evidence: Evidence | None) -> str:
    return evidence.likeness if evidence and evidence.likeness in COPIES else "unknown"


def copies(pages: list[PageEntry]) -> list[PageEntry]:
    return [one for one in pages if one.record.original != one.record.id]


def passed(pages: list[PageEntry]) -> list[tuple[Record, Evidence]]:
    return [
        (one.record, one.evidence)
        for one in pages
        if one.record.original == one.record.id and one.record.similarity > 0
        if one.evidence is not None and one.evidence.likeness in PASSED and one.evidence.like
    ]


def totals(pages: list[PageEntry]) -> dict[str, Any]:
    own = [one.record for one in pages if one.record.original == one.record.id]
    lengths = [one.evidence.letters for one in copies(pages) if one.evidence]
    ids, sizes = {one.record.id for one in pages}, Counter(one.record.original for one in copies(pages))
    sites = Counter(site_of(one.record.url) for one in pages)
    return {
        "pages": len(pages),
        "originals": sum(one.similarity > 0 for one in own),
        "copies": len(copies(pages)),
        "unjudged": sum(one.similarity == 0 and not one.sketch for one in own),
        "rows": sum(one.similarity == 0 and bool(one.sketch) for one in own),
        "kinds": dict(Counter(kind(one.evidence) for one in copies(pages))),
        "originals_like_others": dict(Counter(evidence.likeness for _, evidence in passed(pages))),
        "variants": 0,
        "better": 0,
        "copies_without_original": sum(many for id, many in sizes.items() if id not in ids),
        "judged_by_hand": {},
        "groups": len(sizes),
        "largest_group": max(
            [*(many + (id in ids) for id, many in sizes.items()), *(one.is_original for one in own)], default=0
        ),
        "characters_saved": sum(lengths),
        "copies_of_known_length": len(lengths),
        "sites": len(sites.keys() - {""}),
        "dropped_sites": (),
        "first_seen": min((one.record.id / 1e9 for one in pages), default=0),
        "last_seen": max([int(one.record.id / 1e9) for one in pages] + [one.seen for one in pages], default=0),
    }


def largest_sites(pages: list[PageEntry], many: int) -> list[tuple[int, int]]:
    """Pages and copies of the largest sites."""
    copying = Counter(site_of(one.record.url) for one in copies(pages))
    sites = Counter(site_of(one.record.url) for one in pages)
    return [(count, copying[name]) for name, count in sites.most_common(many)]


def flows(pages: list[PageEntry]) -> list[tuple[str, str, int]]:
    sites = {one.record.id: site(one.record.url) for one in pages}
    found = Counter((site(one.record.url), sites.get(one.record.original, GONE)) for one in copies(pages))
    return sorted(((*both, many) for both, many in found.items()), key=lambda flow: (-flow[2], flow[:2]))


def groups(pages: list[PageEntry]) -> list[tuple[int, list[int]]]:
    """Ids of originals and of their copies, the largest group first."""
    of: dict[int, list[int]] = {}
    for one in copies(pages):
        of.setdefault(one.record.original, []).append(one.record.id)
    return sorted(of.items(), key=lambda item: (-len(item[1]), item[0]))
