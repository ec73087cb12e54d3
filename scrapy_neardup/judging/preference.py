"""Which of two copies is the better one: NEARDUP_KEEP_POLICY.

A preference only says which of two pages is to stand for a group. That they are copies is said before, by the rules
that hold for every page (see ``succession``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar
from urllib.parse import urlsplit

from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.stores import Evidence, Record, Store
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.sentences import sentences

#: What NEARDUP_KEEP_POLICY may be beside a list of hosts.
FIRST, LONGEST, CANONICAL = POLICIES = ("first", "longest", "canonical")
#: What the setting says.
KeepPolicy = str | tuple[str, ...]
#: How many times as long a better text is at least: two that are nearly equal must not take turns.
_LONGER = 1.1


@dataclass(frozen=True, slots=True)
class Contender:
    """A page that may be better than the one that stands for its group."""

    page: Page
    fingerprint: Fingerprint


class Preference(ABC):
    """Which page is to stand for a group, whatever came first."""

    #: Whether that takes more of a page than its URL.
    reads: ClassVar[bool] = True

    @abstractmethod
    def is_better(self, new: Contender, standing: Record, first: Record, method: Method, store: Store) -> bool:
        """Whether a page is better than the one that stands for the group, of which ``first`` was the first one."""

    def weighed(self, new: Contender, kept: Evidence | None, method: Method) -> Evidence | None:
        """What is kept of a page, with that by which later ones are held against it."""
        return kept


class Longest(Preference):
    """The page with the longest article, by a tenth at least.

    What counts is the article, as far as the method knows it without boilerplate. Of a page read from HTML of which no
    article could be told, nobody knows how much of it is menu, so it is not better than another.
    """

    def is_better(self, new: Contender, standing: Record, first: Record, method: Method, store: Store) -> bool:
        if new.page.reader and not new.page.main:
            return False
        known = method.length(standing.sketch)
        if known:
            return method.length(new.fingerprint.sketch) >= _LONGER * known
        kept = store.evidence(standing.id)
        return kept is not None and kept.article > 0 and _length(new) >= _LONGER * kept.article

    def weighed(self, new: Contender, kept: Evidence | None, method: Method) -> Evidence | None:
        if method.length(new.fingerprint.sketch):
            return kept
        return replace(kept or Evidence(letters=len(new.page.text)), article=_length(new))


class Canonical(Preference):
    """The page that an earlier one names as its original, or that names itself where the earlier one names another.

    So it is always the superseded page that gives its place away: a link to oneself supersedes no page that names
    itself, or none. A page that names another one is never better.
    """

    def is_better(self, new: Contender, standing: Record, first: Record, method: Method, store: Store) -> bool:
        page = new.page
        if page.canonical not in ("", page.url):
            return False
        named = _named(store, standing)
        if page.url in (named, _named(store, first)):
            return True
        return bool(named) and page.canonical == page.url

    def weighed(self, new: Contender, kept: Evidence | None, method: Method) -> Evidence | None:
        page = new.page
        if page.canonical in ("", page.url):
            return kept
        return replace(kept or Evidence(letters=len(page.text)), canonical=page.canonical)


class PreferredHosts(Preference):
    """The page of the host that stands first in a list, with the hosts below it; pages of others are the worst."""

    reads: ClassVar[bool] = False

    def __init__(self, hosts: Sequence[str]) -> None:
        self._hosts = [_ascii(host.strip().lower().removeprefix("www.").rstrip(".")) for host in hosts]

    def is_better(self, new: Contender, standing: Record, first: Record, method: Method, store: Store) -> bool:
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


def _length(new: Contender) -> int:
    """Letters of the different sentences of an article: to say a thing twice makes no text longer."""
    found = {letters(one) for one in sentences(normalize(new.page.main or new.page.text))}
    return sum(map(len, found))


def _named(store: Store, record: Record) -> str:
    """The other page that a page names as its original; empty if it names none, or that is not known."""
    kept = store.evidence(record.id)
    return kept.canonical if kept else ""


def _ascii(host: str) -> str:
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host
