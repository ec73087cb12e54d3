"""A page whose very bytes were judged before need not be read: what is known of them is what it would say.

The verdict is the one that reading and comparing would give. So whatever could make a difference has the page read: an
opinion by hand, a preference that looks at texts, a page that was delivered and has other bytes now, boilerplate that
was none before, and anything of which too little is kept. What may differ is by what a copy is told: of several pages
with one text the one with its bytes is named, and of a copy that comes again how it was alike then.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from scrapy_neardup.judging.by_mark import ByMark
from scrapy_neardup.judging.copies import Copies
from scrapy_neardup.judging.judgements import Judgements
from scrapy_neardup.judging.matching import Found, has_a_say
from scrapy_neardup.judging.preference import Contender
from scrapy_neardup.judging.registrar import Registrar
from scrapy_neardup.judging.reservations import Blocked, Ruled, Ruling
from scrapy_neardup.judging.same_url import SameUrl
from scrapy_neardup.judging.succession import Standing, Succession
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Fingerprint, Kind, Likeness, Page, Verdict
from scrapy_neardup.stores import Keep, Record, stands_for, with_first
from scrapy_neardup.stores.evidence import kept_page


class ByBytes:
    """Rules on pages by the digest of their bytes (see ``page/bodies``); whatever it rules, the page was not read."""

    def __init__(
        self,
        registrar: Registrar,
        by_mark: ByMark,
        same_url: SameUrl,
        copies: Copies,
        succession: Succession,
        judgements: Judgements,
        also_copies: Set[Likeness],
    ) -> None:
        self._registrar = registrar
        self._method: Method = registrar.method
        self._store = registrar.store
        self._in_flight = registrar.in_flight
        self._by_mark = by_mark
        self._same_url = same_url
        self._copies = copies
        self._succession = succession
        self._judgements = judgements
        self._also_copies = also_copies

    def may_know(self, url: str, body: int) -> bool:
        """Whether such bytes have been judged, or are on their way: then a page need not be read at once."""
        if not body:
            return False
        known = self._store.find(url)
        return (
            (known is not None and known.body == body)
            or self._in_flight.of_body(body) is not None
            or self._store.by_body(body) is not None
        )

    def ruling(self, url: str, site: str, body: int) -> Ruling | None:
        """The ruling on a page of these bytes; None if it has to be read."""
        if (twin := self._in_flight.of_url(url)) is not None:
            return Blocked(twin) if twin.record.body == body else None
        known = self._store.find(url)
        page = Page(url, site=site, body=body)
        ruled = self._again(page, known) if known is not None and known.body == body else None
        if ruled is not None:
            return ruled
        if known is not None and (known.is_delivered or known.former or known.body == body):
            return None  # what it was, and what becomes of that, is told by its text
        return self._elsewhere(page, known)

    def _again(self, page: Page, known: Record) -> Ruled | None:
        """The same URL has the same bytes again."""
        if known.is_delivered:
            comparison = self._method.compare(Fingerprint((), known.sketch), known.sketch, frozenset())
            if not comparison.identical:
                return None
            return _by_bytes(self._same_url.unchanged(page, known, comparison), page)
        if self._judgements.of(page.url) is not None:
            return None
        if known.original == known.id:  # too little or too much to be judged
            return _by_bytes(self._by_mark.unchanged(page, known), page)
        return self._dropped_again(page, known)

    def _dropped_again(self, page: Page, known: Record) -> Ruled | None:
        """The page that was dropped at this URL comes once more, and what it is a copy of is there."""
        original = self._original(page, known)
        told = self._store.evidence(known.id)
        if self._succession.preference is not None or original is None or not original.sketch:
            return None
        if told is None or not told.likeness:
            return None
        likeness = Likeness(told.likeness)
        found = Comparison(told.similarity, told.containment, True, False, False)
        match = replace(self._registrar.match(page, Found(found, original, original)), shared=told.shared)
        verdict = Verdict(Kind.DUPLICATE, page.url, known.id, match, likeness=likeness)
        if self._registrar.passes(verdict):
            return None  # it is to be delivered, and so to be known by its text
        along = self._registrar.drop(self._store.new_id(), page, match, likeness)
        self._store.touch(known, of=with_first(self._store, original), along=along)
        return _by_bytes(verdict, replace(page, title=told.title))

    def _elsewhere(self, page: Page, known: Record | None) -> Ruling | None:
        """Another URL has, or had, the same bytes; ``known`` is what is known of this one."""
        preference = self._succession.preference
        if (preference is not None and preference.reads) or self._judgements.of(page.url) is not None:
            return None
        found = self._store.by_body(page.body)
        if found is None:
            twin = self._in_flight.of_body(page.body)
            is_copy = twin is not None and twin.record.is_original and self._compared(page, twin.record) is not None
            return Blocked(twin) if twin is not None and is_copy else None
        compared, whole = self._compared(page, found), self._told(page, found)
        original = self._original(page, found)
        if compared is None or whole is None or original is None or found.url == page.url:
            return None
        comparison, sketch = compared
        fingerprint, best = Fingerprint((), sketch), Found(comparison, original, found)
        if self._succession.role(Contender(whole, fingerprint), known, best, frozenset()) is not Standing.COPY:
            return None
        match = self._registrar.match(whole, best)
        verdict = Verdict(Kind.DUPLICATE, page.url, match=match, likeness=comparison.likeness)
        if self._registrar.passes(verdict):
            return None  # whoever gets it is to be told which sentences both hold
        ruled = self._copies.ruling(whole, best, known, fingerprint)
        return replace(_by_bytes(ruled.verdict, whole), reservation=ruled.reservation)

    def _original(self, page: Page, record: Record) -> Record | None:
        """The page that stands for the group of another one; None if it says something else by now."""
        original = stands_for(self._store, record, besides=page.url)
        newest = self._store.find(original.url) if original is not None else None
        return original if original is not None and newest is not None and newest.id == original.id else None

    def _compared(self, page: Page, found: Record) -> tuple[Comparison, bytes] | None:
        """How the page compares to one with the same bytes, if it is a copy of that, and its sketch."""
        again = self._method.again(found.sketch, page.site, self._store.on_site(page.site))
        if again is None or not again[0].is_copy(self._also_copies) or not has_a_say(found, again[0]):
            return None
        return again

    def _told(self, page: Page, found: Record) -> Page | None:
        """The page, with what is kept of the one that had the same bytes; None if that is too little."""
        keep = self._registrar.keep
        if keep is Keep.NOTHING:
            return page
        told = self._store.evidence(found.id)
        if told is None:
            return None
        if keep is Keep.EVIDENCE:
            return replace(page, title=told.title, letters=told.letters)
        whole = kept_page(page.url, told)
        return replace(whole, site=page.site, body=page.body) if whole is not None else None


def _by_bytes(verdict: Verdict, page: Page) -> Ruled:
    return Ruled(replace(verdict, same_bytes=True), page=page)
