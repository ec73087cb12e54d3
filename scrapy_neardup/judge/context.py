"""The page that is judged, with all that a rule may ask."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scrapy_neardup.errors import AnyReason
from scrapy_neardup.judge.drops import Drops
from scrapy_neardup.judge.former import FormerMatch, FormerMethods
from scrapy_neardup.judge.in_flight import InFlight, Reservation
from scrapy_neardup.judge.manual_verdicts import ManualKind, ManualVerdict, find_manual_verdict
from scrapy_neardup.judge.matching import Found, Matched, Matching
from scrapy_neardup.judge.policy import Policy
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Fingerprint, Kind, Likeness, Match, Page, Verdict
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record

if TYPE_CHECKING:
    from functools import cached_property as lazy
else:

    class lazy:  # noqa: N801  # it is used as a decorator
        """``cached_property`` without its lock, which takes longer than most look-ups before Python 3.12."""

        def __init__(self, function):
            self._function = function
            self._name = function.__name__

        def __get__(self, instance, owner=None):
            value = instance.__dict__[self._name] = self._function(instance)
            return value


#: Of a page that is compared with no other.
NO_FINGERPRINT = Fingerprint((), b"")


@dataclass(frozen=True, slots=True)
class CrawlContext:
    """What stays the same for all pages of a crawl."""

    method: Method
    store: PageStore
    policy: Policy
    #: The id of the crawl: the time at which it began, in nanoseconds since 1970.
    generation: int
    matching: Matching
    former_methods: FormerMethods
    #: False saves a look-up for each page.
    has_manual_verdicts: bool
    #: The list of dropped pages, if the state keeps one.
    drops: Drops | None
    #: A digest input: the method and the values by which it decides, see ``copies.drop_mark``.
    rules: str


class Context:
    """A page that is judged. Each look-up in the state is made at most once, and only when a rule needs it."""

    def __init__(
        self,
        crawl: CrawlContext,
        in_flight: InFlight,
        given_up: Collection[Reservation],
        page: Page,
        fingerprint: Fingerprint = NO_FINGERPRINT,
        reason: AnyReason = "",
    ) -> None:
        """``given_up``: pages in flight that do not block this one. ``reason``: why the text cannot be judged."""
        self.crawl = crawl
        self.method = crawl.method
        self.store = crawl.store
        self.policy = crawl.policy
        self.in_flight = in_flight
        self.page = page
        #: The newest record of the URL.
        self.known: Record | None = crawl.store.find(page.url)
        #: The manual verdict on the URL.
        self.manual_verdict: ManualVerdict | None = (
            find_manual_verdict(crawl.store, page.url) if crawl.has_manual_verdicts else None
        )
        self.fingerprint = fingerprint
        self.reason = reason
        self._given_up = given_up

    def with_page(self, page: Page, fingerprint: Fingerprint) -> Context:
        """The context of another page that is judged at the same moment."""
        return Context(self.crawl, self.in_flight, self._given_up, page, fingerprint)

    def first(self, in_flight: Iterable[Reservation]) -> Reservation | None:
        """The first of these pages in flight that was not given up."""
        return next((one for one in in_flight if one not in self._given_up), None)

    @property
    def same_url(self) -> Reservation | None:
        """Another version of the page, in flight."""
        return self.first(self.in_flight.at_url(self.page.url))

    # The earlier versions of the page.

    @lazy
    def former(self) -> FormerMatch | None:
        """The page compared, by a former method, with the known page of a former recipe."""
        return self.crawl.former_methods.compare(self.page, self.known)

    @lazy
    def known_comparison(self) -> Comparison:
        """The page compared with the known record, which has a sketch."""
        assert self.known is not None
        return self.method.compare(self.fingerprint, self.known.sketch, frozenset())

    @property
    def previous(self) -> Match | None:
        """The version of the page that was delivered last; None if none was."""
        known = self.known
        if known is None:
            return None
        if known.former:
            found = self.former.comparison if self.former else None
            alike = (found.similarity, found.containment) if found else (0.0, 0.0)
            return Match(known.id, known.url, known.first_seen, *alike)
        return self.match(Found(self.known_comparison, known, known)) if known.is_delivered else None

    @property
    def is_no_copy(self) -> bool:
        """Whether a person said that the page is no copy."""
        return self.manual_verdict is not None and self.manual_verdict.kind is ManualKind.KEEP

    # Earlier pages.

    @lazy
    def matched(self) -> Matched:
        """The earlier page that this one is most like."""
        known, page = self.known, self.page
        delivered = known if known is not None and known.is_delivered else None
        return self.crawl.matching.best(page.url, self.fingerprint, page.canonical, delivered)

    @property
    def filed_fingerprint(self) -> Fingerprint:
        """The fingerprint, marked if the page looks like others of its site under another title."""
        return replace(self.fingerprint, in_form=True) if self.matched.in_form else self.fingerprint

    def is_copy(self, comparison: Comparison) -> bool:
        """Whether a comparison makes the page a copy."""
        return comparison.is_copy(self.policy.also_copies)

    # What rules are made of.

    def match(self, found: Found) -> Match:
        """An earlier page as the one that decides, with the sentences that both hold."""
        original, comparison = found.original, found.comparison
        return Match(
            original.group,
            original.url,
            original.first_seen,
            comparison.similarity,
            comparison.containment,
            self.method.shared(self.page, found.compared.sketch) if self.page.text else (),
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
        return Verdict(kind, self.page.url, id, match, reason, likeness, self.page.reader, group, by_hand)
