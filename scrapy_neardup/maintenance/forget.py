"""Which pages to forget."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scrapy_neardup.maintenance.scan import Collector, Flags, Members, Watch, last_seen, members, unwatched
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.state.expiry import Bounds
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record

# ----------------------------------------------------------------------------------------------------------------------
# Which pages are to be forgotten, so that they are judged as if they had never been seen.


@dataclass(frozen=True, slots=True)
class Forgetting:
    """What is to go: ids in the order in which to forget them, and how many of each sort they are.

    Copies of an original that goes stand before it: if the work is interrupted, asking for the same again ends it.
    ``with_originals``: copies whose original goes too; ``copies``: others.
    """

    ids: tuple[int, ...]
    originals: int
    with_originals: int
    copies: int
    unjudged: int


def pages_where(store: PageStore, is_wanted: Callable[[Record], bool], watch: Watch = unwatched) -> Forgetting:
    """The pages that are wanted, and the copies of those of them that are originals; reads all records once."""
    collector, wanted = Collector(), array("B")
    for record in watch(store.records(), store.pages):
        collector.add(record)
        wanted.append(is_wanted(record))
    return forgetting_of(collector.members(), np.array(wanted, np.bool_))


def unseen_since(store: PageStore, seconds: float, watch: Watch = unwatched) -> Forgetting:
    """The pages that were last seen before a time (seconds since 1970).

    An original stays while any of its copies was seen since: the next one is a copy too.
    """
    found, seen = last_sights(store, watch)
    return forgetting_of(found, seen < np.uint64(max(seconds, 0)))


def last_sights(store: PageStore, watch: Watch = unwatched) -> tuple[Members, npt.NDArray[np.uint64]]:
    """All pages, and when each was last seen (seconds since 1970), itself or in a copy of it."""
    found = members(watch(store.records(), store.pages))
    seen = last_seen(store, found)
    at, there = found.place(found.originals)
    np.maximum.at(seen, at[there], seen[there])  # each by its copies; a copy is nobody's original
    return found, seen


def of_host(host: str) -> Callable[[Record], bool]:
    """Whether a page is of this host or one below it; "mp.weixin.qq.com NAME" is one account of that host.

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


def forgetting_of(found: Members, wanted: Flags) -> Forgetting:
    """These pages, and the copies of those of them that are originals."""
    going = found.ids[wanted]
    copies = found.copies
    along = copies & np.isin(found.originals, going)
    others = wanted & copies & ~along
    own = wanted & ~copies
    order = np.concatenate([found.ids[along], found.ids[others], found.ids[own]])
    return Forgetting(
        tuple(order.tolist()),
        int((own & found.judged).sum()),
        int(along.sum()),
        int(others.sum()),
        int((own & ~found.judged).sum()),
    )


# ----------------------------------------------------------------------------------------------------------------------
# Which pages are too many, or were not seen for too long: all at once, where a crawl takes a few with each page.


def expired(store: PageStore, bounds: Bounds, watch: Watch = unwatched) -> Forgetting:
    """The pages that were last seen longer ago than the TTL, and of what is left those that are too many.

    Those that were seen longest ago go first. An original is seen in its copies, so none of these outlives it.
    """
    found, seen = last_sights(store, watch)
    going = np.zeros(len(seen), np.bool_)
    if bounds.ttl is not None:
        going = seen < np.uint64(max(store.now() - bounds.ttl, 0))
    if bounds.exceeded(len(seen) - int(going.sum())):
        # Of those that were seen at the same time a copy goes before its original, and else the older one.
        order = np.lexsort((found.ids, ~found.copies, seen, ~going))
        going[order[: len(seen) - (bounds.max_pages or 0)]] = True
    return forgetting_of(found, going)
