"""Verdicts by union-find in place of a single pass: a page is compared with all earlier ones, copies among them.

As the literature on shingles groups pages. It finds the copy of a copy, and drops what resembles a copy and not its
original; a crawl does not do it, but how much either costs can be measured (``evaluate --grouping union-find``).
"""

from __future__ import annotations

from collections import Counter

from scrapy_neardup.evaluation.groups import UnionFind
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Fingerprint, Kind, Match, Page, Verdict
from scrapy_neardup.text.prose import has_prose


class Joined:
    """All pages seen so far, in memory, with their groups."""

    def __init__(self, method: Method, *, min_letters: int) -> None:
        """``min_letters``: what a text needs to be judged."""
        self.groups: UnionFind[str] = UnionFind()
        self._method = method
        self._min_letters = min_letters
        self._filed: dict[int, list[int]] = {}
        self._pages: list[tuple[str, bytes]] = []

    def judge(self, page: Page) -> Verdict:
        """Join a page to all that it duplicates; the match is the first page of the group, at its best similarity."""
        if not has_prose(page.text, self._min_letters):
            return Verdict(Kind.UNJUDGED, page.url)
        self.groups.add(page.url)
        fingerprint = self._method.fingerprint(page)
        best: Comparison | None = None
        common, candidates = self._candidates(fingerprint)
        for place in candidates:
            url, sketch = self._pages[place]
            found = self._method.compare(fingerprint, sketch, common)
            if found.duplicate:
                self.groups.join(url, page.url)
                best = found if best is None or found.similarity > best.similarity else best
        self._pages.append((page.url, fingerprint.sketch))
        if best is None:
            return Verdict(Kind.UNIQUE, page.url)
        match = Match(0, self.groups.name(page.url), 0.0, best.similarity, best.containment)
        return Verdict(Kind.DUPLICATE, page.url, match=match)

    def _candidates(self, fingerprint: Fingerprint) -> tuple[set[int], list[int]]:
        """The keys that are no evidence, and the places of earlier pages; the new page is filed under the others."""
        found: Counter[int] = Counter()
        common = set()
        for key in fingerprint.keys:
            filed = self._filed.setdefault(key, [])
            if len(filed) < self._method.common:
                found.update(filed)
                filed.append(len(self._pages))
            else:
                common.add(key)
        return common, [place for place, _ in found.most_common(self._method.candidates)]

    def size(self) -> int:
        """The bytes of keys, places, URLs and sketches, without Python's own overhead."""
        postings = sum(8 + 8 * len(filed) for filed in self._filed.values())
        return postings + sum(len(url.encode()) + len(sketch) for url, sketch in self._pages)
