"""The pages that wait for feeds to be stored: nine bytes a page at most, however many feeds take it."""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

Feed = TypeVar("Feed", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Released:
    """What a stored feed held: how many pages, their first and last id; ``ready``: those that wait for no other."""

    pages: int
    first: int
    last: int
    ready: array[int] = field(default_factory=lambda: array("Q"))


class Held(Generic[Feed]):
    """Ids of pages, each in one sorted array: that of the pages which wait for the very same feeds.

    Pages that come one after the other wait for the same feeds, so there are as few arrays as feeds are open, not one
    entry a page. An id is the time at which its page was judged, so nearly every one is put at the end.
    """

    def __init__(self) -> None:
        self._ids: dict[frozenset[Feed], array[int]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._ids.values()))

    def add(self, id: int, feeds: frozenset[Feed]) -> None:
        """The page waits for these feeds, and for those that it waits for already."""
        feeds |= self.remove(id)
        ids = self._ids.get(feeds)
        if ids is None:
            ids = self._ids[feeds] = array("Q")
        insort(ids, id)

    def remove(self, id: int) -> frozenset[Feed]:
        """The page waits no more; returns the feeds that it waited for, none if it did not wait."""
        for feeds, ids in self._ids.items():
            at = bisect_left(ids, id)
            if at < len(ids) and ids[at] == id:
                ids.pop(at)
                if not ids:
                    del self._ids[feeds]
                return feeds
        return frozenset()

    def feeds(self) -> set[Feed]:
        """The feeds that pages wait for."""
        return {feed for feeds in self._ids for feed in feeds}

    def waiting_for(self, feed: Feed) -> int:
        """How many pages wait for this feed."""
        return sum(len(ids) for feeds, ids in self._ids.items() if feed in feeds)

    def stored(self, feed: Feed) -> Released:
        """The feed is stored, and no page waits for it any more."""
        held = {feeds: self._ids.pop(feeds) for feeds in list(self._ids) if feed in feeds}
        ready = held.pop(frozenset((feed,)), array("Q"))
        arrays = [ready] * bool(ready) + list(held.values())
        for feeds, ids in held.items():
            rest = feeds - {feed}
            self._ids[rest] = _merged(self._ids.get(rest), ids)
        return Released(
            sum(map(len, arrays)),
            min((ids[0] for ids in arrays), default=0),
            max((ids[-1] for ids in arrays), default=0),
            ready,
        )

    def failed(self, feed: Feed) -> int:
        """The feed will never be stored: hold its pages no longer; returns how many they were."""
        return sum(len(self._ids.pop(feeds)) for feeds in list(self._ids) if feed in feeds)


def _merged(ids: array[int] | None, more: array[int]) -> array[int]:
    """``ids`` with ``more`` sorted in: what lies before all of that is not touched, so a batch costs what it holds."""
    if ids is None:
        return more
    at = bisect_left(ids, more[0])
    if at < len(ids):
        behind = np.concatenate((np.frombuffer(ids[at:], np.uint64), np.frombuffer(more, np.uint64)))
        behind.sort()
        del ids[at:]
        ids.frombytes(behind.tobytes())
    else:
        ids.extend(more)
    return ids
