"""Which page stands for a group: its original, or the last of those copies that were better (NEARDUP_KEEP_POLICY).

A better page is filed under the id of its group, as if that were one of its keys, and the newest one so filed stands
for the group. Nothing that was written before is touched for it: the old original keeps its record, its keys and its
sketch, copies name the group as before, and once a better page is taken back or forgotten the one before it stands
there again.
"""

from __future__ import annotations

from scrapy_neardup.stores.base import Store
from scrapy_neardup.stores.record import Record

#: More pages than ever lead one group: each has to be better than the one before.
ALL = 10_000


def leader(store: Store, group: int, besides: str = "") -> Record | None:
    """The newest page that has come to stand for a group, and has not the URL ``besides``; None if there is none."""
    for id in store.postings(group, ALL):
        record = store.record(id)
        if record is not None and record.leads and record.original == group and record.url != besides:
            return record
    return None


def with_first(store: Store, standing: Record) -> tuple[Record, ...]:
    """The page that stands for a group and its first one, as far as that is there: both are seen in each copy."""
    first = store.record(standing.original) if standing.leads else None
    return (standing,) if first is None else (standing, first)


def stands_for(store: Store, record: Record, besides: str = "") -> Record | None:
    """The page that stands for the group of a page, and has not the URL ``besides``; None if there is none."""
    found = leader(store, record.original, besides)
    if found is None:
        found = record if record.original == record.id else store.record(record.original)
    return found if found is not None and found.url != besides else None
