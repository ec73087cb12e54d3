"""Documents through a detector with an empty state, in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from scrapy_neardup.errors import PageError, SettingsError
from scrapy_neardup.hashing.keys import keys_of
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.policy import Policy
from scrapy_neardup.lab.documents import Document
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Kind, Match, Page, Verdict
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import NO_SECRET
from scrapy_neardup.text.prose import has_prose

#: Stores that can be made empty for a replay.
STORES = ("memory:", "leveldb:", "sqlite:")
#: Letters that a text needs to be judged; the pipeline's default.
MIN_LETTERS = 40

#: Returns the verdict on a page. Raises PageError.
Judge = Callable[[Page], Verdict]


@contextmanager
def open_empty_store(method: Method, url: str = "memory:") -> Iterator[PageStore]:
    """Open an empty store, one of ``STORES``; its files are gone afterwards."""
    if url not in STORES:
        raise SettingsError(f"An evaluation cannot use the store {url!r}. Use one of: {', '.join(STORES)}.")
    with TemporaryDirectory(prefix="neardup-") as folder:
        path = (Path(folder) / "state").as_uri().removeprefix("file:")
        store = open_store(url if url == "memory:" else url + path, method.recipe(), secret=NO_SECRET)
        try:
            yield store
        finally:
            close_store(store)


def make_judge(method: Method, store: PageStore, min_letters: int = MIN_LETTERS) -> Judge:
    """Return a judge that compares each page with originals, as a crawl does."""
    detector = Detector(method, store, who="replay", policy=Policy(min_letters))
    return partial(detector.judge_now, sealed=True)


def replay(documents: Iterable[Document], judge: Judge) -> Iterator[tuple[Document, Verdict]]:
    """Yield each document with its verdict.

    A page that the method cannot judge is unjudged, as in a crawl. Raises the method's error at the end if these are
    more than half of the pages.
    """
    why: PageError | None = None
    pages = refused = 0
    for document in documents:
        pages += 1
        try:
            verdict = judge(document.page)
        except PageError as error:
            why, refused = error, refused + 1
            verdict = Verdict(Kind.UNJUDGED, document.id, reason=error.reason)
        yield document, verdict
    if why is not None and 2 * refused > pages:
        raise why


# A crawl groups in a single pass: a page is compared with originals, and its ``similar_id`` is that of its original.
# The literature on shingles joins all pairs above the threshold instead (Broder et al. 1997, "Syntactic clustering of
# the web"). That finds the copy of a copy, and lets groups drift: the ends of a chain need have nothing in common.
# ``evaluate --grouping union-find`` measures the cost of either.


class UnionFind:
    """Disjoint groups of numbers; the least number names its group.

    >>> groups = UnionFind()
    >>> for _ in range(4): groups.add()
    >>> groups.join(2, 1); groups.join(3, 2)
    >>> [groups.name(member) for member in range(4)]
    [0, 1, 1, 1]
    """

    def __init__(self) -> None:
        self._above: list[int] = []

    def add(self) -> None:
        """Add the next number, a group of one."""
        self._above.append(len(self._above))

    def name(self, member: int) -> int:
        """Return the least number of the group."""
        while (above := self._above[member]) != member:
            self._above[member] = member = self._above[above]  # halves the way for the next call
        return member

    def join(self, one: int, other: int) -> None:
        """Make one group of two."""
        first, second = sorted((self.name(one), self.name(other)))
        self._above[second] = first


class GroupingJudge:
    """Judges pages against all pages so far, which are in memory with their groups."""

    def __init__(self, method: Method, min_letters: int) -> None:
        """``min_letters``: letters that a text needs to be judged."""
        self._groups = UnionFind()
        self._method = method
        self._min_letters = min_letters
        self._postings: dict[int, list[int]] = {}
        self._pages: list[tuple[str, bytes]] = []

    def judge(self, page: Page) -> Verdict:
        """Join a page to all that it duplicates; the match is the first page of the group, at its best similarity."""
        if not has_prose(page.text, self._min_letters):
            return Verdict(Kind.UNJUDGED, page.url)
        self._groups.add()
        own = len(self._pages)
        fingerprint = self._method.fingerprint(page)
        best: Comparison | None = None
        common, candidates = self._find_candidates(keys_of(fingerprint.keys))
        for place in candidates:
            found = self._method.compare(fingerprint, self._pages[place][1], common)
            if found.duplicate:
                self._groups.join(place, own)
                best = found if best is None or found.similarity > best.similarity else best
        self._pages.append((page.url, fingerprint.sketch))
        if best is None:
            return Verdict(Kind.UNIQUE, page.url)
        match = Match(0, self._pages[self._groups.name(own)][0], 0.0, best.similarity, best.containment)
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
