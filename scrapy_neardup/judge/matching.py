"""Find the earlier page that decides on a page: candidates that share keys with it, and the best of them.

A crawl, ``dedup``, ``evaluate``, a merge of two states and ``compare`` all use this module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from scrapy_neardup.judge.in_flight import Reservation
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Fingerprint, Kind
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.state.pages import PageStore, representative_of
from scrapy_neardup.state.record import Record


class Candidates(NamedTuple):
    """The page's overused keys, and the ids of pages that share other keys, those with the most of them first."""

    overused_keys: frozenset[int]
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SimilarPage:
    """An earlier page that is like the judged one, and the page that leads its group now: often the same."""

    comparison: Comparison
    leader: Record
    compared: Record


class SearchResult(NamedTuple):
    """The page's overused keys, and the most similar earlier page; ``in_form`` is as in ``Comparison``.

    ``near_miss``: the most similar earlier page that this one is no copy of, if it nearly is one.
    """

    overused_keys: frozenset[int]
    nearest: SimilarPage | None = None
    in_form: bool = False
    near_miss: SimilarPage | None = None


#: What most pages get.
_NO_CANDIDATES, _NOTHING = Candidates(frozenset(), ()), SearchResult(frozenset())
#: Similarity from which a page that is no copy was nearly one.
_NEAR_MISS = 0.5
#: Similarity from which a page comes before a better page that is less similar.
_NEARLY_EQUAL = 0.9


def candidates(method: Method, store: PageStore, keys: Iterable[int]) -> Candidates:
    """The earlier pages that share keys with a page.

    A key is overused once ``Method.common`` pages have it. It is no evidence, and no further page is filed under it.
    """
    limit, keys = method.common, tuple(keys)
    postings = store.all_postings(keys, limit)
    if not any(postings):  # most pages
        return _NO_CANDIDATES
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
    """The fingerprint with the keys under which a page is filed."""
    if not overused_keys:
        return fingerprint
    return replace(fingerprint, keys=tuple(key for key in fingerprint.keys if key not in overused_keys))


def may_decide(earlier: Record, comparison: Comparison) -> bool:
    """Whether an earlier page may decide: an original or better page always, a variant only if it is ``certain``."""
    return earlier.is_original or comparison.certain or earlier.has_led


def is_older(earlier: Record, delivered: Record) -> bool:
    """Whether a text was in the state before the first version of a delivered page.

    The age of the text counts, not of its URL: the publisher of an old page may put any text there later. A page that
    was delivered as a copy, but not as a better one, stays a copy when its original is updated.
    """
    return (earlier.id if delivered.is_original or delivered.has_led else earlier.age) < delivered.age


def filed_fingerprint(record: Record, store: PageStore) -> Fingerprint:
    """The fingerprint of a page of the state, with the present counts of its site."""
    return Fingerprint(record.keys, record.sketch, site=store.on_site(site_of(record.url)))


def search(
    method: Method,
    store: PageStore,
    url: str,
    fingerprint: Fingerprint,
    canonical: str = "",
    delivered: Record | None = None,
    also_copies: Set[Kind] = frozenset(),
    in_flight: Callable[[], Iterable[Reservation]] = tuple,
) -> SearchResult:
    """Find the most similar earlier page: first a page that it copies, then a page that is similar in another way.

    ``canonical`` proposes one more candidate. ``delivered`` is the delivered earlier version of the page: of the pages
    that it copies, those that were there before that version come first. Pages of the same URL are never compared.
    ``also_copies``: kinds that count as copies though the method does not call them so. ``in_flight`` returns pages
    that share keys; they may show a form.
    """
    overused_keys, ids = candidates(method, store, fingerprint.keys)
    if not ids and not canonical:
        return SearchResult(overused_keys) if overused_keys else _NOTHING

    def rank(comparison: Comparison, earlier: Record) -> tuple[bool | float, ...]:
        """The sort key of candidates, larger for a better match: first, that the page is a copy of it at all."""
        is_copy = comparison.is_copy(also_copies)
        return (
            is_copy and delivered is not None and is_older(earlier, delivered),
            comparison.duplicate,
            is_copy,
            comparison.kind is Kind.EXCERPT,
            comparison.similarity >= _NEARLY_EQUAL,
            earlier.has_led,  # not a new version of a page that it superseded
            comparison.similarity,
            comparison.containment,
            earlier.is_original or earlier.dropped > 0,  # a person may have chosen the group of another variant
        )

    pages = [one for one in _comparable(store, url, ids, canonical) if method.may_be_alike(fingerprint, one.sketch)]
    compared = [method.compare(fingerprint, one.sketch, overused_keys) for one in pages]
    in_form = any(one.in_form for one in compared)
    if any(one.duplicate for one in compared):
        # A lookalike under another title shows that common text may be a template.
        lookalikes = () if in_form else (one.record.sketch for one in in_flight())
        in_form = in_form or any(method.compare(fingerprint, one, overused_keys).in_form for one in lookalikes)
        if in_form:
            fingerprint = replace(fingerprint, in_form=True)
            compared = [method.compare(fingerprint, one.sketch, overused_keys) for one in pages]
    nearest: SimilarPage | None = None
    near_miss: SimilarPage | None = None
    best: tuple[bool | float, ...] = ()
    for earlier, comparison in zip(pages, compared, strict=True):
        least = near_miss.comparison.similarity if near_miss else _NEAR_MISS
        if comparison.similarity > least and not comparison.is_copy(also_copies):
            near_miss = SimilarPage(comparison, earlier, earlier)
        if (comparison.kind is None and not comparison.duplicate) or not may_decide(earlier, comparison):
            continue
        if (ranked := rank(comparison, earlier)) > best:
            leader = representative_of(store, earlier, except_url=url)
            if leader is not None:
                nearest, best = SimilarPage(comparison, leader, earlier), ranked
    return SearchResult(overused_keys, nearest, in_form, near_miss)


def _comparable(store: PageStore, url: str, ids: tuple[int, ...], canonical: str) -> Iterator[Record]:
    """The records of candidates that have a sketch, and of the page that the canonical link names."""
    named = store.find(canonical) if canonical else None
    if named is not None and not named.is_unjudged:
        ids = (*ids, named.original, *([named.id] if named.has_led else ()))
    for record in store.records_of(tuple(dict.fromkeys(ids))):
        if record is not None and record.sketch and record.url != url:
            yield record
