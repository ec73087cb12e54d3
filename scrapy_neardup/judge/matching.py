"""Find the earlier page that decides on a page: candidates that share keys with it, and the best of them.

A crawl, ``dedup``, ``evaluate``, a merge of two states and ``compare`` all use this module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Fingerprint, Likeness
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.state.pages import PageStore, representative_of
from scrapy_neardup.state.record import Record


class Candidates(NamedTuple):
    """The page's overused keys, and the ids of pages that share other keys, those with the most of them first."""

    overused_keys: frozenset[int]
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SimilarPage:
    """An earlier page that is like the judged one: ``compared``, and the page that represents its group now.

    ``original``: that representative, often ``compared`` itself.
    """

    comparison: Comparison
    original: Record
    compared: Record


class SearchResult(NamedTuple):
    """The page's overused keys, and the most similar earlier page; ``in_form`` is as in ``Comparison``.

    ``rejected``: the most similar earlier page that this one is no copy of, if it nearly is one.
    """

    overused_keys: frozenset[int]
    nearest: SimilarPage | None
    in_form: bool
    rejected: SimilarPage | None = None


#: Similarity from which a page that is no copy was nearly one.
_NEAR_MISS = 0.5


def candidates(method: Method, store: PageStore, keys: Iterable[int]) -> Candidates:
    """The earlier pages that share keys with a page.

    A key is overused once ``Method.common`` pages have it. It is no evidence, and no further page is filed under it.
    """
    limit, keys = method.common, tuple(keys)
    postings = store.all_postings(keys, limit)
    if not any(postings):  # most pages
        return Candidates(frozenset(), ())
    shared: list[int] = []
    overused = set()
    for key, ids in zip(keys, postings, strict=True):
        if len(ids) >= limit:
            overused.add(key)
        else:
            shared += ids
    counts = Counter(shared)
    most = sorted(counts, key=counts.__getitem__, reverse=True)  # with equal counts, the newest comes first
    return Candidates(frozenset(overused), tuple(most[: method.candidates]))


def without_overused_keys(fingerprint: Fingerprint, overused_keys: Set[int]) -> Fingerprint:
    """The fingerprint under whose keys a page is filed."""
    if not overused_keys:
        return fingerprint
    return fingerprint.with_keys(tuple(key for key in fingerprint.keys if key not in overused_keys))


def may_decide(earlier: Record, comparison: Comparison) -> bool:
    """Whether an earlier page may decide: an original or better page always, a variant only by similarity alone."""
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


def describe_decision(
    method: Method, comparison: Comparison, new: Fingerprint, old: bytes, overused_keys: Set[int]
) -> str:
    """Describe the decision on two pages, with its figures."""
    figures = f"similarity {comparison.similarity:.4f}, containment {comparison.containment:.4f}"
    return f"{figures}: {comparison.decision or method.decision(new, old, overused_keys)}"


class Searcher:
    """Searches a store with one method.

    ``also_copies``: kinds that count as copies though the method does not call them so.
    """

    def __init__(self, method: Method, store: PageStore, also_copies: Set[Likeness] = frozenset()) -> None:
        self._method = method
        self._store = store
        self._also_copies = also_copies

    def search(
        self, url: str, fingerprint: Fingerprint, canonical: str = "", delivered: Record | None = None
    ) -> SearchResult:
        """Find the earlier page that a page is most like: first one that it copies, then one similar in another way.

        ``canonical`` proposes one more candidate. ``delivered`` is the delivered earlier version of the page: of the
        pages that it copies, those that were there before that version come first. Pages of the same URL are never
        compared.
        """
        overused_keys, ids = candidates(self._method, self._store, fingerprint.keys)
        if not ids and not canonical:
            return SearchResult(overused_keys, None, in_form=False)
        nearest: SimilarPage | None = None
        rejected: SimilarPage | None = None
        in_form = may_be_template = False
        for earlier in self._records(url, ids, canonical):
            if not self._method.may_be_alike(fingerprint, earlier.sketch):
                continue
            comparison = self._method.compare(fingerprint, earlier.sketch, overused_keys)
            in_form |= comparison.in_form
            may_be_template |= comparison.in_form and not comparison.same_site
            least = rejected.comparison.similarity if rejected else _NEAR_MISS
            if comparison.similarity > least and not comparison.is_copy(self._also_copies):
                rejected = SimilarPage(comparison=comparison, original=earlier, compared=earlier)
            if comparison.likeness is None and not comparison.duplicate:
                continue
            if not may_decide(earlier, comparison):
                continue
            if nearest is None or self._rank(comparison, earlier, delivered) > self._rank(
                nearest.comparison, nearest.compared, delivered
            ):
                original = representative_of(self._store, earlier, except_url=url)
                if original is not None:
                    nearest = SimilarPage(comparison=comparison, original=original, compared=earlier)
        if may_be_template and not fingerprint.in_form and nearest is not None and nearest.comparison.duplicate:
            # Of an unknown site: a lookalike under another title shows that common text may be a template.
            return self.search(url, replace(fingerprint, in_form=True), canonical, delivered)
        return SearchResult(overused_keys, nearest, in_form, rejected)

    def _records(self, url: str, ids: tuple[int, ...], canonical: str) -> Iterator[Record]:
        named = self._store.find(canonical) if canonical else None
        if named is not None and not named.is_unjudged:
            ids = (*ids, named.original, *([named.id] if named.leads else ()))
        for record in self._store.records_of(tuple(dict.fromkeys(ids))):
            if record is not None and record.sketch and record.url != url:
                yield record

    def _rank(
        self, comparison: Comparison, earlier: Record, delivered: Record | None = None
    ) -> tuple[bool, bool, bool, bool, float, float, bool]:
        """The sort key of candidates, larger for a better match: first, that the page is a copy of it at all."""
        excerpt = comparison.likeness is Likeness.EXCERPT
        copy = comparison.is_copy(self._also_copies)
        older = copy and delivered is not None and is_older(earlier, delivered)
        by_rules = earlier.is_original or earlier.dropped > 0  # a person may have chosen the group of another variant
        return older, comparison.duplicate, copy, excerpt, comparison.similarity, comparison.containment, by_rules
