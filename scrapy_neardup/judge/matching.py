"""Find the earlier page that decides on a page: candidates that share keys with it, and the best of them.

A crawl, ``dedup``, ``evaluate``, a merge of two states and ``compare`` all use this module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from typing import NamedTuple

from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Fingerprint, Likeness
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.state.pages import PageStore, representative_of
from scrapy_neardup.state.record import Record


class Candidates(NamedTuple):
    """Keys that are no evidence, and ids of the pages that share other keys, those with the most of them first."""

    common: frozenset[int]
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A similar earlier page. ``compared`` is the ``original`` of its group, or another page of that group."""

    comparison: Comparison
    original: Record
    compared: Record


class Matched(NamedTuple):
    """Keys that are no evidence, and the most similar earlier page; ``in_form`` is as in ``Comparison``."""

    common: frozenset[int]
    best: Found | None
    in_form: bool


def candidates(method: Method, store: PageStore, keys: Iterable[int]) -> Candidates:
    """The earlier pages that share keys with a page.

    No page is filed under a key that is common already, so no key has many more postings than that.
    """
    limit, keys = method.common, tuple(keys)
    postings = store.all_postings(keys, limit)
    if not any(postings):  # most pages
        return Candidates(frozenset(), ())
    shared: list[int] = []
    common = set()
    for key, ids in zip(keys, postings, strict=True):
        if len(ids) >= limit:
            common.add(key)
        else:
            shared += ids
    counts = Counter(shared)
    most = sorted(counts, key=counts.__getitem__, reverse=True)  # with equal counts, the newest comes first
    return Candidates(frozenset(common), tuple(most[: method.candidates]))


def distinctive_keys(keys: Iterable[int], common: Set[int]) -> tuple[int, ...]:
    """The keys under which a page is filed: those that are not common."""
    return tuple(key for key in keys if key not in common)


def with_distinctive_keys(fingerprint: Fingerprint, common: Set[int]) -> Fingerprint:
    """The same fingerprint with these keys alone."""
    return fingerprint.with_keys(distinctive_keys(fingerprint.keys, common)) if common else fingerprint


def may_decide(earlier: Record, comparison: Comparison) -> bool:
    """Whether an earlier page may decide: an original or better page always, a witness only by similarity alone."""
    return earlier.is_original or comparison.certain or earlier.leads


def is_older(earlier: Record, delivered: Record) -> bool:
    """Whether a text was in the state before the first version of a delivered page.

    The age of the text counts, not of its URL: the publisher of an old page may put any text there later. A page that
    was delivered as a copy stays a copy when its original is updated.
    """
    return (earlier.id if delivered.is_original else earlier.age) < delivered.age


def filed_fingerprint(record: Record, store: PageStore) -> Fingerprint:
    """The fingerprint of a page of the state, with the present counts of its site."""
    return Fingerprint(record.keys, record.sketch, site=store.on_site(site_of(record.url)))


class Matching:
    """One method on one store; ``also_copies``: kinds that count as copies though the method does not call them so."""

    def __init__(self, method: Method, store: PageStore, also_copies: Set[Likeness] = frozenset()) -> None:
        self._method = method
        self._store = store
        self._also_copies = also_copies

    def best(self, url: str, fingerprint: Fingerprint, canonical: str = "", delivered: Record | None = None) -> Matched:
        """Find the earlier page that a page is most like: first one that it copies, then one similar in another way.

        ``canonical`` proposes one more candidate. ``delivered`` is the delivered earlier version of the page: of the
        pages that it copies, those that were there before that version come first. Pages of the same URL are never
        compared.
        """
        common, ids = candidates(self._method, self._store, fingerprint.keys)
        if not ids and not canonical:
            return Matched(common, None, in_form=False)
        best: Found | None = None
        in_form = False
        for earlier in self._records(url, ids, canonical):
            if not self._method.may_be_alike(fingerprint, earlier.sketch):
                continue
            comparison = self._method.compare(fingerprint, earlier.sketch, common)
            in_form |= comparison.in_form
            if comparison.likeness is None and not comparison.duplicate:
                continue
            if not may_decide(earlier, comparison):
                continue
            if best is None or self._rank(comparison, earlier, delivered) > self._rank(
                best.comparison, best.compared, delivered
            ):
                original = representative_of(self._store, earlier, except_url=url)
                if original is not None:
                    best = Found(comparison, original, earlier)
        return Matched(common, best, in_form)

    def nearest(self, record: Record) -> Matched:
        """Find the original of another group that a page of the state is most like, be it a copy or not."""
        fingerprint = filed_fingerprint(record, self._store)
        common, ids = candidates(self._method, self._store, fingerprint.keys)
        best: Found | None = None
        for other in self._records(record.url, ids, ""):
            comparison = self._method.compare(fingerprint, other.sketch, common)
            original = representative_of(self._store, other, except_url=record.url)
            if original is None or record.id in (other.original, original.id) or not may_decide(other, comparison):
                continue
            if best is None or self._rank(comparison, other) > self._rank(best.comparison, best.compared):
                best = Found(comparison, original, other)
        return Matched(common, best, in_form=False)

    def _records(self, url: str, ids: tuple[int, ...], canonical: str) -> Iterator[Record]:
        named = self._store.find(canonical) if canonical else None
        if named is not None and named.similarity > 0:
            ids = (*ids, named.original, *([named.id] if named.leads else ()))
        for record in self._store.records_of(tuple(dict.fromkeys(ids))):
            if record is not None and record.sketch and record.url != url:
                yield record

    def _rank(
        self, comparison: Comparison, earlier: Record, delivered: Record | None = None
    ) -> tuple[bool, bool, bool, bool, float, float]:
        """What makes one candidate a better match than another: first that it is a copy at all."""
        excerpt = comparison.likeness is Likeness.EXCERPT
        copy = comparison.is_copy(self._also_copies)
        older = copy and delivered is not None and is_older(earlier, delivered)
        return older, comparison.duplicate, copy, excerpt, comparison.similarity, comparison.containment
