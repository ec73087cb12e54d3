"""Which copy is the best of its group, by NEARDUP_KEEP_POLICY."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from enum import Enum
from typing import ClassVar
from urllib.parse import urlsplit

from scrapy_neardup.judge.matching import Found, is_older
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Fingerprint, Kind, Likeness, Page
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.state.boilerplate import publisher
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.pages import PageStore, leader
from scrapy_neardup.state.record import Record
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.sentences import sentences

# ----------------------------------------------------------------------------------------------------------------------
# Which of two copies is the better one: NEARDUP_KEEP_POLICY.
#
# A preference only says which of two copies is to stand for their group; ``succession`` asks it once two pages are
# known to be copies. A stranger must not be able to put part of an article, or the article with spam, in its place. So
# the better page holds nearly all of the page that it supersedes, unless the user named its host.


#: What NEARDUP_KEEP_POLICY may be beside a list of hosts.
FIRST, LONGEST, CANONICAL = POLICIES = ("first", "longest", "canonical")
#: What the setting says.
KeepPolicy = str | tuple[str, ...]
#: How many times as long a better text is at least: two that are nearly equal must not take turns.
_LONGER = 1.1
#: How many times as long a better text of another publisher is at most: nobody can tell spam from an article's rest.
_MUCH_LONGER = 1.25
#: The share of a superseded page that the better one holds; estimates of it err by 0.03.
_NEARLY_ALL = 0.9


@dataclass(frozen=True, slots=True)
class Contender:
    """A page that may be better than the one that stands for its group."""

    page: Page
    fingerprint: Fingerprint


class Preference(ABC):
    """Which page is to stand for a group, whatever came first."""

    #: Whether that takes more of a page than its URL.
    reads: ClassVar[bool] = True
    #: Whether the better page must hold nearly all of the other one.
    holds_all: ClassVar[bool] = True

    @abstractmethod
    def is_better(self, new: Contender, standing: Record, first: Record, method: Method, store: PageStore) -> bool:
        """Whether a page is better than the one that stands for the group, of which ``first`` was the first one."""

    def is_doubtful(self, new: Contender, first: Record, method: Method, store: PageStore) -> bool:
        """Whether a better page holds so much beside the first page that both are kept."""
        return False

    def weighed(self, new: Contender, kept: Evidence | None, method: Method) -> Evidence | None:
        """What is kept of a page, with that by which later ones are held against it."""
        return kept


class Longest(Preference):
    """The page with the longest article, by a tenth at least.

    What counts is the article, as far as the method knows it without boilerplate. Of a page read from HTML of which no
    article could be told, nobody knows how much of it is menu, so it is not better than another. Of two publishers only
    a little longer page is better; a much longer one passes beside the first.
    """

    def is_better(self, new: Contender, standing: Record, first: Record, method: Method, store: PageStore) -> bool:
        if new.page.reader and not new.page.main:
            return False
        ours, theirs = _lengths(new, standing, method, store)
        return theirs > 0 and ours >= _LONGER * theirs

    def is_doubtful(self, new: Contender, first: Record, method: Method, store: PageStore) -> bool:
        ours, theirs = _lengths(new, first, method, store)
        return not _is_same_publisher(new.page.url, first.url) and ours > _MUCH_LONGER * theirs

    def weighed(self, new: Contender, kept: Evidence | None, method: Method) -> Evidence | None:
        if method.length(new.fingerprint.sketch):
            return kept
        return replace(kept or Evidence(letters=len(new.page.text)), article=_length(new))


class Canonical(Preference):
    """The page that an earlier one names as its original; of one publisher also a page that names itself.

    So the superseded page gives its own place away. A link to oneself supersedes only a page of the same publisher that
    names another one. Hosts of one registered domain are one publisher, as canonical links connect ``www``, ``m`` and
    ``amp``, and no stranger publishes there. A page that names another one is never better.
    """

    def is_better(self, new: Contender, standing: Record, first: Record, method: Method, store: PageStore) -> bool:
        page = new.page
        if page.canonical not in ("", page.url):
            return False
        named = _named(store, standing)
        if page.url in (named, _named(store, first)):
            return True
        return bool(named) and page.canonical == page.url and _is_same_publisher(page.url, standing.url)

    def weighed(self, new: Contender, kept: Evidence | None, method: Method) -> Evidence | None:
        page = new.page
        if page.canonical in ("", page.url):
            return kept
        return replace(kept or Evidence(letters=len(page.text)), canonical=page.canonical)


class PreferredHosts(Preference):
    """The page of the host that stands first in a list, with the hosts below it; pages of others are the worst."""

    reads: ClassVar[bool] = False
    holds_all: ClassVar[bool] = False

    def __init__(self, hosts: Sequence[str]) -> None:
        self._hosts = [_ascii(host.strip().lower().removeprefix("www.").rstrip(".")) for host in hosts]

    def is_better(self, new: Contender, standing: Record, first: Record, method: Method, store: PageStore) -> bool:
        return self._rank(new.page.url) < self._rank(standing.url)

    def _rank(self, url: str) -> int:
        try:
            host = _ascii((urlsplit(url).hostname or "").rstrip("."))
        except ValueError:  # a bracket that is not closed
            host = ""
        ranks = (rank for rank, name in enumerate(self._hosts) if host == name or host.endswith(f".{name}"))
        return next(ranks, len(self._hosts))


def make_preference(policy: KeepPolicy) -> Preference | None:
    """What NEARDUP_KEEP_POLICY says; None for "first", by which no page is better than an earlier one."""
    if isinstance(policy, tuple):
        return PreferredHosts(policy)
    return {FIRST: None, LONGEST: Longest(), CANONICAL: Canonical()}[policy]


def holds_nearly_all(new: Contender, old: Record, found: Comparison, method: Method, store: PageStore) -> bool:
    """Whether a page holds nearly all of an earlier one; where lengths are unknown, they must be nearly the same."""
    ours, theirs = _lengths(new, old, method, store)
    if not ours or not theirs:
        return found.similarity >= _NEARLY_ALL
    by_similarity = found.similarity * (ours + theirs) / (1 + found.similarity)
    in_both = max(by_similarity, found.containment * min(ours, theirs))
    return in_both >= _NEARLY_ALL * theirs


def _lengths(new: Contender, old: Record, method: Method, store: PageStore) -> tuple[int, int]:
    """How long a page and an earlier one are in one measure; 0 for the earlier one if nobody knows."""
    if known := method.length(old.sketch):
        return method.length(new.fingerprint.sketch), known
    kept = store.evidence(old.id)
    if kept is None:
        return _length(new), 0
    return (_length(new), kept.article) if kept.article else (len(new.page.text), kept.letters)


def _is_same_publisher(url: str, other: str) -> bool:
    one, two = (publisher(site_of(each)) for each in (url, other))
    return bool(one) and one == two


def _length(new: Contender) -> int:
    """Letters of the different sentences of an article: to say a thing twice makes no text longer."""
    found = {letters(one) for one in sentences(normalize(new.page.main or new.page.text))}
    return sum(map(len, found))


def _named(store: PageStore, record: Record) -> str:
    """The other page that a page names as its original; empty if it names none, or that is not known."""
    kept = store.evidence(record.id)
    return kept.canonical if kept else ""


def _ascii(host: str) -> str:
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host


# ----------------------------------------------------------------------------------------------------------------------
# What a copy is to its group: one more copy, or the page that stands for the group from now on.
#
# The first page of a group keeps its record, its sketch and its say, whoever stands for the group later, and a better
# page must be a copy of that one: so a group that is led by one page after the other goes no further from it than its
# copies do.
#
# A delivered page passes when it changes, though a newer page holds its text: nobody can have the updates of an article
# dropped by publishing a copy of it, be that better or only longer.


class Standing(Enum):
    """What a copy is to its group."""

    #: Nothing but a copy.
    COPY = "copy"
    #: It is better than the page that stands for the group, and stands there from now on.
    BETTER = "better"
    #: A new version of the page that stands for the group.
    LEADING = "leading"
    #: A new version of a page that was delivered, where a better one stands for the group.
    FOLLOWS = "follows"
    #: It passes as an original: a new version of a page that was delivered before the page that it is like, or a much
    #: longer page of another publisher where the longest is preferred.
    ORIGINAL = "original"

    @property
    def leads(self) -> bool:
        """Whether it stands for the group."""
        return self in (Standing.BETTER, Standing.LEADING)

    @property
    def kind(self) -> Kind:
        """Its verdict, if it belongs to the group."""
        return {Standing.COPY: Kind.DUPLICATE, Standing.BETTER: Kind.BETTER}.get(self, Kind.UPDATED)


class Succession:
    """Who stands for a group, by a preference; without one nobody takes another page's place."""

    def __init__(
        self, method: Method, store: PageStore, also_copies: Set[Likeness], preference: Preference | None = None
    ) -> None:
        self.preference = preference
        self._method = method
        self._store = store
        self._also_copies = also_copies

    def role(self, new: Contender, known: Record | None, best: Found, common: frozenset[int]) -> Standing:
        """What a copy is to its group; ``known`` is what is known of its URL, ``common`` keys are no evidence."""
        standing = best.original
        if known is not None and known.leads and known.original == standing.group:
            newest = leader(self._store, standing.group)
            if newest is not None and newest.url == known.url:
                return Standing.LEADING
        preferred = self._preferred(new, best, common, self.preference) if self.preference is not None else None
        if preferred is not None:
            return preferred
        if known is None or not known.is_delivered:
            return Standing.COPY
        if standing.leads:
            return Standing.FOLLOWS
        return Standing.COPY if is_older(best.compared, known) else Standing.ORIGINAL

    def _preferred(
        self, new: Contender, best: Found, common: frozenset[int], preference: Preference
    ) -> Standing | None:
        """Whether a page is better than the one that stands for the group, or too long to be dropped for it."""
        standing, method, store = best.original, self._method, self._store
        first = store.record(standing.group)
        if first is None or first.url == new.page.url:
            first = standing
        if not preference.is_better(new, standing, first, method, store):
            return None
        for one in {first.id: first, standing.id: standing}.values():
            is_known = one.id == best.compared.id
            found = best.comparison if is_known else method.compare(new.fingerprint, one.sketch, common)
            if one.id == first.id and not is_known and not found.is_copy(self._also_copies):
                return None
            if preference.holds_all and not holds_nearly_all(new, one, found, method, store):
                return None
        return Standing.ORIGINAL if preference.is_doubtful(new, first, method, store) else Standing.BETTER
