"""The page that is judged, with all that a rule may ask."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scrapy_neardup.errors import AnyReason
from scrapy_neardup.judge.in_flight import InFlight, Reservation
from scrapy_neardup.judge.manual_verdicts import ManualKind, ManualVerdict, find_manual_verdict
from scrapy_neardup.judge.matching import Searcher, SearchResult, SimilarPage
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
    searcher: Searcher
    #: False saves a look-up for each page.
    has_manual_verdicts: bool
    #: Whether the state keeps a list of dropped pages.
    lists_drops: bool
    #: The method and all settings that decide, as text to be hashed: see ``copies.drop_mark``.
    settings_text: str


class Context:
    """A page that is judged, and what the state knows of it.

    The record of its URL and the manual verdict on it are read at once. Any other look-up is made when a rule first
    needs it, and once only.
    """

    def __init__(
        self,
        crawl: CrawlContext,
        in_flight: InFlight,
        given_up: Collection[Reservation],
        page: Page,
        fingerprint: Fingerprint = NO_FINGERPRINT,
        reason: AnyReason = "",
    ) -> None:
        """``given_up``: pages in flight that took too long. This page no longer waits for them.

        ``reason``: why the text cannot be judged.
        """
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
    def same_url_in_flight(self) -> Reservation | None:
        """Another version of the page, in flight."""
        found = self.in_flight.at_url(self.page.url)
        return self.first(found) if found else None

    @lazy
    def content_hashes(self) -> str:
        """The hashes of title and text."""
        hashes = self.method.hashes
        return f"{hashes.of(self.page.title)} {hashes.of(self.page.text)}"

    # The earlier versions of the page.

    @lazy
    def known_comparison(self) -> Comparison:
        """The page compared with the known record, which has a sketch."""
        assert self.known is not None
        return self.method.compare(self.fingerprint, self.known.sketch, frozenset())

    @property
    def previous(self) -> Match | None:
        """The version of the page that this one updates: the delivered one; None if none was delivered.

        A record of a former recipe always counts, though it cannot be compared: such a page is updated unless it is a
        copy. ``migrate`` promises that, also for a copy that was dropped.
        """
        known = self.known
        if known is None:
            return None
        if known.former:
            return match_with(known, similarity=0.0, containment=0.0)
        if not known.is_delivered:
            return None
        return self.match(SimilarPage(comparison=self.known_comparison, original=known, compared=known))

    @lazy
    def is_minor_update(self) -> bool:
        """Whether only a few letters differ from the delivered version of the page."""
        known = self.known
        if known is None or known.former or not known.is_delivered:
            return False
        return self.method.is_minor_update(self.fingerprint, known.sketch)

    @property
    def kind_of_update(self) -> Kind:
        """The verdict on a new version that passes."""
        return Kind.MINOR_UPDATE if self.is_minor_update else Kind.UPDATED

    @property
    def person_says_keep(self) -> bool:
        """Whether a manual verdict says that the page is no copy."""
        return self.manual_verdict is not None and self.manual_verdict.kind is ManualKind.KEEP

    # Earlier pages.

    @lazy
    def search_result(self) -> SearchResult:
        """The earlier page that this one is most like, and the keys of this one that too many pages have."""
        known, page = self.known, self.page
        delivered = known if known is not None and known.is_delivered else None
        return self.crawl.searcher.search(page.url, self.fingerprint, page.canonical, delivered)

    @property
    def filed_fingerprint(self) -> Fingerprint:
        """The fingerprint, marked if the page looks like others of its site under another title."""
        return replace(self.fingerprint, in_form=True) if self.search_result.in_form else self.fingerprint

    def counts_as_copy(self, comparison: Comparison) -> bool:
        """Whether a comparison makes the page a copy, by the method or because its kind counts as one (``Policy``)."""
        return comparison.is_copy(self.policy.also_copies)

    # What rules are made of.

    def match(self, similar: SimilarPage) -> Match:
        """An earlier page as the one that decides, with the sentences that both hold."""
        return match_with(
            similar.original,
            similarity=similar.comparison.similarity,
            containment=similar.comparison.containment,
            shared=self.method.shared(self.page, similar.compared.sketch) if self.page.text else (),
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
        return Verdict(
            kind=kind,
            url=self.page.url,
            id=id,
            match=match,
            reason=reason,
            likeness=likeness,
            reader=self.page.reader,
            group=group,
            by_hand=by_hand,
        )


def match_with(original: Record, *, similarity: float, containment: float, shared: tuple[str, ...] = ()) -> Match:
    """An earlier page as the one that decides. The match has the id of its group, which all pages of the group show."""
    return Match(
        id=original.group,
        url=original.url,
        first_seen=original.first_seen,
        similarity=similarity,
        containment=containment,
        shared=shared,
    )
