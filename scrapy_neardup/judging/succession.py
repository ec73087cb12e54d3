"""What a copy is to its group: one more copy, or the page that stands for the group from now on.

The first page of a group keeps its record, its sketch and its say, whoever stands for the group later, and a better
page must be a copy of that one: so a group that is led by one page after the other goes no further from it than its
copies do.

A delivered page passes when it changes, though a newer page holds its text: nobody can have the updates of an article
dropped by publishing a copy of it, be that better or only longer.
"""

from __future__ import annotations

from collections.abc import Set
from enum import Enum

from scrapy_neardup.judging.matching import Found, is_older
from scrapy_neardup.judging.preference import Contender, Preference, holds_nearly_all
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
    #: It passes as an original: a new version of a page that was delivered before the page that it is like, or a much
    #: longer page of another publisher where the longest is preferred.
    ORIGINAL = "original"

    @property
    def leads(self) -> bool:
        """Whether it stands for the group."""
        return self in (Standing.BETTER, Standing.LEADING)

    @property
    def kind(self) -> Kind:
        """Its verdict, if it belongs to the group."""
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
        if known is not None and known.leads and known.original == standing.group:
            newest = leader(self._store, standing.group)
            if newest is not None and newest.url == known.url:
                return Standing.LEADING
        preferred = self._preferred(new, best, common, self.preference) if self.preference is not None else None
        if preferred is not None:
            return preferred
        if known is None or not known.is_delivered:
            return Standing.COPY
        if standing.leads:
            return Standing.FOLLOWS
        return Standing.COPY if is_older(best.compared, known) else Standing.ORIGINAL

    def _preferred(
        self, new: Contender, best: Found, common: frozenset[int], preference: Preference
    ) -> Standing | None:
        """Whether a page is better than the one that stands for the group, or too long to be dropped for it."""
        standing, method, store = best.original, self._method, self._store
        first = store.record(standing.group)
        if first is None or first.url == new.page.url:
            first = standing
        if not preference.is_better(new, standing, first, method, store):
            return None
        for one in {first.id: first, standing.id: standing}.values():
            is_known = one.id == best.compared.id
            found = best.comparison if is_known else method.compare(new.fingerprint, one.sketch, common)
            if one.id == first.id and not is_known and not found.is_copy(self._also_copies):
                return None
            if preference.holds_all and not holds_nearly_all(new, one, found, method, store):
                return None
        return Standing.ORIGINAL if preference.is_doubtful(new, first, method, store) else Standing.BETTER
