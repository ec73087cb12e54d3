"""The place of a copy in its group, and which of two copies is better (NEARDUP_KEEP_POLICY).

The first page of a group keeps its record when another page leads the group, and a better page must be a copy of the
first one. So a chain of better pages does not drift. A new version of a delivered page passes even if a page that came
after the delivered version has the same text. So nobody can stop the updates of an article by publishing a copy. A new
version of a superseded page is an original, so its copies are known if the better page is rolled back.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from urllib.parse import urlsplit

from scrapy_neardup.judge.context import CANONICAL, LONGEST, Context, KeepPolicy
from scrapy_neardup.judge.matching import SimilarPage, is_older
from scrapy_neardup.model import Comparison, Outcome, Page
from scrapy_neardup.page.reading import EXTRACTOR
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.state.boilerplate import publisher
from scrapy_neardup.state.pages import newest_replacement
from scrapy_neardup.state.record import Evidence, Record
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.sentences import sentences

#: How many times as long a better text is at least; else two nearly equal pages would replace each other for ever.
_LONGER = 1.1
#: How many times as long a better text of another publisher is at most: more may be spam, and nobody can tell.
_MUCH_LONGER = 1.25
#: The share of a superseded page that the better one holds; estimates of it err by 0.03.
_NEARLY_ALL = 0.9


def outcome_of_copy(context: Context, nearest: SimilarPage) -> Outcome:
    """The verdict on a copy of a page; ``nearest.leader`` leads its group now.

    * ``BETTER`` than the leader: it passes, and leads from now on.
    * ``UPDATED``: a new version of the leader. It passes and goes on leading.
    * ``UNIQUE``: it passes as an original. It is a new version of a page that was delivered before the similar page, or
      that led the group once; or the longest is preferred, and it is a much longer page of another publisher.
    * ``DUPLICATE``: nothing but a copy.
    """
    known, leader = context.known, nearest.leader
    has_led = known is not None and known.has_led and known.original == leader.group
    if known is not None and has_led:
        newest = newest_replacement(context.store, leader.group)
        if newest is not None and newest.url == known.url:
            return Outcome.UPDATED
    if (preferred := _preferred_outcome(context, nearest)) is not None:
        return preferred
    if known is None or not known.is_delivered:
        return Outcome.DUPLICATE
    return Outcome.DUPLICATE if is_older(nearest.compared, known) and not has_led else Outcome.UNIQUE


def _preferred_outcome(context: Context, nearest: SimilarPage) -> Outcome | None:
    """The verdict on a page that is better than the page that leads, or too long to be dropped for it; else None.

    A stranger must not replace an article by a part of it, or by the article with spam. So the better page holds
    nearly all of the page that it supersedes, unless the user named its host.
    """
    policy, leader = context.policy.keep_policy, nearest.leader
    if context.policy.prefers_first:
        return None
    first = context.store.record(leader.group)
    if first is None or first.url == context.page.url:  # forgotten, or an earlier version of this page
        first = leader
    if not is_better(context, leader, first):
        return None
    for one in {first.id: first, leader.id: leader}.values():
        comparison = nearest.comparison
        if one.id != nearest.compared.id:
            comparison = context.compare(one)
            if one.id == first.id and not comparison.is_copy(context.policy.also_copies):
                return None
        if isinstance(policy, str) and not _holds_nearly_all(context, one, comparison):
            return None
    ours, theirs = _lengths(context, first) if policy == LONGEST else (0, 0)
    if ours > _MUCH_LONGER * theirs and not _is_same_publisher(context.page.url, first.url):
        return Outcome.UNIQUE  # of another publisher and so much longer that both stay
    return Outcome.BETTER


# Which of two copies is better.


def is_better(context: Context, leader: Record, first: Record) -> bool:
    """Whether a page is better than the page that leads a group; ``first`` was the group's first.

    A longer article counts as the method knows it, without boilerplate. A page of HTML in which our reader recognised
    no article may be mostly menu, so it is never better.
    """
    page, policy = context.page, context.policy.keep_policy
    if policy == LONGEST:
        ours, theirs = _lengths(context, leader)
        may_be_menu = page.reader not in ("", EXTRACTOR) and not page.main
        return not may_be_menu and theirs > 0 and ours >= _LONGER * theirs
    if policy == CANONICAL:
        return _is_canonical(context, leader, first)
    return _rank(page.url, policy) < _rank(leader.url, policy)


def _is_canonical(context: Context, leader: Record, first: Record) -> bool:
    """Whether an earlier page names this one as its original.

    Or, of one publisher, the leader names another page and this one names itself. So only the superseded page can give
    its place away. Hosts of one registered domain are one publisher, as canonical links connect ``www``, ``m`` and
    ``amp``, and no stranger publishes there. A page that names another one is never better.
    """
    page, store = context.page, context.store
    if page.canonical not in ("", page.url):
        return False
    named, first_named = (kept.canonical if (kept := store.evidence(one.id)) else "" for one in (leader, first))
    if page.url in (named, first_named):
        return True
    return bool(named) and page.canonical == page.url and _is_same_publisher(page.url, leader.url)


def _rank(url: str, hosts: KeepPolicy) -> int:
    """The place of a URL's host in a list, subdomains included; all other hosts come last."""
    try:
        host = _ascii((urlsplit(url).hostname or "").rstrip("."))
    except ValueError:  # an open bracket
        host = ""
    names = [_ascii(one.strip().lower().removeprefix("www.").rstrip(".")) for one in hosts]
    return next((rank for rank, name in enumerate(names) if host == name or host.endswith(f".{name}")), len(names))


@lru_cache(maxsize=1000)
def _ascii(host: str) -> str:
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host


def add_evidence(context: Context, kept: Evidence | None) -> Evidence | None:
    """Return the evidence of a page with the facts that later pages are compared with."""
    page, policy = context.page, context.policy.keep_policy
    if policy == LONGEST and not context.method.length(context.fingerprint.sketch):
        return replace(kept or Evidence(letters=len(page.text)), article=_length(page))
    if policy == CANONICAL and page.canonical not in ("", page.url):
        return replace(kept or Evidence(letters=len(page.text)), canonical=page.canonical)
    return kept


def _holds_nearly_all(context: Context, old: Record, comparison: Comparison) -> bool:
    """Whether a page holds nearly all of an earlier one; if a length is unknown, they must be nearly the same."""
    ours, theirs = _lengths(context, old)
    if not ours or not theirs:
        return comparison.similarity >= _NEARLY_ALL
    # Of a Jaccard similarity s: |A ∩ B| = s (|A| + |B|) / (1 + s).
    by_similarity = comparison.similarity * (ours + theirs) / (1 + comparison.similarity)
    in_both = max(by_similarity, comparison.containment * min(ours, theirs))
    return in_both >= _NEARLY_ALL * theirs


def _lengths(context: Context, old: Record) -> tuple[int, int]:
    """The lengths of a page and an earlier one in one measure; 0 for the earlier one if it is unknown.

    The measure is the method's, else letters of the article, else characters.
    """
    if their_length := context.method.length(old.sketch):
        return context.method.length(context.fingerprint.sketch), their_length
    kept = context.store.evidence(old.id)
    if kept is None:
        return _length(context.page), 0
    return (_length(context.page), kept.article) if kept.article else (len(context.page.text), kept.letters)


def _length(page: Page) -> int:
    """Letters of the distinct sentences of an article: a repeated sentence makes no text longer."""
    return sum(map(len, {letters(one) for one in sentences(normalize(page.main or page.text))}))


def _is_same_publisher(url: str, other: str) -> bool:
    one, two = (publisher(site_of(each)) for each in (url, other))
    return bool(one) and one == two
