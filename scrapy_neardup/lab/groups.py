"""Verdicts by union-find in place of a single pass: a page is compared with all earlier ones, copies among them.

A crawl groups in a single pass: a page is compared with originals, and its ``similar_id`` is that of its original. The
literature on shingles joins all pairs above the threshold instead (Broder et al. 1997, "Syntactic clustering of the
web"). That finds the copy of a copy, and lets groups drift: the ends of a chain need have nothing in common. ``evaluate
--grouping union-find`` measures the cost of either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Generic, TypeVar

from scrapy_neardup.hashing.keys import keys_of
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Kind, Match, Page, Verdict
from scrapy_neardup.text.prose import has_prose

Member = TypeVar("Member")


class UnionFind(Generic[Member]):
    """Disjoint groups; the member that was added first names its group.

    >>> groups = UnionFind()
    >>> for member in "abcd": groups.add(member)
    >>> groups.join("c", "b"); groups.join("d", "c")
    >>> [groups.name(member) for member in "abcd"]
    ['a', 'b', 'b', 'b']
    """

    def __init__(self) -> None:
        self._above: dict[Member, Member] = {}
        self._place: dict[Member, int] = {}

    def add(self, member: Member) -> None:
        """Add a group of one; do nothing if the member exists."""
        if member not in self._above:
            self._above[member] = member
            self._place[member] = len(self._place)

    def name(self, member: Member) -> Member:
        """Return the first member of the group. Raises KeyError for a member that was never added."""
        while (above := self._above[member]) != member:
            self._above[member] = member = self._above[above]  # halves the way for the next call
        return member

    def join(self, one: Member, other: Member) -> None:
        """Make one group of two."""
        first, second = sorted((self.name(one), self.name(other)), key=self._place.__getitem__)
        self._above[second] = first


class GroupingJudge:
    """Judges pages against all pages so far, which are in memory with their groups."""

    def __init__(self, method: Method, min_letters: int) -> None:
        """``min_letters``: letters that a text needs to be judged."""
        self._groups: UnionFind[str] = UnionFind()
        self._method = method
        self._min_letters = min_letters
        self._postings: dict[int, list[int]] = {}
        self._pages: list[tuple[str, bytes]] = []

    def judge(self, page: Page) -> Verdict:
        """Join a page to all that it duplicates; the match is the first page of the group, at its best similarity."""
        if not has_prose(page.text, self._min_letters):
            return Verdict(Kind.UNJUDGED, page.url)
        self._groups.add(page.url)
        fingerprint = self._method.fingerprint(page)
        best: Comparison | None = None
        common, candidates = self._find_candidates(keys_of(fingerprint.keys))
        for place in candidates:
            url, sketch = self._pages[place]
            found = self._method.compare(fingerprint, sketch, common)
            if found.duplicate:
                self._groups.join(url, page.url)
                best = found if best is None or found.similarity > best.similarity else best
        self._pages.append((page.url, fingerprint.sketch))
        if best is None:
            return Verdict(Kind.UNIQUE, page.url)
        match = Match(0, self._groups.name(page.url), 0.0, best.similarity, best.containment)
        return Verdict(Kind.DUPLICATE, page.url, match=match)

    def _find_candidates(self, keys: Iterable[int]) -> tuple[set[int], list[int]]:
        """Return keys that are no evidence, and places of earlier pages. File the new page under the other keys."""
        found: Counter[int] = Counter()
        common = set()
        for key in keys:
            places = self._postings.setdefault(key, [])
            if len(places) < self._method.common:
                found.update(places)
                places.append(len(self._pages))
            else:
                common.add(key)
        return common, [place for place, _ in found.most_common(self._method.candidates)]

    def size(self) -> int:
        """Return the bytes of keys, places, URLs and sketches, without Python's own overhead."""
        postings = sum(8 + 8 * len(places) for places in self._postings.values())
        return postings + sum(len(url.encode()) + len(sketch) for url, sketch in self._pages)
