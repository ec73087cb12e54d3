"""The way of a page that can be judged: its own URL, what was said of it, earlier pages, pages on their way.

Of nearly every page that comes nothing is known at its URL, nobody has said anything of it, and no earlier page is like
it: each of these is asked for once, and whoever rules on the others is called for them alone.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from scrapy_neardup.judging.by_hand import ByHand
from scrapy_neardup.judging.by_mark import ByMark
from scrapy_neardup.judging.copies import Copies
from scrapy_neardup.judging.groups import Groups
from scrapy_neardup.judging.judgements import Judgements, Said
from scrapy_neardup.judging.matching import Found, Matching, has_a_say, telling, with_telling
from scrapy_neardup.judging.preference import Contender
from scrapy_neardup.judging.registrar import Registrar
from scrapy_neardup.judging.reservations import Blocked, Reservation, Ruled, Ruling
from scrapy_neardup.judging.same_url import SameUrl
from scrapy_neardup.judging.succession import Standing, Succession
from scrapy_neardup.model import Fingerprint, Kind, Likeness, Match, Page, Verdict
from scrapy_neardup.stores import Record


class ByText:
    """Rules on pages by their fingerprints; ``min_letters``: what a text needs to be judged."""

    def __init__(
        self,
        registrar: Registrar,
        matching: Matching,
        by_mark: ByMark,
        same_url: SameUrl,
        copies: Copies,
        succession: Succession,
        judgements: Judgements,
        also_copies: Set[Likeness],
        min_letters: int,
    ) -> None:
        self._registrar = registrar
        self._store = registrar.store
        self._in_flight = registrar.in_flight
        self._matching = matching
        self._by_mark = by_mark
        self._same_url = same_url
        self._copies = copies
        self._succession = succession
        self._judgements = judgements
        self._by_hand = ByHand(registrar, matching, copies)
        self._groups = Groups(registrar)
        self._also_copies = also_copies
        self._min_letters = min_letters

    def ruling(self, page: Page, fingerprint: Fingerprint) -> Ruling:
        """The ruling on a page, and the reservation if it passes and is new. Raises StoreError."""
        if (twin := self._in_flight.of_url(page.url)) is not None:
            return Blocked(twin)
        known, before = self._store.find(page.url), None
        if known is not None:
            ruled, before = self._same_url.ruling(page, fingerprint, known)
            if ruled is not None:
                return ruled
        said = self._judgements.of(page.url)
        if said is not None and (ruling := self._by_hand.ruling(said, page, known, fingerprint)) is not None:
            return ruling
        is_kept = said is not None and said.said is Said.KEEP
        if reason := fingerprint.why_unjudged(self._min_letters):
            returned = None if known is None or is_kept else self._copies.returned(page, known, fingerprint)
            return returned or self._by_mark.ruling(page, Verdict(Kind.UNJUDGED, page.url, reason=reason))
        delivered = known if known is not None and known.is_delivered else None
        common, best, in_form = self._matching.best(page.url, fingerprint, page.canonical, delivered)
        if in_form != fingerprint.in_form:
            fingerprint = replace(fingerprint, in_form=in_form)
        is_copy = best is not None and best.comparison.is_copy(self._also_copies)
        if not is_kept:
            if best is not None and is_copy:
                return self._copy(page, fingerprint, known, before, best, common)
            if known is not None and (ruled := self._copies.returned(page, known, fingerprint)) is not None:
                return ruled
            if self._in_flight and (twin := self._twin(fingerprint, common)) is not None:
                return Blocked(twin)
        return self._passed(
            page, fingerprint, known, before, best, common, is_copy=is_copy, by_hand=is_kept and is_copy
        )

    def _copy(
        self,
        page: Page,
        fingerprint: Fingerprint,
        known: Record | None,
        before: Match | None,
        best: Found,
        common: frozenset[int],
    ) -> Ruling:
        """The ruling on a copy of ``best.original``; ``before``: what was at its URL, if that was delivered."""
        role = self._succession.role(Contender(page, fingerprint), known, best, common)
        filed = with_telling(fingerprint, common)
        if role is Standing.COPY:
            return self._copies.ruling(page, best, known, filed)
        if role is Standing.ORIGINAL:
            return self._passed(page, fingerprint, known, before, best, common, is_copy=True)
        return self._groups.ruling(role, page, best, known, filed, before)

    def _twin(self, fingerprint: Fingerprint, common: frozenset[int]) -> Reservation | None:
        """A page of which this one is a copy, and whose item has not arrived yet."""
        for twin in self._in_flight.sharing(fingerprint):
            comparison = self._registrar.method.compare(fingerprint, twin.record.sketch, common)
            if has_a_say(twin.record, comparison) and comparison.is_copy(self._also_copies):
                return twin
        return None

    def _passed(
        self,
        page: Page,
        fingerprint: Fingerprint,
        known: Record | None,
        before: Match | None,
        best: Found | None,
        common: frozenset[int],
        *,
        is_copy: bool,
        by_hand: bool = False,
    ) -> Ruled:
        """The ruling on a page that is an original from now on, whatever it is like.

        ``is_copy``: the method calls it a copy; then the policy must not drop it for its likeness.
        """
        kind, match, likeness = Kind.UNIQUE, None, None
        if before is not None:
            kind, match = Kind.UPDATED, before
        elif best is not None:
            match, likeness = self._registrar.match(page, best), None if is_copy else best.comparison.likeness
        id = self._store.new_id()
        verdict = Verdict(kind, page.url, id, match, likeness=likeness, by_hand=by_hand)
        keys = telling(fingerprint.keys, common) if common else fingerprint.keys
        record = Record(id, page.url, id, 1.0, keys, fingerprint.sketch, body=page.body)
        return self._registrar.reserve(page, verdict, record, fingerprint, known)
