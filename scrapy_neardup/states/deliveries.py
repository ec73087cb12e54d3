"""Which feeds hold the pages of which crawls, as far as a later crawl may overwrite them under the same name."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from scrapy_neardup.states.forgetting import Forgetting, pages_where
from scrapy_neardup.states.reading import Watch, unwatched
from scrapy_neardup.stores import Record, Store
from scrapy_neardup.stores.changes import Changes
from scrapy_neardup.stores.layout import feed_key

#: Feeds that are remembered: those of which something was written last. And spans of each, more become one.
_FEEDS, _SPANS = 1000, 16

#: Pages that were stored together: first and last id, and how many. Pages of other feeds may lie between.
Span = tuple[int, int, int]


@dataclass(slots=True)
class Delivery:
    """A feed by its name: the pages that were stored in it, and those that were, before it was overwritten."""

    feed: str
    held: list[Span] = field(default_factory=list)
    gone: list[Span] = field(default_factory=list)
    #: When this was written, in seconds since 1970.
    when: int = 0

    def stored(self, span: Span, crawl: int) -> None:
        """More pages are in it; those of one crawl, whose ids are larger than its own, are one span."""
        if self.held and self.held[-1][0] > crawl:
            span = _joined(self.held.pop(), span)
        self.held = _few([*self.held, span])

    def overwritten(self, *, known: bool) -> None:
        """What was in it is in no feed any more, unless somebody has fetched it: then it counts as ``known``."""
        self.gone, self.held = _few([*self.gone, *([] if known else self.held)]), []


def deliveries(store: Store) -> Iterator[Delivery]:
    """All feeds that the state remembers; raises StoreDamaged for a row that is none."""
    return store.unpacked(b"f", unpacked)


def unpacked(key: bytes, packed: bytes) -> Delivery:
    """The feed that ``remember`` wrote; raises ValueError for another row."""
    try:
        about = json.loads(packed)
        held, gone = ([(int(a), int(b), int(n)) for a, b, n in about[name]] for name in ("held", "gone"))
        found = Delivery(str(about["feed"]), held, gone, int(about["when"]))
    except (ValueError, TypeError, KeyError):
        raise ValueError(f"the row of a feed cannot be read ({packed[:60]!r})") from None
    if key != feed_key(found.feed):
        raise ValueError(f"the row of the feed {found.feed} is that of another one")
    return found


def remember(store: Store, delivery: Delivery) -> None:
    """Write down what became of a feed, and wait for the disk; of too many feeds the oldest are not remembered."""
    delivery.when = int(time.time())
    about = {name: getattr(delivery, name) for name in ("feed", "held", "gone", "when")}
    changes = Changes({feed_key(delivery.feed): json.dumps(about).encode()})
    if store.value(feed_key(delivery.feed)) is None:
        others = sorted(deliveries(store), key=lambda one: one.when, reverse=True)
        for old in others[_FEEDS - 1 :]:
            changes.delete(feed_key(old.feed))
    store.write(changes)


def overwritten(store: Store, watch: Watch = unwatched) -> Forgetting:
    """The pages that were in feeds before these were overwritten."""
    return pages_of(store, [span for one in deliveries(store) for span in one.gone], watch)


def settle(store: Store) -> None:
    """What was overwritten has been forgotten."""
    for one in list(deliveries(store)):
        if one.gone:
            one.gone = []
            remember(store, one)


def within(spans: Iterable[Span]) -> Callable[[Record], bool]:
    """Whether a page was first seen within one of these spans."""
    bounds = [(first, last) for first, last, _ in spans]
    return lambda record: any(first <= record.id <= last for first, last in bounds)


def pages_of(store: Store, spans: Iterable[Span], watch: Watch = unwatched) -> Forgetting:
    """The pages of these spans that are there, with the copies of those that are originals."""
    return pages_where(store, within(spans), watch)


def _few(spans: list[Span]) -> list[Span]:
    """The same pages in so many spans at most: the oldest become one."""
    while len(spans) > _SPANS:
        spans = [_joined(spans[0], spans[1]), *spans[2:]]
    return spans


def _joined(one: Span, other: Span) -> Span:
    return min(one[0], other[0]), max(one[1], other[1]), one[2] + other[2]
