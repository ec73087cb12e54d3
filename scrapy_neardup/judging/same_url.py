"""What was at the URL of a page decides first: it is unchanged, or is updated unless it has become a copy."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from scrapy_neardup.judging.former import AsFormerly, Former
from scrapy_neardup.judging.matching import Found, Matching
from scrapy_neardup.judging.registrar import Registrar
from scrapy_neardup.judging.reservations import Ruled
from scrapy_neardup.model import Comparison, Fingerprint, Kind, Likeness, Match, Page, Verdict
from scrapy_neardup.stores import Record, stands_for, with_first


class SameUrl:
    """Rules on pages that were delivered before, by this recipe or a former one."""

    def __init__(self, registrar: Registrar, matching: Matching, also_copies: Set[Likeness]) -> None:
        self._registrar = registrar
        self._former = Former(registrar.store)
        self._as_formerly = AsFormerly(registrar, matching, also_copies)

    def ruling(self, page: Page, fingerprint: Fingerprint, known: Record) -> tuple[Ruled | None, Match | None]:
        """The ruling on a page that is what was at its URL; else what that was, if it was delivered."""
        if formerly := self._former.of(page, known):
            ruled = self._as_formerly.ruling(page, fingerprint, known, formerly)
            if ruled is not None:
                return ruled, None
        if known.former:
            return None, self._as_formerly.before(known, formerly)
        if not known.is_delivered:
            return None, None
        registrar = self._registrar
        comparison = registrar.method.compare(fingerprint, known.sketch, frozenset())
        if not comparison.identical:
            return None, registrar.match(page, Found(comparison, known, known))
        return Ruled(self.unchanged(page, known, comparison)), None

    def unchanged(self, page: Page, known: Record, comparison: Comparison) -> Verdict:
        """The verdict on a page that says what it said; from now on it is known by the bytes that it has now."""
        store = self._registrar.store
        original = stands_for(store, known) or known
        renewed = replace(known, body=page.body or known.body)
        store.touch(known, of=with_first(store, original), renewed=renewed)
        same = self._registrar.match(page, Found(comparison, original, known))
        return Verdict(Kind.UNCHANGED, page.url, known.id, same)
