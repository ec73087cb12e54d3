"""The page that is judged, and the questions that a rule may ask."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cached_property

from scrapy_neardup.errors import AnyReason
from scrapy_neardup.judge.in_flight import InFlight, Reservation
from scrapy_neardup.judge.manual_verdicts import ManualKind, find_manual_verdict, may_have_manual_verdicts
from scrapy_neardup.judge.matching import (
    Candidates,
    SearchResult,
    SimilarPage,
    candidates,
    search,
    without_overused_keys,
)
from scrapy_neardup.judge.policy import Policy
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Fingerprint, Kind, Likeness, Match, Page, Verdict
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Keep, Record
from scrapy_neardup.text.sentences import why_unjudged


class CrawlContext:
    """What stays the same for all pages of a crawl."""

    def __init__(self, method: Method, store: PageStore, policy: Policy, generation: int) -> None:
        """``generation`` names the crawl: the time at which it began, in nanoseconds since 1970."""
        self.method = method = method.with_hashes(store.hashes)
        self.store = store
        self.policy = policy
        self.generation = generation
        #: False saves a look-up for each page.
        self.has_manual_verdicts = may_have_manual_verdicts(store)
        #: Whether the state keeps a list of dropped pages.
        self.lists_drops = store.is_persistent and policy.keep is not Keep.NOTHING
        #: The method and all settings that decide, as text to be hashed: see ``copies.drop_mark``.
        self.settings_text = json.dumps((method.recipe(), method.decisions(), *policy.rules().values()), sort_keys=True)


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
        return self.page.unread or why_unjudged(self.page.text, self.policy.min_letters)

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
        if known is not None and known.former:
            return match_with(known, similarity=0.0, containment=0.0)
        if known is None or not known.is_delivered:
            return None
        return self.match(SimilarPage(self.known_comparison, known, known))

    @property
    def kind_of_update(self) -> Kind:
        """The verdict on a new version that passes."""
        return Kind.MINOR_UPDATE if self.is_minor_update else Kind.UPDATED

    # Earlier pages.

    @cached_property
    def candidates(self) -> Candidates:
        """The earlier pages that share keys with the page, and its overused keys."""
        return candidates(self.method, self.store, self.fingerprint.keys)

    @cached_property
    def search_result(self) -> SearchResult:
        """The most similar earlier page."""
        page, given = self.page, (self.delivered, self.policy.also_copies)
        return search(self.method, self.store, page.url, self.fingerprint, self.candidates, page.canonical, *given)

    def filed_fingerprint(self, *, in_form: bool) -> Fingerprint:
        """The fingerprint that is filed: without overused keys, and with the mark ``in_form``."""
        filed = without_overused_keys(self.fingerprint, self.candidates.overused_keys)
        return replace(filed, in_form=True) if in_form else filed

    def counts_as_copy(self, comparison: Comparison) -> bool:
        """Whether a comparison makes the page a copy, by the method or because its kind counts as one (``Policy``)."""
        return comparison.is_copy(self.policy.also_copies)

    # The parts of a ruling.

    def match(self, similar: SimilarPage) -> Match:
        """The match with the page that decides, and the sentences that both pages hold."""
        comparison, sketch = similar.comparison, similar.compared.sketch
        shared = self.method.shared(self.page, sketch) if self.page.text and sketch else ()
        return match_with(
            similar.leader, similarity=comparison.similarity, containment=comparison.containment, shared=shared
        )

    def verdict(
        self,
        kind: Kind,
        id: int = 0,
        match: Match | None = None,
        reason: AnyReason = "",
        likeness: Likeness | None = None,
        *,
        group: int = 0,
        by_hand: bool = False,
    ) -> Verdict:
        """A verdict on the page."""
        page = self.page
        return Verdict(kind, page.url, id, match, reason, likeness, page.reader, group, by_hand)


def match_with(original: Record, *, similarity: float, containment: float, shared: tuple[str, ...] = ()) -> Match:
    """The match with the page that decides. It has the id of the group, which all pages of the group show."""
    return Match(original.group, original.url, original.first_seen, similarity, containment, shared)
