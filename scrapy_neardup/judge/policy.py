"""The settings that decide verdicts beside the method, and the best copy of a group (NEARDUP_KEEP_POLICY)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol
from urllib.parse import urlsplit

from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Fingerprint, Likeness, Page, Verdict
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.state.boilerplate import publisher
from scrapy_neardup.state.evidence import Evidence, Keep
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.sentences import sentences

#: The values of NEARDUP_KEEP_POLICY beside a list of hosts.
FIRST, LONGEST, CANONICAL = POLICIES = ("first", "longest", "canonical")
#: A value of that setting.
KeepPolicy = str | tuple[str, ...]
#: How many times as long a better text is at least: two nearly equal pages must not take turns.
_LONGER = 1.1
#: How many times as long a better text of another publisher is at most: spam looks like the rest of an article.
_MUCH_LONGER = 1.25
#: The share of a superseded page that the better one holds; estimates of it err by 0.03.
_NEARLY_ALL = 0.9


class Contender(Protocol):
    """A page that may be better than the original of its group, and the state with that original: a ``Context``."""

    page: Page
    fingerprint: Fingerprint
    method: Method
    store: PageStore


class Preference(ABC):
    """Decides which of two copies represents their group.

    A stranger must not replace an article by a part of it, or by the article with spam. So the better page holds
    nearly all of the page that it supersedes, unless the user named its host.
    """

    #: Whether the better page must hold nearly all of the other one.
    holds_all: ClassVar[bool] = True

    @abstractmethod
    def is_better(self, new: Contender, representative: Record, first: Record) -> bool:
        """Whether a page is better than the page that represents a group; ``first`` was the group's first."""

    def is_doubtful(self, new: Contender, first: Record) -> bool:
        """Whether a better page holds so much more than the first page that both stay."""
        return False

    def add_evidence(self, new: Contender, kept: Evidence | None) -> Evidence | None:
        """Return the evidence of a page with the facts that later pages are compared with."""
        return kept


class Longest(Preference):
    """Prefers the longest article, by a tenth at least.

    The article counts as the method knows it, without boilerplate. A page read from HTML without a recognised article
    may be mostly menu, so it is never better. Of two publishers only a slightly longer page is better; a much longer
    one passes beside the first.
    """

    def is_better(self, new: Contender, representative: Record, first: Record) -> bool:
        if new.page.reader and not new.page.main:
            return False
        ours, theirs = _lengths(new, representative)
        return theirs > 0 and ours >= _LONGER * theirs

    def is_doubtful(self, new: Contender, first: Record) -> bool:
        ours, theirs = _lengths(new, first)
        return not _is_same_publisher(new.page.url, first.url) and ours > _MUCH_LONGER * theirs

    def add_evidence(self, new: Contender, kept: Evidence | None) -> Evidence | None:
        if new.method.length(new.fingerprint.sketch):
            return kept
        return replace(kept or Evidence(letters=len(new.page.text)), article=_length(new.page))


class Canonical(Preference):
    """Prefers the page that an earlier one names as its original, and of one publisher also a page that names itself.

    So the superseded page gives its own place away. A link to oneself supersedes only a page of the same publisher that
    names another one. Hosts of one registered domain are one publisher, as canonical links connect ``www``, ``m`` and
    ``amp``, and no stranger publishes there. A page that names another one is never better.
    """

    def is_better(self, new: Contender, representative: Record, first: Record) -> bool:
        page, store = new.page, new.store
        if page.canonical not in ("", page.url):
            return False
        named, first_named = (
            kept.canonical if (kept := store.evidence(one.id)) else "" for one in (representative, first)
        )
        if page.url in (named, first_named):
            return True
        return bool(named) and page.canonical == page.url and _is_same_publisher(page.url, representative.url)

    def add_evidence(self, new: Contender, kept: Evidence | None) -> Evidence | None:
        page = new.page
        if page.canonical in ("", page.url):
            return kept
        return replace(kept or Evidence(letters=len(page.text)), canonical=page.canonical)


class PreferredHosts(Preference):
    """Prefers the host that comes first in a list, subdomains included; all other hosts come last."""

    holds_all: ClassVar[bool] = False

    def __init__(self, hosts: Sequence[str]) -> None:
        self._hosts = [_ascii(host.strip().lower().removeprefix("www.").rstrip(".")) for host in hosts]

    def is_better(self, new: Contender, representative: Record, first: Record) -> bool:
        return self._rank(new.page.url) < self._rank(representative.url)

    def _rank(self, url: str) -> int:
        try:
            host = _ascii((urlsplit(url).hostname or "").rstrip("."))
        except ValueError:  # an open bracket
            host = ""
        ranks = (rank for rank, name in enumerate(self._hosts) if host == name or host.endswith(f".{name}"))
        return next(ranks, len(self._hosts))


def _ascii(host: str) -> str:
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host


def make_preference(policy: KeepPolicy) -> Preference | None:
    """The preference of NEARDUP_KEEP_POLICY; None for "first", where no page is better than an earlier one."""
    if isinstance(policy, tuple):
        return PreferredHosts(policy)
    return {FIRST: None, LONGEST: Longest(), CANONICAL: Canonical()}[policy]


def holds_nearly_all(new: Contender, old: Record, comparison: Comparison) -> bool:
    """Whether a page holds nearly all of an earlier one; if a length is unknown, they must be nearly the same."""
    ours, theirs = _lengths(new, old)
    if not ours or not theirs:
        return comparison.similarity >= _NEARLY_ALL
    by_similarity = comparison.similarity * (ours + theirs) / (1 + comparison.similarity)
    in_both = max(by_similarity, comparison.containment * min(ours, theirs))
    return in_both >= _NEARLY_ALL * theirs


def _lengths(new: Contender, old: Record) -> tuple[int, int]:
    """The lengths of a page and an earlier one in one measure; 0 for the earlier one if it is unknown."""
    if known := new.method.length(old.sketch):
        return new.method.length(new.fingerprint.sketch), known
    kept = new.store.evidence(old.id)
    if kept is None:
        return _length(new.page), 0
    return (_length(new.page), kept.article) if kept.article else (len(new.page.text), kept.letters)


def _length(page: Page) -> int:
    """Letters of the distinct sentences of an article: a repeated sentence makes no text longer."""
    return sum(map(len, {letters(one) for one in sentences(normalize(page.main or page.text))}))


def _is_same_publisher(url: str, other: str) -> bool:
    one, two = (publisher(site_of(each)) for each in (url, other))
    return bool(one) and one == two


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings that decide verdicts beside the method, and how much the state keeps of a page."""

    #: Letters and digits that a text needs to be judged.
    min_letters: int = 40
    #: Kinds that count as duplicates though the method does not call them so.
    also_copies: Set[Likeness] = frozenset()
    #: Whether the item of a page with this verdict passes. By default no copy does.
    passes: Callable[[Verdict], bool] = lambda verdict: not verdict.is_copy
    #: How much the state keeps for later questions.
    keep: Keep = Keep.NOTHING
    #: Which copies take the place of the first page of their group; without one, none does.
    preference: Preference | None = None

    def rules(self) -> dict[str, Any]:
        """The values on which the verdict on a known text depends, as plain data.

        States keep digests of it: pages judged by other rules are read and compared once more. The order matters.
        """
        return {"min_letters": self.min_letters, "also_copies": sorted(self.also_copies)}
