"""A page that somebody has called a copy is one, as long as its original is there: see ``judgements``."""

from __future__ import annotations

from scrapy_neardup.judging.copies import Copies
from scrapy_neardup.judging.judgements import Opinion, Said, by_hand, original_at
from scrapy_neardup.judging.matching import Found, Matching, with_telling
from scrapy_neardup.judging.registrar import Registrar
from scrapy_neardup.judging.reservations import Blocked, Ruling
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.stores import Record


class ByHand:
    """Rules on copies by hand."""

    def __init__(self, registrar: Registrar, matching: Matching, copies: Copies) -> None:
        self._registrar = registrar
        self._matching = matching
        self._copies = copies

    def ruling(self, said: Opinion, page: Page, known: Record | None, fingerprint: Fingerprint) -> Ruling | None:
        """None for a page of which nothing was said that decides; it waits for an original that is on its way."""
        if said.said is not Said.COPY:
            return None
        original = original_at(self._registrar.store, said.other, page.url)
        if original is None:
            twin = self._registrar.in_flight.of_url(said.other)
            return Blocked(twin) if twin is not None else None
        common = self._matching.common(fingerprint)
        filed = with_telling(fingerprint, common)
        found = Found(by_hand(self._registrar.method.compare(fingerprint, original.sketch, common)), original, original)
        return self._copies.ruling(page, found, known, filed, said=True)
