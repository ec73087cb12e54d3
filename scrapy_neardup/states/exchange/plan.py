"""What is to become of each page of a source, decided before anything is written."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum

from scrapy_neardup.judging.judgements import Judgements, Said
from scrapy_neardup.methods import Method
from scrapy_neardup.states.exchange.copies import Copy, find_copy
from scrapy_neardup.states.exchange.filed import Filed
from scrapy_neardup.states.exchange.sources import Source, Watch
from scrapy_neardup.stores import Record, Store


class Fate(Enum):
    """What becomes of a page."""

    #: Nobody here knows its URL: it is added.
    NEW = "new"
    #: It is known, and what is known stays.
    KNOWN = "known"
    #: The same, but it was delivered there earlier.
    OLDER = "older"
    #: The same, but it was last seen there.
    SEEN_LATER = "seen later"
    #: It takes the place of what is known.
    RENEWED = "renewed"


@dataclass(slots=True)
class Plan:
    """How many pages have which fate; and by the ids that they have in the source, what differs.

    ``ids``: the id here of a page that has another there. ``copies``: originals there that are copies of an original
    here. ``raised``: ids here of pages that were no originals and become some. It grows with these alone.
    """

    pages: Counter[Fate] = field(default_factory=Counter)
    ids: dict[int, int] = field(default_factory=dict)
    copies: dict[int, Copy] = field(default_factory=dict)
    raised: set[int] = field(default_factory=set)

    def here(self, id: int) -> int:
        """The id here of a page of the source."""
        return self.ids.get(id, id)

    def original(self, id: int, store: Store) -> int:
        """The original here of what has a page of the source for its original.

        Where that is known here as a copy, it is the original of that: there are no chains.
        """
        if id in self.copies:
            return self.copies[id].original
        here = self.here(id)
        record = store.record(here)
        if here in self.raised or record is None or store.record(record.original) is None:
            return here
        return record.original


def make_plan(source: Source, store: Store, method: Method | None, watch: Watch = iter) -> Plan:
    """Decide on every page; with a method, originals are compared with those in the store."""
    plan = Plan()
    judgements = Judgements(store)
    taken: set[int] = set()
    for filed in watch(source.pages()):
        record = filed.record
        known = known_as(record, store)
        what = fate(filed, known, store.last_seen(record.url))
        plan.pages[what] += 1
        here = known.id if known else _free(record.id, store, taken)
        if here != record.id:
            plan.ids[record.id] = here
            taken.add(here)
        if not record.is_original or what not in (Fate.NEW, Fate.RENEWED) or (known and known.is_original):
            continue
        said = judgements.of(record.url)
        is_kept = said is not None and said.said is Said.KEEP
        if method and not is_kept and (copy := find_copy(method, store, record)):
            plan.copies[record.id] = copy
        elif known:
            plan.raised.add(known.id)
    return plan


def known_as(record: Record, store: Store) -> Record | None:
    """The page of the store that has the URL."""
    if (found := store.find(record.url)) is not None:
        return found
    # Where another URL has the same hash, or one was cut for its length, it is not found by the URL.
    same = store.record(record.id)
    return same if same is not None and same.url == record.url else None


def fate(filed: Filed, known: Record | None, last_seen: int) -> Fate:
    """What becomes of a page of which ``known`` is known here, that was seen at ``last_seen`` for the last time.

    It is as if the page had been crawled here when it was last seen there. So an original keeps its place if it has
    become a copy since, for others may stand on it; so does a copy that was delivered, beside one that was not; and a
    page that could not be judged takes no place of one that was.
    """
    record = filed.record
    if known is None:
        return Fate.NEW
    if is_unjudged(known) and not is_unjudged(record):
        return Fate.RENEWED
    if filed.seen <= last_seen:
        was_earlier = record.is_delivered and known.is_delivered and record.age < known.age
        return Fate.OLDER if was_earlier else Fate.KNOWN
    if known.is_original > record.is_original or is_unjudged(record) > is_unjudged(known):
        return Fate.SEEN_LATER
    if known.delivered and not (record.delivered or record.is_original):
        return Fate.SEEN_LATER
    return Fate.RENEWED


def is_unjudged(record: Record) -> bool:
    """Whether a page could not be judged: it is nobody's original, and nobody's copy."""
    return record.original == record.id and record.similarity == 0


def _free(id: int, store: Store, taken: set[int]) -> int:
    """The id, or the next one that no other page has."""
    while id in taken or store.record(id) is not None:
        id += 1
    return id
