"""Which pages to forget."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from scrapy_neardup.maintenance.scan import Flags, Ids, Members, Watch, columns, members, unwatched
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.state.layout import unpack_seen
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record


@dataclass(frozen=True, slots=True)
class PageSelection:
    """Ids of pages to forget, in order, and how many of each sort.

    The copies of an original come before it, so an interrupted command can be repeated. ``with_originals``: copies
    whose original goes too; ``copies``: other copies.
    """

    ids: tuple[int, ...]
    originals: int
    with_originals: int
    copies: int
    unjudged: int


def pages_where(store: PageStore, is_wanted: Callable[[Record], bool], watch: Watch = unwatched) -> PageSelection:
    """Select pages, and the copies of originals among them. Reads all records once."""
    wanted = array("B")

    def noted() -> Iterator[Record]:
        for record in watch(store.records(), store.pages):
            wanted.append(is_wanted(record))
            yield record

    return select_pages(members(noted()), np.array(wanted, np.bool_))


def select_unseen(
    store: PageStore, before: float | None, max_pages: int | None = None, watch: Watch = unwatched
) -> PageSelection:
    """Select pages last seen before a time, in seconds since 1970, and then pages above a maximum, those seen longest
    ago first. None: unbounded.

    A copy counts as a sight of its original: the next copy needs it, and no copy outlives it.
    """
    found = members(watch(store.records(), store.pages))
    seen = last_seen(store, found)
    at, there = found.place(found.originals)
    np.maximum.at(seen, at[there], seen[there])  # each by its copies; a copy is nobody's original
    going = seen < np.uint64(max(before or 0, 0))
    if max_pages is not None and len(seen) - int(going.sum()) > max_pages:
        # Seen at the same time: a copy goes before its original, and an older page before a newer one.
        order = np.lexsort((found.ids, ~found.copies, seen, ~going))
        going[order[: len(seen) - max_pages]] = True
    return select_pages(found, going)


def last_seen(store: PageStore, of: Members) -> Ids:
    """Return when each page was last seen, in seconds since 1970; when it was first seen if its URL row is gone."""
    ids, seconds = columns((unpack_seen(seen) for _, seen in store.rows(b"u")), np.uint64, np.uint64)
    found: Ids = of.ids // np.uint64(10**9)
    at, there = of.place(ids)
    found[at[there]] = seconds[there]
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
