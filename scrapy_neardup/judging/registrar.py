"""What every ruling ends in: a page that passes is on its way, and of one that is dropped it is noted for what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from scrapy_neardup.judging.drops import Drops
from scrapy_neardup.judging.matching import Found
from scrapy_neardup.judging.preference import Contender, Preference
from scrapy_neardup.judging.reservations import InFlight, Reservation, Ruled
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Likeness, Match, Page, Verdict
from scrapy_neardup.stores import Keep, Record, Store, evidence
from scrapy_neardup.stores.changes import Row


@dataclass(frozen=True, slots=True)
class Registrar:
    """For one crawl: its method on its store, whose item ``passes`` though it is a duplicate, and what is kept."""

    method: Method
    store: Store
    in_flight: InFlight
    passes: Callable[[Verdict], bool]
    keep: Keep
    preference: Preference | None
    drops: Drops | None

    def match(self, page: Page, found: Found) -> Match:
        """An earlier page as the one that decides, with what both say."""
        return Match(
            found.original.group,
            found.original.url,
            found.original.first_seen,
            found.comparison.similarity,
            found.comparison.containment,
            self.method.shared(page, found.compared.sketch) if page.text else (),
        )

    def reserve(
        self,
        page: Page,
        verdict: Verdict,
        record: Record,
        fingerprint: Fingerprint,
        known: Record | None,
        found: tuple[Likeness | None, Match | None] | None = None,
        of: tuple[Record, ...] = (),
    ) -> Ruled:
        """The page passes and is new to the state, or another version of ``known``: it is on its way from now on.

        ``found``: how it is like which page, where the verdict does not say that. ``of``: what it is a copy of.
        """
        if known is not None and known.is_delivered:
            record = replace(record, since=known.age)
        likeness, match = found or (verdict.likeness, verdict.match)
        kept = evidence(page, likeness, match, copy=record.original != record.id, keep=self.keep)
        if self.preference is not None and record.keys:
            kept = self.preference.weighed(Contender(page, fingerprint), kept, self.method)
        reservation = Reservation(verdict, fingerprint, record, kept, page.site, known.id if known else 0, of)
        self.in_flight.add(reservation)
        return Ruled(verdict, reservation)

    def drop(self, id: int, page: Page, match: Match, likeness: Likeness | None) -> tuple[Row, ...]:
        """What tells later that the page was dropped, if that is kept: to be written with what is known of it."""
        return self.drops.rows(id, page.url, match, likeness) if self.drops is not None else ()
