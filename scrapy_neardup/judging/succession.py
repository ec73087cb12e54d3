"""What part a copy takes in its group: one more copy, or the page that stands for the group from now on.

The first page of a group keeps its record, its sketch and its say, whoever stands for the group later, and a better
page must be a copy of that one: so a group that is led by one page after the other goes no further from it than its
copies do.

What was delivered as the page of a group is told of when it changes, though another stands there by now: nobody can
have the updates of an article dropped by publishing a better copy of it.
"""

from __future__ import annotations

from collections.abc import Set
from enum import Enum

from scrapy_neardup.judging.matching import Found
from scrapy_neardup.judging.preference import Candidate, Preference
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Kind, Likeness
from scrapy_neardup.stores import Record, Store, leader


class Role(Enum):
    """What a copy is to its group."""

    #: Nothing but a copy.
    COPY = "copy"
    #: It is better than the page that stands for the group, and stands there from now on.
    BETTER = "better"
    #: A new version of the page that stands for the group.
    LEADING = "leading"
    #: A new version of one that stood there, until a better one came.
    SUPERSEDED = "superseded"

    @property
    def leads(self) -> bool:
        """Whether it stands for the group."""
        return self in (Role.BETTER, Role.LEADING)

    @property
    def kind(self) -> Kind:
        """Its verdict."""
        return {Role.COPY: Kind.DUPLICATE, Role.BETTER: Kind.BETTER}.get(self, Kind.UPDATED)


class Succession:
    """Who stands for a group, by a preference; without one nobody takes another page's place."""

    def __init__(
        self, method: Method, store: Store, also_copies: Set[Likeness], preference: Preference | None = None
    ) -> None:
        self.preference = preference
        self._method = method
        self._store = store
        self._also_copies = also_copies

    def role(self, new: Candidate, known: Record | None, best: Found, common: frozenset[int]) -> Role:
        """The part of a page that is a copy; ``known`` is what is known of its URL, ``common`` keys are no evidence."""
        standing = best.original
        if self.preference is None and not (standing.leads or (known is not None and known.leads)):
            return Role.COPY
        group = standing.group
        stood = known is not None and known.original == group and (known.is_original or _speaks(known))
        if stood and known is not None and known.leads:
            newest = leader(self._store, group)
            if newest is not None and newest.url == known.url:
                return Role.LEADING
        if self.preference is not None and self._supersedes(new, best, common, self.preference):
            return Role.BETTER
        return Role.SUPERSEDED if stood and standing.leads else Role.COPY

    def _supersedes(self, new: Candidate, best: Found, common: frozenset[int], preference: Preference) -> bool:
        standing = best.original
        first = self._store.record(standing.group)
        if first is None or first.url == new.page.url:
            first = standing
        if not preference.is_better(new, standing, first, self._method, self._store):
            return False
        if first.id == best.compared.id:
            return True
        return self._method.compare(new.fingerprint, first.sketch, common).is_copy(self._also_copies)


def _speaks(known: Record) -> bool:
    """Whether a copy was delivered, and is one that others are compared with."""
    return known.delivered and bool(known.keys)
