"""One method judges a labelled corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from scrapy_neardup.errors import NearDupError, PageError, SettingsError
from scrapy_neardup.hashing.keys import keys_of
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.policy import Policy
from scrapy_neardup.lab.documents import Document, with_distinct_ids
from scrapy_neardup.lab.labels import GREY, Corpus, Gold, agreement
from scrapy_neardup.lab.scores import Score, score
from scrapy_neardup.methods import Method, make_method
from scrapy_neardup.model import Comparison, Kind, Match, Page, Verdict
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import NO_SECRET
from scrapy_neardup.text.prose import has_prose

# ----------------------------------------------------------------------------------------------------------------------
# Groups of pages by union-find: whoever is like a member of a group is in it.
#
# A crawl groups in a single pass: a page is compared with originals, and its ``similar_id`` is that of its original.
# The literature on shingles joins all pairs above the threshold instead (Broder et al. 1997, "Syntactic clustering of
# the web"), which finds the copy of a copy and lets groups drift: the ends of a chain need have nothing in common.


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


# ----------------------------------------------------------------------------------------------------------------------
# Verdicts by union-find in place of a single pass: a page is compared with all earlier ones, copies among them.
#
# As the literature on shingles groups pages. It finds the copy of a copy, and drops what resembles a copy and not its
# original; a crawl does not do it, but how much either costs can be measured (``evaluate --grouping union-find``).


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
        common, candidates = self._candidates(keys_of(fingerprint.keys))
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

    def _candidates(self, keys: Iterable[int]) -> tuple[set[int], list[int]]:
        """The keys that are no evidence, and the places of earlier pages; the new page is filed under the others."""
        found: Counter[int] = Counter()
        common = set()
        for key in keys:
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


# ----------------------------------------------------------------------------------------------------------------------
# A method against a labelled corpus: every document through a detector, in order, with a state of its own.


#: Stores that can be had empty for the while of an evaluation.
STORES = ("memory:", "leveldb:", "sqlite:")
#: Whether a page is compared with originals alone, as in a crawl, or with their copies too.
GROUPINGS = SINGLE_PASS, UNION_FIND = "single-pass", "union-find"
#: Letters that a text needs to be judged; the pipeline's default.
MIN_LETTERS = 40
_NOTHING: Mapping[str, Set[str]] = MappingProxyType({})

#: Hands on the documents and shows how far one has got.
Progress = Callable[[Iterable[Document]], Iterable[Document]]


def evaluate(
    method: Method,
    documents: Iterable[Document],
    labels: Mapping[str, str],
    *,
    store_url: str = "memory:",
    grouping: str = SINGLE_PASS,
    progress: Progress | None = None,
    on_verdict: Callable[[Document, Verdict], None] | None = None,
    different: Mapping[str, Set[str]] = _NOTHING,
    gold: Sequence[Gold] = (),
) -> Score:
    """The score of a method; ``labels`` by the documents' ids, ``store_url`` one of ``STORES``.

    ``grouping``: one of ``GROUPINGS``; by union-find pages are compared with copies too, and the state is memory's.

    What the method loads once, such as a word list, is loaded before the clock runs. ``on_verdict`` is told every
    verdict. ``different``: see ``Corpus``; a document that is dropped for another one than these counts for nothing.
    ``gold``: pairs that were read; there a document that is dropped counts as dropped, whatever for.
    A page that the method refuses, for want of a lexicon, counts as kept. Raises NearDupError if that is most
    of them, or for an id without a label or with two documents.
    """
    counts: Counter[tuple[str, bool]] = Counter()
    dropped: set[str] = set()
    seconds, warm = 0.0, False
    refused = _Refused()
    with _judging(method, store_url, grouping) as (judge, size_of_state):
        for document in with_distinct_ids(progress(documents) if progress else documents):
            if document.id not in labels:
                raise NearDupError(f"The document {document.id!r} has no label. Evaluate it with its own corpus.")
            page = document.page()
            warm = warm or _warm_up(method, page)
            begun = process_time()
            verdict = refused.guard(judge, page)
            seconds += process_time() - begun
            counts[_counted(labels[document.id], verdict, different.get(document.id)), verdict.is_copy] += 1
            if verdict.is_copy:
                dropped.add(document.id)
            if on_verdict is not None:
                on_verdict(document, verdict)
        refused.check()
        size = size_of_state()
    return score(
        counts,
        method=method.name,
        parameters=overrides(method),
        seconds=seconds,
        size=size,
        gold=agreement(gold, dropped) if gold else None,
    )


def sweep(
    name: str,
    corpus: Corpus,
    *,
    parameters: Mapping[str, Any] | None = None,
    values: Iterable[Any] | None = None,
    store_url: str = "memory:",
    grouping: str = SINGLE_PASS,
    progress: Progress | None = None,
) -> Iterator[tuple[Any, Score]]:
    """A score for each value of the method's threshold: ``values``, or those that the method wants tried.

    Raises SettingsError if the method does not say which parameter is its threshold.
    """
    given = dict(parameters or {})
    method = make_method(name, given)
    threshold = threshold_of(method)
    for value in type(method).sweep if values is None else values:
        tried = make_method(name, {**given, threshold: value})
        documents, labels = corpus.documents(), corpus.labels
        score = evaluate(
            tried,
            documents,
            labels,
            store_url=store_url,
            grouping=grouping,
            progress=progress,
            different=corpus.different,
            gold=corpus.gold,
        )
        yield value, score


def _counted(label: str, verdict: Verdict, different: Set[str] | None) -> str:
    """The label as which a document counts: what is only known to be no copy of some may be one of another."""
    of_another = verdict.match is None or verdict.match.url not in (different or ())
    return GREY if different and verdict.is_copy and of_another else label


def threshold_of(method: Method) -> str:
    """The parameter that decides how alike two pages must be; raises SettingsError if the method does not say."""
    found = getattr(method, "threshold", None)
    if not isinstance(found, str) or not hasattr(method, "sweep"):
        raise SettingsError(
            f"The method {method.name} does not name its threshold. Give its class the attributes threshold (name of "
            "a parameter) and sweep (values to try)."
        )
    return found


def overrides(method: Method) -> dict[str, Any]:
    """The parameters of a method that differ from its defaults."""
    given, usual = method.parameters, type(method.parameters)()
    values = {field.name: getattr(given, field.name) for field in fields(given)}
    return {name: value for name, value in values.items() if value != getattr(usual, name)}


class _Refused:
    """Pages that a method cannot judge, as in a crawl: they pass."""

    #: Pages after which one knows that it is the wrong corpus for the method.
    ENOUGH = 50

    def __init__(self) -> None:
        self._seen = 0
        self._refused = 0
        self._why: PageError | None = None

    def guard(self, judge: Callable[[Page], Verdict], page: Page) -> Verdict:
        """The verdict, or that there is none."""
        self._seen += 1
        try:
            return judge(page)
        except PageError as error:
            self._refused += 1
            self._why = error
            if self._seen >= self.ENOUGH:
                self.check()
            return Verdict(Kind.UNJUDGED, page.url, reason=error.reason)

    def check(self) -> None:
        """Raise what the method raised if it refused more than half of the pages."""
        if self._why is not None and 2 * self._refused > self._seen:
            raise self._why


@contextmanager
def _judging(
    method: Method, store_url: str, grouping: str
) -> Iterator[tuple[Callable[[Page], Verdict], Callable[[], int]]]:
    """What gives a verdict on each page, and how much room that takes so far."""
    if grouping not in GROUPINGS:
        raise SettingsError(f"There is no grouping {grouping!r}. Use {' or '.join(GROUPINGS)}.")
    if grouping == UNION_FIND:
        if store_url != "memory:":
            raise SettingsError("The grouping union-find works only with the store memory:. Leave out the other store.")
        joined = Joined(method, min_letters=MIN_LETTERS)
        yield joined.judge, joined.size
        return
    with _fresh_store(store_url, method) as store:
        detector = Detector(method, store, who="evaluate", policy=Policy(MIN_LETTERS))
        yield partial(detector.judge_now, sealed=True), store.size


def _warm_up(method: Method, page: Page) -> bool:
    """Judge a page for nothing; False if it was not one that the method gets to see."""
    store = open_store("memory:", method.recipe(), secret=NO_SECRET)
    try:
        detector = Detector(method, store, who="warm up", policy=Policy(MIN_LETTERS))
        return detector.judge_now(page, sealed=True).kind is not Kind.UNJUDGED
    except PageError:
        return False
    finally:
        close_store(store)


@contextmanager
def _fresh_store(url: str, method: Method) -> Iterator[PageStore]:
    """An empty store; what it has on disk is gone afterwards."""
    if url not in STORES:
        raise SettingsError(f"An evaluation cannot use the store {url!r}. Use one of: {', '.join(STORES)}.")
    with TemporaryDirectory(prefix="neardup-") as folder:
        place = (Path(folder) / "state").as_uri().removeprefix("file:")
        store = open_store(url if url == "memory:" else url + place, method.recipe(), secret=NO_SECRET)
        try:
            yield store
        finally:
            close_store(store)
