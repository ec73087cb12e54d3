"""Read all pages of a state: their numbers, their groups, and which of them to forget."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from scrapy_neardup.judge.lists import manual_verdicts
from scrapy_neardup.maintenance.tables import SiteDrops, most_dropped
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.state.layout import last_id, unpack_seen
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Evidence, Record
from scrapy_neardup.state.verifier import column
from scrapy_neardup.untrusted import SITE, clean_line

T = TypeVar("T")
Ids = npt.NDArray[np.uint64]
#: Sites to name, those with most pages or drops first.
_SITES = 10
#: All kinds in their order: copies, then pages that passed though they resemble an earlier one.
COPIES = ("identical", "near", "retitled", "excerpt", "same_title", "unknown")
PASSED = ("excerpt", "same_title")


def kind_of(evidence: Evidence | None) -> str:
    """Return the kind of a copy.

    >>> kind_of(Evidence("near")), kind_of(None)
    ('near', 'unknown')
    """
    return evidence.kind if evidence is not None and evidence.kind in COPIES else "unknown"


def passed_kind(evidence: Evidence | None) -> str:
    """Return the kind of an original that resembles an earlier page; empty for another original.

    >>> passed_kind(Evidence("excerpt", like=1)), passed_kind(None)
    ('excerpt', '')
    """
    return evidence.kind if evidence is not None and evidence.like and evidence.kind in PASSED else ""


class Watch(Protocol):
    """A progress bar: it passes items through."""

    def __call__(self, iterable: Iterable[T], total: int | None = None, what: str = "pages") -> Iterable[T]:
        """Yield the items unchanged."""


def unwatched(iterable: Iterable[T], total: int | None = None, what: str = "pages") -> Iterable[T]:
    """Show no progress."""
    return iterable


def with_evidence(store: PageStore, watch: Watch = unwatched) -> Iterator[tuple[Record, Evidence | None]]:
    """Yield every record with its evidence, by id. It scans two tables side by side instead of looking each page up."""
    kept = store.unpacked(b"e", lambda key, packed: (last_id(key), Evidence.unpack(packed)))
    id, evidence = next(kept, (0, None))
    for record in watch(store.records(), store.pages):
        while evidence is not None and id < record.id:
            id, evidence = next(kept, (0, None))
        yield record, evidence if id == record.id else None


# Numbers.


@dataclass(slots=True)
class Statistics:
    """The counts of a state, for ``stats`` and for the report. Times are in seconds since 1970, 0 for an empty state.

    ``rows``: rows of listings, which are compared with no page. ``kinds``: copies by kind. ``originals_like_others``:
    originals that resemble an earlier page, by kind. ``variants``: copies that later pages are compared with.
    ``better``: copies that replaced their original. ``judged_by_hand``: manual verdicts by sort. ``groups``: originals
    with copies, even originals that are gone. ``top_sites`` have most pages, ``dropped_sites`` most drops in the last
    crawls.
    """

    pages: int = 0
    originals: int = 0
    copies: int = 0
    rows: int = 0
    unjudged: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    originals_like_others: dict[str, int] = field(default_factory=dict)
    variants: int = 0
    better: int = 0
    copies_without_original: int = 0
    judged_by_hand: dict[str, int] = field(default_factory=dict)
    groups: int = 0
    largest_group: int = 0
    sites: int = 0
    top_sites: tuple[dict[str, Any], ...] = ()
    dropped_sites: tuple[SiteDrops, ...] = ()
    first_seen: float = 0
    last_seen: int = 0
    bytes: int = 0


class Census:
    """Counts pages that come by id, with 16 bytes a page and the name of each site."""

    def __init__(self) -> None:
        self._found = Statistics()
        self._kinds: Counter[str] = Counter()
        self._passed: Counter[str] = Counter()
        self._sites: Counter[str] = Counter()
        self._copying: Counter[str] = Counter()
        #: The ids of all pages, the original of each copy, and the groups with a better page.
        self._ids, self._copied, self._led = array("Q"), array("Q"), array("Q")

    def add(self, record: Record, evidence: Evidence | None) -> None:
        found, site = self._found, site_of(record.url)
        self._ids.append(record.id)
        if site:  # a text without a URL has none
            self._sites[site] += 1
        if record.original != record.id:
            self._copied.append(record.original)
            self._copying[site] += 1
            self._kinds[kind_of(evidence)] += 1
            found.variants += record.is_variant
            if record.has_led:
                self._led.append(record.original)
        elif record.is_original:
            found.originals += 1
            if kind := passed_kind(evidence):
                self._passed[kind] += 1
        else:
            found.rows += record.is_listed
            found.unjudged += not record.is_listed

    @cached_property
    def groups(self) -> tuple[Ids, npt.NDArray[np.intp]]:
        """The sorted ids of originals with copies, even of originals that are gone, and the number of copies of each.

        Ask for it once all pages are added.
        """
        return np.unique(column(self._copied), return_counts=True)

    def statistics(self, store: PageStore) -> Statistics:
        """Return all counts of a state whose pages were added."""
        found, ids, (originals, copies) = self._found, column(self._ids), self.groups
        is_there = np.isin(originals, ids)
        first, newest = (int(ids[0]), int(ids[-1])) if len(ids) else (0, 0)
        return replace(
            found,
            pages=len(ids),
            copies=len(self._copied),
            kinds={kind: self._kinds[kind] for kind in COPIES if self._kinds[kind]},
            originals_like_others={kind: self._passed[kind] for kind in PASSED if self._passed[kind]},
            better=len(self._led),
            copies_without_original=int(copies[~is_there & ~np.isin(originals, column(self._led))].sum()),
            judged_by_hand=dict(Counter(one.kind.value for one in manual_verdicts(store))),
            groups=len(originals),
            largest_group=int((copies + is_there).max(initial=min(found.originals, 1))),
            sites=len(self._sites),
            top_sites=tuple(
                {"name": clean_line(name, SITE), "pages": many, "copies": self._copying[name]}
                for name, many in self._sites.most_common(_SITES)
            ),
            dropped_sites=tuple(replace(one, site=clean_line(one.site, SITE)) for one in most_dropped(store, _SITES)),
            first_seen=first / 1e9,
            last_seen=max(newest // 10**9, max((unpack_seen(seen)[1] for _, seen in store.rows(b"u")), default=0)),
            bytes=store.kv.size(),
        )


def statistics(store: PageStore, watch: Watch = unwatched) -> Statistics:
    """Count a state in one pass."""
    census = Census()
    for record, evidence in with_evidence(store, watch):
        census.add(record, evidence)
    return census.statistics(store)


# Which pages to forget.


#: Ids of pages to forget, in order, and their number by sort: see ``_with_copies``.
PageSelection = tuple["array[int]", dict[str, int]]


def select_pages(store: PageStore, is_wanted: Callable[[Record], bool], watch: Watch = unwatched) -> PageSelection:
    """Select pages, and the copies of originals among them. Reads all records twice, with 24 bytes a selected page."""
    records = watch(store.records(), store.pages)
    return _with_copies(store, array("Q", (record.id for record in records if is_wanted(record))))


def _with_copies(store: PageStore, wanted: array[int]) -> PageSelection:
    """Select the pages with these ids, which ascend, and the copies of originals among them.

    The copies of an original come before it, so an interrupted command can be repeated.
    """
    sorts = {name: array("Q") for name in ("originals", "copies_of_them", "other_copies", "unjudged")}
    for record in store.records() if wanted else ():
        if record.original != record.id:
            if _has(wanted, record.original):
                sorts["copies_of_them"].append(record.id)
            elif _has(wanted, record.id):
                sorts["other_copies"].append(record.id)
        elif _has(wanted, record.id):
            sorts["unjudged" if record.is_unjudged else "originals"].append(record.id)
    ids = sum((sorts[name] for name in ("copies_of_them", "other_copies", "originals", "unjudged")), array("Q"))
    return ids, {name: len(found) for name, found in sorts.items()}


def _has(ids: array[int], id: int) -> bool:
    """Whether an id is among these sorted ones."""
    at = bisect_left(ids, id)
    return at < len(ids) and ids[at] == id


def select_unseen(store: PageStore, before: float, watch: Watch = unwatched) -> PageSelection:
    """Select pages last seen before a time, in seconds since 1970.

    A copy counts as a sight of its original: the next copy needs it, and no copy outlives it.
    """
    old, recent = array("Q"), array("Q")
    for _, packed in store.rows(b"u"):
        id, seen = unpack_seen(packed)
        (old if seen < before else recent).append(id)
    for ids in (old, recent):
        column(ids).sort()

    unseen, copied = array("Q"), array("Q")
    for record in watch(store.records(), store.pages):
        is_old = record.first_seen < before or _has(old, record.id)  # its URL row may be gone
        if is_old and not _has(recent, record.id):
            unseen.append(record.id)
        elif record.original != record.id:
            copied.append(record.original)
    column(copied).sort()
    return _with_copies(store, array("Q", (id for id in unseen if not _has(copied, id))))


def of_host(host: str) -> Callable[[Record], bool]:
    """Return a predicate: is a page of this host or below it? "mp.weixin.qq.com NAME" is one account of that host.

    >>> of_host("a.example")(Record(1, "https://news.a.example/1", 1)), of_host("a.example")(Record(1, "text:1", 1))
    (True, False)
    """
    name, _, account = host.strip().partition(" ")
    name = name.lower().removeprefix("www.").rstrip(".")
    try:
        names = {name, name.encode("idna").decode("ascii")}
    except UnicodeError:
        names = {name}
    below = tuple(f".{one}" for one in names)

    def is_wanted(record: Record) -> bool:
        site, _, of = site_of(record.url).partition(" ")
        return of == account and site in names if account else site in names or site.endswith(below)

    return is_wanted
