"""A state to the data of a report.

Memory grows by 16 bytes a page, and a name for each site and each pair of sites.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from scrapy_neardup.maintenance.scan import Census, Watch, kind_of, passed_kind, unwatched, with_evidence
from scrapy_neardup.maintenance.tables import CRAWLS, Crawl, count_verdicts
from scrapy_neardup.model import LISTING
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.report.data import GONE, NO_SITE, Group, Report
from scrapy_neardup.report.pairs import PageReader, PairCandidates, choose_pairs, copy_lines
from scrapy_neardup.state.pages import PageStore, newest_replacement
from scrapy_neardup.state.record import Record
from scrapy_neardup.untrusted import SENTENCE, SITE, TITLE, clean_line, clean_text

#: Groups to show, and copies of each; pairs of sites to show; crawls to show, the last ones.
GROUPS, PAGES_OF_GROUP, FLOWS, _LAST_CRAWLS = 100, 20, 100, 50
#: Remember the sites of so many originals.
_REMEMBERED = 50_000
#: Kinds of copies that share the title of their original.
_SAME_TITLE = ("identical", "near", "same_title")
_UNJUDGED = "unjudged/"


def gather(store: PageStore, *, rows: int = 2000, watch: Watch = unwatched) -> Report:
    """Read the data of a report from a state, in two passes. It changes nothing.

    ``rows``: how many of the newest copies to list. ``watch`` shows progress. Raises StoreError.
    """
    census, candidates, newest = Census(), PairCandidates(), deque[int](maxlen=rows)
    flows = Counter[tuple[str, str]]()

    @lru_cache(_REMEMBERED)
    def site_of_id(id: int) -> str:
        record = store.record(id)
        return GONE if record is None else site_of(record.url) or NO_SITE

    for record, evidence in with_evidence(store, watch):
        census.add(record, evidence)
        if record.original != record.id:
            newest.append(record.id)
            flows[site_of(record.url) or NO_SITE, site_of_id(record.original)] += 1
            candidates.add(kind_of(evidence), record.similarity, record.id)
        elif record.is_original and evidence is not None and (kind := passed_kind(evidence)):
            candidates.add(f"{kind} passed", evidence.similarity, record.id)
    originals, copies = census.groups
    order = np.lexsort((originals, -copies))[:GROUPS]  # the largest first, then the oldest
    largest = dict(zip(originals[order].tolist(), copies[order].tolist(), strict=True))
    members = _members(watch(store.records(), store.pages), largest)
    largest_flows = sorted(flows.items(), key=lambda item: (-item[1], item[0]))[:FLOWS]
    remembered = list(CRAWLS.read(store))
    parameters = store.recipe.get("parameters")
    reader = PageReader(store, simplified=isinstance(parameters, dict) and bool(parameters.get("simplified")))
    return Report(
        location=clean_text(store.location),
        method=clean_line(str(store.recipe.get("method", "")), SENTENCE),
        totals=census.statistics(store),
        flows=tuple((clean_line(one, SITE), clean_line(other, SITE), many) for (one, other), many in largest_flows),
        all_flows=len(flows),
        groups=tuple(_group(reader, id, largest[id], members[id]) for id in largest),
        pairs=choose_pairs(candidates.ids(), reader),
        copies=tuple(copy_lines(reader, reversed(newest))),
        unjudged=count_reasons(remembered),
        crawls=tuple(map(_crawl_line, reversed(remembered[-_LAST_CRAWLS:]))),
        remembered=len(remembered),
    )


def count_reasons(crawls: Sequence[Crawl]) -> dict[str, int]:
    """Count unjudged pages by reason, the most frequent first, without rows of listings.

    >>> count_reasons([Crawl(1, "a", 2, {"unjudged/no_text": 1, "unjudged/listing": 4}), Crawl(3, "a", 4, {})])
    {'no_text': 1}
    """
    counted: Counter[str] = Counter()
    for crawl in crawls:
        for name, count in crawl.counts.items():
            if name.startswith(_UNJUDGED) and name != _UNJUDGED + LISTING:
                counted[clean_line(name.removeprefix(_UNJUDGED), SITE)] += int(count)
    return {name: many for name, many in sorted(counted.items(), key=lambda one: (-one[1], one[0])) if many}


def _crawl_line(crawl: Crawl) -> dict[str, Any]:
    """Return a crawl. ``ended`` is 0 while it runs or if it was killed; ``lost`` counts pages that were rolled back."""
    verdicts = count_verdicts(crawl.counts)
    del verdicts["better"]
    pages, lost = (int(crawl.counts.get(name, 0)) for name in ("pages", "rolled_back"))
    about = {"who": clean_line(crawl.who, SITE), "begun": int(crawl.begun), "ended": crawl.ended}
    return {**about, "pages": pages, **verdicts, "lost": lost}


def _members(records: Iterable[Record], largest: Collection[int]) -> dict[int, list[Record]]:
    """Return the first copies of each original."""
    members: dict[int, list[Record]] = {id: [] for id in largest}
    for record in records:
        found = members.get(record.original)
        if found is not None and record.original != record.id and len(found) < PAGES_OF_GROUP:
            found.append(record)
    return members


def _group(reader: PageReader, id: int, copies: int, members: list[Record]) -> Group:
    first, better = reader.store.record(id), newest_replacement(reader.store, id)
    if better is not None:  # the page that came first is also a member
        others = [one for one in members if one.id != better.id]
        members = [*([first] if first else []), *others][:PAGES_OF_GROUP]
    original = better or first
    evidence = reader.evidence(original.id if original else id)
    pages, line = tuple(map(reader.line, members)), reader.line(original) if original else None
    title = evidence.title if evidence else ""
    title = title or next((page.title for page in pages if page.title and page.kind in _SAME_TITLE), "")
    named = line or (pages[0] if pages else None)
    title = title or (named.title or named.url if named else "")
    return Group(f"{id:016x}", clean_line(title, TITLE), line, copies, pages)
