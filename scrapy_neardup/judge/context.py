"""The settings that decide, the page that is judged, and the questions that a rule may ask."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from scrapy_neardup.errors import AnyReason
from scrapy_neardup.judge.in_flight import InFlight, Reservation
from scrapy_neardup.judge.lists import ManualKind, find_manual_verdict
from scrapy_neardup.judge.matching import SearchResult, SimilarPage, search, without_overused_keys
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Fingerprint, Kind, Match, Outcome, Page, Verdict
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Keep, Record
from scrapy_neardup.text.sentences import why_unjudged

#: The values of NEARDUP_KEEP_POLICY beside a list of hosts.
FIRST, LONGEST, CANONICAL = POLICIES = ("first", "longest", "canonical")
#: A value of that setting.
KeepPolicy = str | tuple[str, ...]
#: Comparisons of pages with the same source, and with a page of a former recipe.
SAME_SOURCE = Comparison(1.0, 1.0, duplicate=True, certain=True, identical=True)
NOT_COMPARED = Comparison(0.0, 0.0, duplicate=True, certain=False, identical=False)


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings that decide verdicts beside the method, and how much the state keeps of a page."""

    #: Letters and digits that a text needs to be judged.
    min_letters: int = 40
    #: Kinds that count as duplicates though the method does not call them so.
    also_copies: Set[Kind] = frozenset()
    #: Whether the item of a page with this verdict passes. By default no copy does.
    passes: Callable[[Verdict], bool] = lambda verdict: not verdict.is_copy
    #: How much the state keeps for later questions.
    keep: Keep = Keep.NOTHING
    #: Which copies take the place of the first page of their group: see ``groups.is_better``.
    keep_policy: KeepPolicy = FIRST

    @property
    def prefers_first(self) -> bool:
        """Whether no copy takes the place of an earlier page."""
        return self.keep_policy == FIRST

    def why_unjudged(self, text: str) -> AnyReason:
        """Why a text cannot be judged; empty if it can."""
        return why_unjudged(text, self.min_letters)

    def rules(self) -> dict[str, Any]:
        """The values that decide the verdict on a known text, as plain data.

        States keep digests of it: pages judged by other rules are read and compared once more. The order matters.
        """
        return {"min_letters": self.min_letters, "also_copies": sorted(self.also_copies)}


class CrawlContext:
    """What stays the same for all pages of a crawl."""

    def __init__(self, method: Method, store: PageStore, policy: Policy, generation: int) -> None:
        """``generation`` names the crawl: the time at which it began, in nanoseconds since 1970."""
        self.method = method = method.with_hashes(store.hashes)
        self.store = store
        self.policy = policy
        self.generation = generation
        #: Whether there are manual verdicts, or another process may give one meanwhile. False saves look-ups.
        self.has_manual_verdicts = store.is_shared or next(store.rows(b"n"), None) is not None
        #: Whether the state keeps a list of dropped pages.
        self.lists_drops = store.is_persistent and policy.keep is not Keep.NOTHING
        #: The method and all settings that decide, as text to be hashed: see ``rules.drop_hashes``.
        self.settings_text = json.dumps((method.recipe(), method.decisions(), *policy.rules().values()), sort_keys=True)

    def shared(self, page: Page, sketch: bytes) -> tuple[Any, ...]:
        """``Match.shared`` of a page and an earlier one with this sketch."""
        return self.method.shared(page, sketch)


class Context:
    """A page that is judged, and what the state knows of it.

    The record of its URL and the manual verdict on it are read at once. Any other look-up is made when a rule first
    needs it, and once only.
    """

    def __init__(
        self,
        crawl: CrawlContext,
        page: Page,
        fingerprint: Fingerprint | None,
        in_flight: InFlight,
        given_up: Collection[Reservation],
    ) -> None:
        """``fingerprint``: None if the page is compared with no other.

        ``given_up``: pages in flight that took too long. This page no longer waits for them.
        """
        self.crawl = crawl
        self.method = crawl.method
        self.store = crawl.store
        self.policy = crawl.policy
        self.in_flight = in_flight
        self.page = page
        self.is_compared = fingerprint is not None
        self.fingerprint = fingerprint or Fingerprint((), b"")
        self.given_up = given_up
        #: The newest record of the URL.
        self.known: Record | None = crawl.store.find(page.url)
        #: The manual verdict on the URL.
        self.manual_verdict = find_manual_verdict(crawl.store, page.url) if crawl.has_manual_verdicts else None

    def first(self, in_flight: Iterable[Reservation]) -> Reservation | None:
        """The first of these pages in flight that was not given up."""
        for one in in_flight:
            if one not in self.given_up:
                return one
        return None

    @property
    def same_url_in_flight(self) -> Reservation | None:
        """Another version of the page, in flight."""
        return self.first(self.in_flight.under(self.page.url))

    @property
    def person_says_keep(self) -> bool:
        """Whether a manual verdict says that the page is no copy."""
        return self.manual_verdict is not None and self.manual_verdict.kind is ManualKind.KEEP

    @property
    def why_unjudged(self) -> AnyReason:
        """Why the text cannot be judged; empty if it can."""
        return self.page.unread or self.policy.why_unjudged(self.page.text)

    # The earlier versions of the page.

    @property
    def delivered(self) -> Record | None:
        """The known record if its text was delivered."""
        known = self.known
        return known if known is not None and known.is_delivered else None

    @cached_property
    def known_comparison(self) -> Comparison:
        """The page compared with the known record, which has a sketch."""
        assert self.known is not None
        return self.method.compare(self.fingerprint, self.known.sketch, frozenset())

    @cached_property
    def is_minor_update(self) -> bool:
        """Whether only a few letters differ from the delivered version of the page."""
        known = self.delivered
        return known is not None and not known.former and self.method.is_minor_update(self.fingerprint, known.sketch)

    @property
    def previous(self) -> Match | None:
        """The version of the page that this one updates: the delivered one; None if none was delivered.

        A record of a former recipe always counts, though it cannot be compared: such a page is updated unless it is a
        copy. ``migrate`` promises that, also for a copy that was dropped.
        """
        known = self.known
        if known is None or not (known.former or known.is_delivered):
            return None
        return self.match(SimilarPage(NOT_COMPARED if known.former else self.known_comparison, known, known))

    # Earlier pages.

    @cached_property
    def search_result(self) -> SearchResult:
        """The page's overused keys, and the most similar earlier page."""
        page, fingerprint = self.page, self.fingerprint
        known = page.url, fingerprint, page.canonical, self.delivered, self.policy.also_copies
        return search(self.method, self.store, *known, lambda: self.in_flight.sharing(fingerprint))

    @property
    def filed(self) -> Fingerprint:
        """The fingerprint that is filed: without overused keys, and with ``in_form``."""
        filed = without_overused_keys(self.fingerprint, self.search_result.overused_keys)
        return replace(filed, in_form=True) if self.search_result.in_form else filed

    def compare(self, earlier: Record) -> Comparison:
        """Compare the page with an earlier one as the search did, which knew of forms."""
        return self.method.compare(self.filed, earlier.sketch, self.search_result.overused_keys)

    # The parts of a ruling.

    def match(self, similar: SimilarPage) -> Match:
        """The match with the page that decides: the id of its group, and the sentences that both pages hold."""
        comparison, leader, compared = similar.comparison, similar.leader, similar.compared
        has_texts = self.page.text and compared.sketch and not compared.is_unjudged
        shared = self.crawl.shared(self.page, compared.sketch) if has_texts else ()
        similarity, containment = comparison.similarity, comparison.containment
        return Match(leader.group, leader.url, leader.first_seen, similarity, containment, shared)

    def verdict(self, outcome: Outcome, id: int = 0, match: Match | None = None, **more: Any) -> Verdict:
        """A verdict on the page; ``more``: other fields of it."""
        return Verdict(outcome, self.page.url, id, match, reader=self.page.reader, **more)
