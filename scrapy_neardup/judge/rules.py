"""The rules that judge a page, in their order."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from scrapy_neardup.judge.copies import Copies, Groups, Registrar
from scrapy_neardup.judge.former import AsFormerly, Former
from scrapy_neardup.judge.in_flight import Blocked, Reservation, Ruled, Ruling
from scrapy_neardup.judge.manual_verdicts import ManualVerdict, ManualVerdicts, Opinion, by_hand, original_at
from scrapy_neardup.judge.matching import Found, Matching, distinctive_keys, has_a_say, with_distinctive_keys
from scrapy_neardup.judge.preference import Contender, Standing, Succession
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Fingerprint, Kind, Likeness, Match, Page, Verdict
from scrapy_neardup.state.evidence import Keep, kept_page
from scrapy_neardup.state.pages import stands_for, with_first
from scrapy_neardup.state.record import Record, is_same_mark, row_mark

# ----------------------------------------------------------------------------------------------------------------------
# Pages that are compared with no other: they pass, but made from the very same at the same URL they need not twice.
#
# The mark of a page is the fingerprint of what it was made from (``Page.html``), which its record holds for a sketch.


class ByMark:
    """Rules on pages that say too little or too much, and on rows of a listing that are known by all they hold."""

    def __init__(self, registrar: Registrar, generation: int) -> None:
        self._registrar = registrar
        self._store = registrar.store
        self._generation = generation

    def is_unchanged(self, url: str, mark: int) -> bool:
        """Whether the page at a URL was too little or too much to be judged, and is still made from the very same."""
        known = self._store.find(url) if mark else None
        return known is not None and known.similarity == 0 and known.sketch == _packed(mark)

    def unchanged(self, page: Page, known: Record) -> Verdict:
        """The verdict on a page that is still made from the very same."""
        self._store.touch(known, renewed=replace(known, body=page.body or known.body))
        match = Match(known.id, known.url, known.first_seen, 1.0, 1.0)
        return Verdict(Kind.UNCHANGED, page.url, known.id, match)

    def ruling(self, page: Page, verdict: Verdict, *, is_known_again: bool = False) -> Ruling:
        """The ruling on a page of which the verdict is known, but for whether it is unchanged or updated.

        Rows of a listing that say too little may be alike and mean different things: in one crawl all of them pass.
        ``is_known_again``: it is a row that says enough.
        """
        if not page.html:
            return Ruled(verdict)
        mark = row_mark(page.html) if page.row else _packed(page.html)
        twins_pass = page.row and not is_known_again
        if (twin := self._registrar.in_flight.of_url(page.url)) is not None:
            return Blocked(twin) if is_same_mark(twin.record.sketch, mark) and not twins_pass else Ruled(verdict)
        known = self._store.find(page.url)
        if known is not None and known.similarity > 0:
            return Ruled(verdict)  # its text may only have failed to load; what is known of it stays
        if known is not None and is_same_mark(known.sketch, mark):
            if twins_pass and known.id > self._generation:
                return Ruled(verdict)
            return Ruled(self.unchanged(page, known))
        id = self._store.new_id()
        if is_known_again:
            verdict = replace(verdict, id=id)
            if known is not None:
                verdict = replace(verdict, kind=Kind.UPDATED, reason="")
        record = Record(id, page.url, id, 0.0, (), mark, body=page.body)
        return self._registrar.reserve(page, verdict, record, Fingerprint((), mark), known)


def _packed(mark: int) -> bytes:
    return mark.to_bytes(8, "big")


# ----------------------------------------------------------------------------------------------------------------------
# A page that somebody has called a copy is one, as long as its original is there: see ``judgements``.


class ByHand:
    """Rules on copies by hand."""

    def __init__(self, registrar: Registrar, matching: Matching, copies: Copies) -> None:
        self._registrar = registrar
        self._matching = matching
        self._copies = copies

    def ruling(self, said: Opinion, page: Page, known: Record | None, fingerprint: Fingerprint) -> Ruling | None:
        """None for a page of which nothing was said that decides; it waits for an original that is on its way."""
        if said.said is not ManualVerdict.COPY:
            return None
        original = original_at(self._registrar.store, said.other, page.url)
        if original is None:
            twin = self._registrar.in_flight.of_url(said.other)
            return Blocked(twin) if twin is not None else None
        common = self._matching.common(fingerprint)
        filed = with_distinctive_keys(fingerprint, common)
        found = Found(by_hand(self._registrar.method.compare(fingerprint, original.sketch, common)), original, original)
        return self._copies.ruling(page, found, known, filed, said=True)


# ----------------------------------------------------------------------------------------------------------------------
# What was at the URL of a page decides first: it is unchanged, or is updated unless it has become a copy.


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


# ----------------------------------------------------------------------------------------------------------------------
# The way of a page that can be judged: its own URL, what was said of it, earlier pages, pages on their way.
#
# Of nearly every page that comes nothing is known at its URL, nobody has said anything of it, and no earlier page is
# like it: each of these is asked for once, and whoever rules on the others is called for them alone.


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
        judgements: ManualVerdicts,
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
        is_kept = said is not None and said.said is ManualVerdict.KEEP
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
        filed = with_distinctive_keys(fingerprint, common)
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
        keys = distinctive_keys(fingerprint.keys, common) if common else fingerprint.keys
        record = Record(id, page.url, id, 1.0, keys, fingerprint.sketch, body=page.body)
        return self._registrar.reserve(page, verdict, record, fingerprint, known)


# ----------------------------------------------------------------------------------------------------------------------
# A page whose very bytes were judged before need not be read: what is known of them is what it would say.
#
# The verdict is the one that reading and comparing would give. So whatever could make a difference has the page read:
# an opinion by hand, a preference that looks at texts, a page that was delivered and has other bytes now, boilerplate
# that was none before, and anything of which too little is kept. What may differ is by what a copy is told: of several
# pages with one text the one with its bytes is named, and of a copy that comes again how it was alike then.


class ByBytes:
    """Rules on pages by the digest of their bytes (see ``page/response``); whatever it rules, the page was not read."""

    def __init__(
        self,
        registrar: Registrar,
        by_mark: ByMark,
        same_url: SameUrl,
        copies: Copies,
        succession: Succession,
        judgements: ManualVerdicts,
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
        again = self._method.compare_same_bytes(found.sketch, page.site, self._store.on_site(page.site))
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
