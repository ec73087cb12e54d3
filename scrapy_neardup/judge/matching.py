"""Which earlier page decides on a page: the candidates that share keys with it, and the best of them.

Whoever asks what a page is a copy of, asks here: a crawl, ``dedup``, ``evaluate``, a merge of two states, ``compare``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from typing import NamedTuple

from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Fingerprint, Likeness
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.state.pages import PageStore, stands_for
from scrapy_neardup.state.record import Record


class Candidates(NamedTuple):
    """The keys that are no evidence, and the ids of the pages that share others, those with the most of them first."""

    common: frozenset[int]
    ids: tuple[int, ...]


_NONE = Candidates(frozenset(), ())


@dataclass(frozen=True, slots=True)
class Found:
    """An earlier page that a page is like; ``compared`` is the original itself or another page of its group.

    ``original`` stands for the group: one that was better than the first, if there was one.
    """

    comparison: Comparison
    original: Record
    compared: Record


class Matched(NamedTuple):
    """The keys of a page that are no evidence, and the earlier page that it is most like, if there is one.

    ``in_form``: it looks like one of its site under another title: see ``Comparison``.
    """

    common: frozenset[int]
    best: Found | None
    in_form: bool


#: Of most pages.
_NOTHING = Matched(frozenset(), None, in_form=False)


def candidates(method: Method, store: PageStore, keys: Iterable[int]) -> Candidates:
    """Which earlier pages a page with these keys may be like.

    A key that is common is not filed once more, so none has many more postings than that.
    """
    found: list[int] = []
    common = set()
    limit = method.common
    keys = tuple(keys)
    postings = store.all_postings(keys, limit)
    if not any(postings):  # as it is with most pages
        return _NONE
    for key, ids in zip(keys, postings, strict=True):
        if len(ids) >= limit:
            common.add(key)
        else:
            found += ids
    shared = Counter(found)
    most = sorted(shared, key=shared.__getitem__, reverse=True)  # of as many the newest first, as they were found
    return Candidates(frozenset(common), tuple(most[: method.candidates]))


def distinctive_keys(keys: Iterable[int], common: Set[int]) -> tuple[int, ...]:
    """The keys under which a page is filed: those that are not common."""
    return tuple(key for key in keys if key not in common)


def with_distinctive_keys(fingerprint: Fingerprint, common: Set[int]) -> Fingerprint:
    """The same with these keys alone."""
    return fingerprint.with_keys(distinctive_keys(fingerprint.keys, common)) if common else fingerprint


def has_a_say(earlier: Record, comparison: Comparison) -> bool:
    """Whether an earlier page may decide: an original always, a witness only where similarity alone decides.

    A copy that has come to stand for its group decides like an original.
    """
    return earlier.is_original or comparison.certain or earlier.leads


def is_older(earlier: Record, delivered: Record) -> bool:
    """Whether a text was in the state before the first version of a delivered page.

    The publisher of an old page may put any text there later, so the age of that text counts, not the age of its URL.
    A page that was delivered as a copy, as the policy lets copies pass, stays a copy when its original is updated.
    """
    return (earlier.id if delivered.is_original else earlier.age) < delivered.age


def filed_fingerprint(record: Record, store: PageStore) -> Fingerprint:
    """The fingerprint of a page of the state, with what the state knows of its site now."""
    return Fingerprint(record.keys, record.sketch, site=store.on_site(site_of(record.url)))


class Matching:
    """One method on one store; ``also_copies``: what counts as a copy beside what the method says is one."""

    def __init__(self, method: Method, store: PageStore, also_copies: Set[Likeness] = frozenset()) -> None:
        self._method = method
        self._store = store
        self._also_copies = also_copies

    def common(self, fingerprint: Fingerprint) -> frozenset[int]:
        """The keys of a page that are no evidence, for whoever knows already what it is to be compared with."""
        return candidates(self._method, self._store, fingerprint.keys).common

    def best(self, url: str, fingerprint: Fingerprint, canonical: str = "", delivered: Record | None = None) -> Matched:
        """Find the earlier page that a page is most like.

        The best is one that it copies, or else one that it is like in another way. ``canonical`` proposes one more
        candidate. ``delivered`` is the earlier version of the page, if that was delivered: then pages that were there
        before it come first among those that the page copies. Pages of the same URL are never compared.
        """
        found = candidates(self._method, self._store, fingerprint.keys)
        if not found.ids and not canonical:
            return Matched(found.common, None, in_form=False) if found.common else _NOTHING
        best: Found | None = None
        in_form = False
        for earlier in self._earlier(url, found.ids, canonical):
            if not self._method.may_be_alike(fingerprint, earlier.sketch):
                continue
            comparison = self._method.compare(fingerprint, earlier.sketch, found.common)
            in_form |= comparison.in_form
            if comparison.likeness is None and not comparison.duplicate:
                continue
            if not has_a_say(earlier, comparison):
                continue
            if best is None or self._rank(comparison, earlier, delivered) > self._rank(
                best.comparison, best.compared, delivered
            ):
                original = stands_for(self._store, earlier, besides=url)
                if original is not None:
                    best = Found(comparison, original, earlier)
        return Matched(found.common, best, in_form)

    def nearest(self, record: Record) -> Matched:
        """What a page of the state is most like now, copy or not, among the originals of other groups."""
        fingerprint = filed_fingerprint(record, self._store)
        found = candidates(self._method, self._store, fingerprint.keys)
        best: Found | None = None
        for other in self._earlier(record.url, found.ids, ""):
            comparison = self._method.compare(fingerprint, other.sketch, found.common)
            original = stands_for(self._store, other, besides=record.url)
            if original is None or record.id in (other.original, original.id) or not has_a_say(other, comparison):
                continue
            if best is None or self._rank(comparison, other) > self._rank(best.comparison, best.compared):
                best = Found(comparison, original, other)
        return Matched(found.common, best, in_form=False)

    def _earlier(self, url: str, ids: tuple[int, ...], canonical: str) -> Iterator[Record]:
        """The records of candidates, originals and witnesses."""
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
