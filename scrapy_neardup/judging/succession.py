"""What a copy is to its group: one more copy, or the page that stands for the group from now on.

The first page of a group keeps its record, its sketch and its say, whoever stands for the group later, and a better
page must be a copy of that one: so a group that is led by one page after the other goes no further from it than its
copies do.

What was delivered is told of when it changes, though it is a copy of a page that stands there for being better: nobody
can have the updates of an article dropped by publishing a better copy of it.
"""

from __future__ import annotations

from collections.abc import Set
from enum import Enum

from scrapy_neardup.judging.matching import Found
from scrapy_neardup.judging.preference import Contender, Preference
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Kind, Likeness
from scrapy_neardup.stores import Record, Store, leader


class Standing(Enum):
    """What a copy is to its group."""

    #: Nothing but a copy.
    COPY = "copy"
    #: It is better than the page that stands for the group, and stands there from now on.
    BETTER = "better"
    #: A new version of the page that stands for the group.
    LEADING = "leading"
    #: A new version of a page that was delivered, where a better one stands for the group.
    FOLLOWS = "follows"

    @property
    def leads(self) -> bool:
        """Whether it stands for the group."""
        return self in (Standing.BETTER, Standing.LEADING)

    @property
    def kind(self) -> Kind:
        """Its verdict."""
        return {Standing.COPY: Kind.DUPLICATE, Standing.BETTER: Kind.BETTER}.get(self, Kind.UPDATED)


class Succession:
    """Who stands for a group, by a preference; without one nobody takes another page's place."""

    def __init__(
        self, method: Method, store: Store, also_copies: Set[Likeness], preference: Preference | None = None
    ) -> None:
        self.preference = preference
        self._method = method
        self._store = store
        self._also_copies = also_copies

    def role(self, new: Contender, known: Record | None, best: Found, common: frozenset[int]) -> Standing:
        """What a copy is to its group; ``known`` is what is known of its URL, ``common`` keys are no evidence."""
        standing = best.original
        if self.preference is None and not (standing.leads or (known is not None and known.leads)):
            return Standing.COPY
        group = standing.group
        if known is not None and known.leads and known.original == group:
            newest = leader(self._store, group)
            if newest is not None and newest.url == known.url:
                return Standing.LEADING
        if self.preference is not None and self._supersedes(new, best, common, self.preference):
            return Standing.BETTER
        was_delivered = known is not None and (known.is_original or known.delivered)
        return Standing.FOLLOWS if was_delivered and standing.leads else Standing.COPY

    def _supersedes(self, new: Contender, best: Found, common: frozenset[int], preference: Preference) -> bool:
        standing = best.original
        first = self._store.record(standing.group)
        if first is None or first.url == new.page.url:
            first = standing
        if not preference.is_better(new, standing, first, self._method, self._store):
            return False
        if first.id == best.compared.id:
            return True
        return self._method.compare(new.fingerprint, first.sketch, common).is_copy(self._also_copies)
