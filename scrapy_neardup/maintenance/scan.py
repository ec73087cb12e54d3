"""Read all pages of a state in one pass: their numbers, their groups, and which of them to forget."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from scrapy_neardup.judge.manual_verdicts import manual_verdicts
from scrapy_neardup.maintenance.tables import SiteDrops, most_dropped
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.layout import last_id, unpack_seen
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.verifier import column

T = TypeVar("T")
Ids = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]
#: Sites to name, those with most pages or drops first.
_SITES = 10
#: The kind of copies without evidence.
UNKNOWN = "unknown"


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


@dataclass(frozen=True)
class Members:
    """Columns of all records, by id, in 17 bytes a page: id, original (its own id if it is no copy), whether it was
    judged.
    """

    ids: Ids
    originals: Ids
    judged: Flags

    @property
    def copies(self) -> Flags:
        """A mask of the copies."""
        differ: Flags = self.originals != self.ids
        return differ

    def place(self, wanted: Ids) -> tuple[npt.NDArray[np.intp], Flags]:
        """Return the positions of ids, and a mask of those that exist. Other positions mean nothing."""
        if not len(self.ids):
            return np.zeros(len(wanted), np.intp), np.zeros(len(wanted), np.bool_)
        at = np.minimum(np.searchsorted(self.ids, wanted), len(self.ids) - 1)
        return at, self.ids[at] == wanted


def members(records: Iterable[Record]) -> Members:
    """Return the columns of records that come by id."""
    ids, originals, judged = array("Q"), array("Q"), array("B")
    for one in records:
        ids.append(one.id)
        originals.append(one.original)
        judged.append(not one.is_unjudged)
    return Members(column(ids), column(originals), np.array(judged, np.bool_))


# Numbers.


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
        return np.unique(column(self._copied), return_counts=True)

    def led(self) -> Ids:
        """Return the ids of groups with a better page."""
        return np.unique(column(self._led))

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


def statistics(store: PageStore, watch: Watch = unwatched) -> Statistics:
    """Count a state in one pass, with eight bytes a page and the name of each site."""
    census, ids = Census(), array("Q")
    pages, copied = Counter[str](), Counter[str]()
    for record, evidence in with_evidence(store, watch):
        census.add(record, evidence)
        ids.append(record.id)
        site = site_of(record.url)
        pages[site] += 1
        copied[site] += record.original != record.id
    originals, copies = census.groups()
    there = np.isin(originals, column(ids))
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
        top_sites=tuple(Site(name, many, copied[name]) for name, many in pages.most_common(_SITES)),
        dropped_sites=tuple(most_dropped(store, _SITES)),
        first_seen=census.first_seen,
        last_seen=census.last_seen(store),
        bytes=store.size(),
    )


# Which pages to forget.


@dataclass(frozen=True, slots=True)
class PageSelection:
    """Ids of pages to forget, in order, and how many of each sort.

    The copies of an original come before it, so an interrupted command can be repeated. ``with_originals``: copies
    that go with their original; ``copies``: other copies.
    """

    ids: tuple[int, ...]
    originals: int
    with_originals: int
    copies: int
    unjudged: int


def pages_where(store: PageStore, is_wanted: Callable[[Record], bool], watch: Watch = unwatched) -> PageSelection:
    """Select pages, and the copies of originals among them. Reads all records once."""
    wanted = array("Q")

    def noted() -> Iterator[Record]:
        for record in watch(store.records(), store.pages):
            if is_wanted(record):
                wanted.append(record.id)
            yield record

    found = members(noted())
    return select_pages(found, np.isin(found.ids, column(wanted)))


def select_unseen(store: PageStore, before: float, watch: Watch = unwatched) -> PageSelection:
    """Select pages last seen before a time, in seconds since 1970.

    A copy counts as a sight of its original: the next copy needs it, and no copy outlives it.
    """
    found = members(watch(store.records(), store.pages))
    seen = last_seen(store, found)
    at, there = found.place(found.originals)
    np.maximum.at(seen, at[there], seen[there])  # each by its copies; a copy is nobody's original
    return select_pages(found, seen < before)


def last_seen(store: PageStore, of: Members) -> Ids:
    """Return when each page was last seen, in seconds since 1970; when it was first seen if its URL row is gone."""
    ids, seconds = array("Q"), array("Q")
    for _, packed in store.rows(b"u"):
        id, seen = unpack_seen(packed)
        ids.append(id)
        seconds.append(seen)
    found: Ids = of.ids // np.uint64(10**9)
    at, there = of.place(column(ids))
    found[at[there]] = column(seconds)[there]
    return found


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


def select_pages(found: Members, wanted: Flags) -> PageSelection:
    """Select these pages, and the copies of originals among them."""
    going = found.ids[wanted]
    copies = found.copies
    along = copies & np.isin(found.originals, going)
    others = wanted & copies & ~along
    own = wanted & ~copies
    order = np.concatenate([found.ids[along], found.ids[others], found.ids[own]])
    return PageSelection(
        tuple(order.tolist()),
        int((own & found.judged).sum()),
        int(along.sum()),
        int(others.sum()),
        int((own & ~found.judged).sum()),
    )
