"""Groups of pages by union-find: whoever is like a member of a group is in it.

A crawl groups in a single pass: a page is compared with originals, and its ``similar_id`` is that of its original. The
literature on shingles joins all pairs above the threshold instead (Broder et al. 1997, "Syntactic clustering of the
web"), which finds the copy of a copy and lets groups drift: the ends of a chain need have nothing in common.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

Member = TypeVar("Member", bound=Hashable)


class UnionFind(Generic[Member]):
    """Disjoint groups; the one that was added first names its group.

    >>> groups = UnionFind(["a", "b", "c", "d"])
    >>> groups.join("c", "b"); groups.join("d", "c")
    >>> groups.name("d"), groups.name("a"), groups.groups()
    ('b', 'a', [['a'], ['b', 'c', 'd']])
    """

    def __init__(self, members: Iterable[Member] = ()) -> None:
        self._above: dict[Member, Member] = {}
        self._place: dict[Member, int] = {}
        for member in members:
            self.add(member)

    def add(self, member: Member) -> None:
        """A group of one; nothing if the member is there already."""
        if member not in self._above:
            self._above[member] = member
            self._place[member] = len(self._place)

    def name(self, member: Member) -> Member:
        """The first member of the group; raises KeyError for one that was never added."""
        while (above := self._above[member]) != member:
            self._above[member] = member = self._above[above]  # halves the way for the next one
        return member

    def join(self, one: Member, other: Member) -> None:
        """Make one group of two; members that are new are added, ``one`` first."""
        self.add(one)
        self.add(other)
        first, second = sorted((self.name(one), self.name(other)), key=self._place.__getitem__)
        self._above[second] = first

    def groups(self) -> list[list[Member]]:
        """All groups with their members, both in the order in which they were added."""
        found: dict[Member, list[Member]] = {}
        for member in self._above:
            found.setdefault(self.name(member), []).append(member)
        return list(found.values())
