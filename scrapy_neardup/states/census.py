"""How many pages of which sort a state holds, counted as they go by."""

from __future__ import annotations

from array import array
from collections import Counter

import numpy as np
import numpy.typing as npt

from scrapy_neardup.states.members import Ids, column
from scrapy_neardup.stores import Evidence, Record, Store
from scrapy_neardup.stores.layout import unpack_seen

#: The kind of copies without evidence.
UNKNOWN = "unknown"


class Census:
    """Takes every page once, by id; what grows with the state are eight bytes for each copy.

    ``kinds``: copies by likeness. ``passed``: originals that are like an earlier page, by likeness. ``witnesses``:
    copies that others are compared with. ``better``: copies that have come to stand for their group. ``first_seen``: of
    the first page, in seconds since 1970, 0 if there is none. ``rows``: of listings, which are compared with no page.
    """

    def __init__(self) -> None:
        self.pages = self.originals = self.witnesses = self.better = self.rows = 0
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
            self.witnesses += record.is_witness
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
        """Pages that were dropped for another one."""
        return len(self._copied)

    @property
    def unjudged(self) -> int:
        """Pages that could not be judged; rows of listings are not among them."""
        return self.pages - self.originals - self.copies - self.rows

    def groups(self) -> tuple[Ids, npt.NDArray[np.intp]]:
        """Ids of the originals that have copies, also of those that are gone, in their order; how many each has."""
        return np.unique(column(self._copied), return_counts=True)

    def led(self) -> Ids:
        """Ids of the groups for which a better page stands."""
        return np.unique(column(self._led))

    def last_seen(self, store: Store) -> int:
        """When any page of the state was last judged, in seconds since 1970; 0 if there is none."""
        return max(int(self._newest), max((unpack_seen(seen)[1] for _, seen in store.rows(b"u")), default=0))
