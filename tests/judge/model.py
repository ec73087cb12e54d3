"""What a detector should say and a state should know, told of pages alone: which text is like which, and nothing more.

How alike two texts are is asked of the method, which has tests of its own; here it is a table that does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from typing import NamedTuple

from scrapy_neardup.judge.context import LONGEST, KeepPolicy
from scrapy_neardup.judge.lists import ManualKind
from scrapy_neardup.methods import Method, make_method
from scrapy_neardup.model import Comparison, Fingerprint, Kind, Outcome, Page
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.pages import PageStore
from tests.build import story
from tests.state.clock import Clock
from tests.state.model import Pages

URLS = [f"http://{name}.example/" for name in ("first", "second", "third", "fourth", "fifth")]


class Version(IntEnum):
    """The texts of one family."""

    FIRST = 0
    #: All of the first, and a line.
    EDITED = 1
    #: A copy of the first that differs so much that it speaks for itself.
    VARIANT = 2
    #: A copy of the variant, and not of the first.
    FURTHER = 3
    #: Role of the first: a copy where the policy says so.
    EXCERPT = 4
    #: Too little to be judged.
    SHORT = 5


class Text(NamedTuple):
    """What stands at a URL; families have nothing in common, but for what is short."""

    family: int
    version: Version

    @property
    def is_short(self) -> bool:
        return self.version is Version.SHORT

    def page(self, url: str) -> Page:
        """At a site of its own, as no site is to have boilerplate here."""
        site, bytes = url.removeprefix("http://").rstrip("/"), 10 * self.family + self.version + 1
        if self.is_short:
            return Page(url, text="图。", html=self.family + 1, site=site, body=bytes)
        body, other = story(2 * self.family + 1, 20), story(2 * self.family + 2, 6)
        text = {
            Version.FIRST: body,
            Version.EDITED: [*body, "由编辑部转载。"],
            Version.VARIANT: [*body[:15], *other],
            Version.FURTHER: [*body[4:15], *other],
            Version.EXCERPT: body[:7],
        }[self.version]
        return Page(url, f"标题{self.family}", text="".join(text), site=site, body=bytes)


@cache
def _method() -> tuple[Method, PageStore]:
    """Under the secret that all states of these tests draw."""
    store = memory_state({})
    return make_method("cascade", {}).with_hashes(store.hashes), store


@cache
def fingerprint(text: Text, url: str = "http://old.example/") -> Fingerprint:
    method, store = _method()
    page = text.page(url)
    return method.for_state(page, store.on_site(page.site))


@cache
def compared(new: Text, old: Text) -> Comparison:
    """Of different sites, as all URLs are."""
    return _method()[0].compare(fingerprint(new, "http://new.example/"), fingerprint(old).sketch, frozenset())


@cache
def shares_keys(one: Text, other: Text) -> bool:
    return not set(fingerprint(one).keys).isdisjoint(fingerprint(other).keys)


@cache
def length(text: Text) -> int:
    return _method()[0].length(fingerprint(text).sketch)


@dataclass(frozen=True)
class Known:
    """A page that counts, or is on its way; ``original`` is its own id unless it is a copy.

    ``leads``: it was better than the page that stood for its group. ``dropped``: of a copy that was dropped its text,
    what counted as a copy then beside what the method says is one, and as what it was dropped; None if by hand.
    ``since``: the id of the first version that was delivered, 0 for that version. ``is_kept_as_original``: it passed
    though it copies others, see ``groups.outcome_of_copy``.
    """

    id: int
    url: str
    text: Text
    original: int
    is_variant: bool = False
    delivered: bool = False
    leads: bool = False
    dropped: tuple[Text, frozenset[Kind], Kind | None] | None = None
    since: int = 0
    is_kept_as_original: bool = False

    @property
    def age(self) -> int:
        return self.since or self.id

    @property
    def is_delivered(self) -> bool:
        return self.is_original or self.delivered

    @property
    def is_original(self) -> bool:
        return self.original == self.id and not self.text.is_short

    @property
    def is_filed(self) -> bool:
        return self.is_original or self.is_variant

    @property
    def keys(self) -> tuple[int, ...]:
        own = fingerprint(self.text, self.url).keys if self.is_filed else ()
        return (*own, self.original) if self.leads else own

    @property
    def sketch(self) -> bytes:
        if self.text.is_short:
            return (self.text.family + 1).to_bytes(8, "big")
        return fingerprint(self.text, self.url).sketch if self.is_filed or self.delivered else b""


@dataclass(frozen=True)
class Policy:
    """What a crawl makes of copies, and which it likes better."""

    drops: bool = True
    also_copies: frozenset[Kind] = frozenset()
    keep: KeepPolicy = "first"

    def likes_better(self, url: str, text: Text, standing: Known) -> bool:
        if isinstance(self.keep, tuple):
            ranks = [one.removeprefix("http://").rstrip("/") for one in (url, standing.url)]
            new, old = (self.keep.index(host) if host in self.keep else len(self.keep) for host in ranks)
            return new < old
        return self.keep == LONGEST and length(text) >= 1.1 * length(standing.text)


@dataclass(eq=False)
class OnItsWay:
    """A page that passed and whose item has not arrived; ``waiting``: the pages that ask again then."""

    known: Known
    crawl: int
    replaces: int
    waiting: list[tuple[int, str, Text]] = field(default_factory=list)


@dataclass(frozen=True)
class Expected:
    """The answer on a page. Where several earlier pages decide as well as each other, it is one of them.

    ``outcome`` is None for a page that has to wait; ``by``: the URLs of those for which. ``originals``: the ids of
    their groups, each with whether the page is to be a variant of it then; a page that is a copy can be more than that
    to its group, see ``State.outcome_of_copy``, but not one that is a copy ``by_hand``. ``passes``: whether it is on
    its way from now on; ``id``: of the record of one that is unchanged.
    """

    outcome: Outcome | None
    by: frozenset[str] = frozenset()
    originals: frozenset[tuple[int, bool]] = frozenset()
    passes: bool = False
    id: int = 0
    by_hand: bool = False


@dataclass
class State(Pages[Known]):
    """Pages that count and pages on their way; ``sights``: when the newest page of each URL was last seen.

    ``said``: what somebody has said of a URL by hand, and the other URL of a copy; ``kept``: those that were ever kept.
    """

    coming: dict[str, OnItsWay] = field(default_factory=dict)
    now: float = Clock.now
    sights: dict[str, int] = field(default_factory=dict)
    said: dict[str, tuple[ManualKind, str]] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)

    def see(self, id: int, original: int = 0) -> None:
        """The page was seen, and so was what it is a copy of, as far as that is there and the newest of its URL.

        ``original``: of which it is one now, if what is known of it says another one.
        """
        for one in (id, original or self.pages[id].original):
            page = self.pages.get(one)
            if page is not None and self.newest.get(page.url) == one:
                self.sights[page.url] = int(self.now)

    def seen(self, id: int) -> int:
        return self.sights[self.pages[id].url]

    def free(self) -> set[int]:
        """The pages that may go: those that are sealed, and in whose place no other one is."""
        return {id for id, page in self.pages.items() if id not in self.unsealed and self.newest.get(page.url) == id}

    def roll_back(self, id: int) -> None:
        before = dict(self.newest)
        super().roll_back(id)
        for url, newest in self.newest.items():
            if newest != before[url]:
                self.sights[url] = int(self.now)

    def judge(self, url: str, text: Text, policy: Policy) -> Expected:
        known = self.find(url)
        if text.is_short:
            return self._short(url, text, known)
        if url in self.coming:
            return Expected(None, frozenset([url]))
        if known is not None and known.is_delivered and known.text == text:
            return Expected(Outcome.UNCHANGED, id=known.id)
        said, other = self.said.get(url, (None, ""))
        if said is ManualKind.COPY and (original := self._original_at(other, url)):
            pair = original.original, compared(text, original.text).similarity < 0.9
            return Expected(Outcome.DUPLICATE, originals=frozenset([pair]), passes=not policy.drops, by_hand=True)
        if said is ManualKind.COPY and other in self.coming:
            return Expected(None, frozenset([other]))
        if said is not ManualKind.KEEP:
            returned = self._returned(known, text, policy)
            if returned is not None and policy.keep == "first":
                return Expected(Outcome.DUPLICATE, originals=frozenset([(returned.original, returned.is_variant)]))
            if originals := self.copied(url, text, policy):
                return Expected(Outcome.DUPLICATE, originals=originals, passes=not policy.drops)
            if returned is not None:
                return Expected(Outcome.DUPLICATE, originals=frozenset([(returned.original, returned.is_variant)]))
            copies = _copies(text, policy)
            if by := frozenset(one.known.url for one in self.coming.values() if copies(one.known)):
                return Expected(None, by)
        was_delivered = known is not None and known.is_delivered
        return Expected(Outcome.UPDATED if was_delivered else Outcome.UNIQUE, passes=True)

    def _returned(self, known: Known | None, text: Text, policy: Policy) -> Known | None:
        """What is known of a URL, if it is the very page that was dropped there, for what is still there."""
        if known is None or not policy.drops or known.dropped is None:
            return None
        is_there = self.standing(known.original, besides=known.url) is not None
        return known if is_there and known.dropped[:2] == (text, policy.also_copies) else None

    def _original_at(self, url: str, of: str) -> Known | None:
        known = self.find(url)
        found = self.standing(known.original, besides=of) if known else None
        return found if found and (found.is_original or found.leads) else None

    def _short(self, url: str, text: Text, known: Known | None) -> Expected:
        """It is compared with what was at its URL alone, and what is known of that stays."""
        if url in self.coming:
            same = self.coming[url].known.text == text
            return Expected(None, frozenset([url])) if same else Expected(Outcome.UNJUDGED)
        if known is not None and not known.text.is_short:
            return Expected(Outcome.UNJUDGED)
        if known is not None and known.text == text:
            return Expected(Outcome.UNCHANGED, id=known.id)
        return Expected(Outcome.UNJUDGED, passes=True)

    def standing(self, group: int, besides: str = "") -> Known | None:
        """The page that stands for a group: the newest that has come to lead it, else its original."""
        leading = [one for one in self.pages.values() if one.leads and one.original == group and one.url != besides]
        found = max(leading, key=lambda one: one.id) if leading else self.pages.get(group)
        return found if found is not None and found.url != besides else None

    def outcome_of_copy(self, url: str, text: Text, group: int, policy: Policy) -> Outcome:
        """As in ``groups``."""
        known, standing, first = self.find(url), self.standing(group, besides=url), self.pages.get(group)
        assert standing is not None
        has_led = known is not None and known.leads and known.original == group
        if has_led:
            newest = self.standing(group)
            if newest is not None and newest.url == url:
                return Outcome.UPDATED
        if first is None or first.url == url:
            first = standing
        is_copy = compared(text, first.text).is_copy(policy.also_copies)
        if is_copy and policy.likes_better(url, text, standing):
            if policy.keep != LONGEST:
                return Outcome.BETTER
            if _holds_nearly_all(text, first.text) and _holds_nearly_all(text, standing.text):
                return Outcome.UNIQUE if length(text) > 1.25 * length(first.text) else Outcome.BETTER
        if known is None or not known.is_delivered:
            return Outcome.DUPLICATE
        if has_led:
            return Outcome.UNIQUE
        copies = _copies(text, policy)
        older = (one for one in self.candidates(url) if _is_older(one, known) and copies(one))
        return Outcome.UNIQUE if next(older, None) is None else Outcome.DUPLICATE

    def rivals(self, group: int) -> frozenset[str]:
        """The URLs of pages on their way that are to lead a group."""
        return frozenset(url for url, one in self.coming.items() if one.known.leads and one.known.original == group)

    def copied(self, url: str, text: Text, policy: Policy) -> frozenset[tuple[int, bool]]:
        """The originals that the page is most like, if that makes it a copy."""
        copies, best, known = _copies(text, policy), (False, False, False, False, 0.0, 0.0), self.find(url)
        found: set[tuple[int, bool]] = set()
        for earlier in self.candidates(url):
            if not copies(earlier):
                continue
            comparison = compared(text, earlier.text)
            older = known is not None and known.is_delivered and _is_older(earlier, known)
            alike = comparison.similarity
            rank = older, comparison.duplicate, alike >= 0.9, earlier.leads, alike, comparison.containment
            if rank > best:
                found, best = set(), rank
            if rank == best:
                found.add((earlier.original, comparison.similarity < 0.9 and earlier.is_original))
        return frozenset(found)

    def candidates(self, url: str) -> list[Known]:
        """The pages of other URLs whose group somebody else stands for."""
        return [one for one in self.pages.values() if one.url != url and self.standing(one.original, besides=url)]

    def keeps_its_place(self, url: str, original: int) -> int:
        """The id of what is known of a URL, if it stays though the page is now a copy of this one, and dropped."""
        known = self.find(url)
        if known is None or not (known.is_delivered or known.original == original):
            return 0
        return known.id

    def copies_of(self, gone: Iterable[int]) -> list[int]:
        ids = set(gone)
        return [page.id for page in self.pages.values() if page.original in ids and page.original != page.id]


def _is_older(earlier: Known, delivered: Known) -> bool:
    """Whether a text was there before a delivered page; of one that was delivered as a copy the URLs count."""
    return (earlier.id if delivered.is_original or delivered.leads else earlier.age) < delivered.age


def _holds_nearly_all(new: Text, old: Text) -> bool:
    found, ours, theirs = compared(new, old), length(new), length(old)
    by_similarity = found.similarity * (ours + theirs) / (1 + found.similarity)
    return max(by_similarity, found.containment * min(ours, theirs)) >= 0.9 * theirs


def _copies(text: Text, policy: Policy) -> Callable[[Known], bool]:
    """Whether a text is a copy of that of an earlier page: by a variant only if it is much like it."""

    def is_copy(earlier: Known) -> bool:
        if not earlier.is_filed or not shares_keys(text, earlier.text):
            return False
        comparison = compared(text, earlier.text)
        may_decide = earlier.is_original or earlier.leads or comparison.certain
        return comparison.is_copy(policy.also_copies) and may_decide

    return is_copy


def copies_of_each_other(pages: Iterable[Known]) -> Set[tuple[str, str]]:
    """The originals of different URLs whose later one is a copy of the earlier one, and was not kept all the same."""
    originals = sorted((page for page in pages if page.is_original), key=lambda page: page.id)
    return {
        (earlier.url, later.url)
        for at, later in enumerate(originals)
        for earlier in originals[:at]
        if earlier.url != later.url and not later.is_kept_as_original and _copies(later.text, Policy())(earlier)
    }
