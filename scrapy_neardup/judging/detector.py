"""Where a method meets a store: a page goes in, a verdict comes out, and is kept or taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import replace
from time import perf_counter
from weakref import WeakKeyDictionary

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.judging.drops import Drops
from scrapy_neardup.judging.former import Former, FormerlyFound
from scrapy_neardup.judging.judgements import Judgements, Opinion, Said, by_hand, original_at
from scrapy_neardup.judging.matching import Found, Matching, has_a_say
from scrapy_neardup.judging.noting import note_once
from scrapy_neardup.judging.preference import Contender, Preference
from scrapy_neardup.judging.reservations import Blocked, InFlight, Reservation, Ruled, Ruling
from scrapy_neardup.judging.succession import Standing, Succession
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Kind, Likeness, Match, Page, Verdict
from scrapy_neardup.stores import Bounds, Keep, Record, Store, evidence, stands_for
from scrapy_neardup.stores.changes import Row
from scrapy_neardup.text.prose import why_unjudged


def _all_but_copies(verdict: Verdict) -> bool:
    return not verdict.is_copy


#: Steps in a row without a page that can go, after which no more are tried.
_IDLE = 1000
_IN_FLIGHT: WeakKeyDictionary[Store, InFlight] = WeakKeyDictionary()


class Detector:
    """Judges the pages of one crawl against the state, and against pages that are still on their way.

    Pages are compared with originals. A copy that differs much from its original is filed as a witness, so
    that a further page which copies the copy is found too; a page found through a witness is dropped for the
    original and is never a witness itself. So a group cannot drift further than that one step.

    A copy whose item passes all the same is on its way like any other page; once it was delivered, its text is known
    under its own URL. A copy that is better than the page that stands for its group passes and stands there from then
    on: see ``succession``.
    """

    def __init__(
        self,
        method: Method,
        store: Store,
        *,
        min_letters: int,
        who: str,
        job: str = "",
        also_copies: Set[Likeness] = frozenset(),
        passes: Callable[[Verdict], bool] = _all_but_copies,
        keep: Keep = Keep.NOTHING,
        preference: Preference | None = None,
        bounds: Bounds | None = None,
        on_expired: Callable[[int], None] = lambda pages: None,
    ) -> None:
        """``min_letters``: what a text needs to be judged; ``who`` names the crawl, ``job`` is as for ``Store.begin``.

        ``also_copies``: what is to be a duplicate beside what the method says is one. ``passes``: whether the item of a
        duplicate is passed on; without it, none is. ``keep``: what the state is to tell of pages later. ``preference``:
        which copies are better than the page that came first; none is without it. ``bounds``: how long and how many
        pages the state is to know; ``on_expired`` is told how many were forgotten for that.

        Raises SettingsError for a method that only works in memory and a store on disk.
        """
        if method.memory_only and store.lasts:
            raise SettingsError(
                f"The method {method.name} keeps several kilobytes of each page and works in memory alone. "
                "Set NEARDUP_STORE = 'memory:', or choose another method for a state that lasts."
            )
        self.store = store
        self.spent = {"method": 0.0, "store": 0.0}
        self._method = method = method.under(store.hashes)
        self._min_letters = min_letters
        self._also_copies = also_copies
        self.passes = passes
        self._keep = keep
        self._bounds = bounds
        self._on_expired = on_expired
        self._judged = 0
        self._generation = store.begin(who, job)
        self._in_flight = _IN_FLIGHT.setdefault(store, InFlight())
        self._matching = Matching(method, store, also_copies)
        self._former = Former(store)
        self._succession = Succession(method, store, also_copies, preference)
        self._judgements = Judgements(store)
        self._drops = Drops(store, self._generation) if store.lasts and keep is not Keep.NOTHING else None

    def check(self, page: Page) -> Ruling:
        """Judge a page. Raises StoreError if the state fails; then nothing is reserved."""
        self._judged += 1
        self._expire()
        ruling = self._ruling(page)
        if isinstance(ruling, Blocked):
            return ruling
        return replace(ruling, verdict=replace(ruling.verdict, reader=page.reader))

    def _ruling(self, page: Page) -> Ruling:
        reason = page.unread or why_unjudged(page.text, self._min_letters)
        if page.row and page.html and not reason:
            return self._by_mark(page, Verdict(Kind.UNIQUE, page.url))
        if page.row:
            return self._by_mark(page, Verdict(Kind.UNJUDGED, page.url, reason="listing"))
        if reason:
            return self._by_mark(page, Verdict(Kind.UNJUDGED, page.url, reason=reason))
        begun = perf_counter()
        known = self.store.on_site(page.site)
        fingerprint = self._method.guarded(page, known.is_common, known)
        self.spent["method"] += perf_counter() - begun
        begun = perf_counter()
        try:
            return self._judge(page, fingerprint)
        finally:
            self.spent["store"] += perf_counter() - begun

    def is_unchanged(self, url: str, mark: int) -> bool:
        """Whether the page at a URL was too little or too much to be judged, and is still made from the very same."""
        known = self.store.find(url) if mark else None
        return known is not None and known.similarity == 0 and known.sketch == mark.to_bytes(8, "big")

    def is_enough(self, text: str) -> bool:
        """Whether a text can be judged."""
        return not why_unjudged(text, self._min_letters)

    def judge_now(self, page: Page, *, sealed: bool) -> Verdict:
        """Judge a page that counts at once, for good if ``sealed``: for whoever has no items on their way.

        Raises StoreError, and RuntimeError where a crawl of this process is at work on the same state.
        """
        ruling = self.check(page)
        if isinstance(ruling, Blocked):
            raise RuntimeError(f"{page.url} cannot be judged before the item of {ruling.by.record.url} has arrived.")
        if ruling.reservation is not None:
            self.commit(ruling.reservation, sealed=sealed)
        return ruling.verdict

    def commit(self, reservation: Reservation, *, sealed: bool) -> None:
        """The item came through: the page counts, for good if ``sealed``. Raises StoreError if that failed."""
        begun = perf_counter()
        try:
            generation = 0 if sealed else self._generation
            replaces = reservation.replaces
            if replaces and self.store.record(replaces) is None:  # taken back in the meantime, for the one before it
                earlier = self.store.find(reservation.record.url)
                replaces = earlier.id if earlier else 0
            self.store.add(
                reservation.record, reservation.evidence, generation=generation, replaces=replaces, of=reservation.of
            )
            if not reservation.replaces:
                self._note(
                    reservation.record.url,
                    reservation.site,
                    reservation.fingerprint,
                    everywhere=not reservation.record.delivered,
                )
        finally:
            self.spent["store"] += perf_counter() - begun
            self._settle(reservation)

    def release(self, reservation: Reservation) -> None:
        """The item was lost: the page was never here."""
        self._settle(reservation)

    def withdraw(self, id: int) -> None:
        """Take back a page that was committed."""
        self.store.withdraw(self._generation, id)

    def seal(self, ids: Iterable[int] | None = None) -> None:
        """The feeds that hold these pages are stored: keep them for good; without ids, all that are not sealed yet."""
        self.store.seal(self._generation, self.store.unsealed(self._generation) if ids is None else ids)

    @property
    def generation(self) -> int:
        """Names the crawl: the time at which it began, in nanoseconds since 1970."""
        return self._generation

    def trim(self) -> None:
        """As many steps as pages were judged, as far as there are too many: what this crawl added may be sealed by now.

        Whatever else is too much in the state takes its time.
        """
        idle = 0
        while self._judged and idle < _IDLE and self._bounds and self._bounds.exceeded(self.store.pages):
            self._judged -= 1
            idle = 0 if self._expire() else idle + 1

    def _expire(self) -> int:
        if self._bounds is None:
            return 0
        begun = perf_counter()
        gone = self.store.expire(self._bounds)
        self.spent["store"] += perf_counter() - begun
        if gone:
            self._on_expired(gone)
        return gone

    def end(self) -> int:
        """The crawl is over; returns the number of pages that are not sealed."""
        return self.store.end(self._generation)

    def _note(self, url: str, site: str, fingerprint: Fingerprint, *, everywhere: bool = True) -> None:
        note_once(self.store, url, site, fingerprint, everywhere=everywhere)

    def _settle(self, reservation: Reservation) -> None:
        self._in_flight.remove(reservation)
        reservation.settle()

    def _judge(self, page: Page, fingerprint: Fingerprint) -> Ruling:
        twin = self._in_flight.by_url.get(page.url)
        if twin is not None:
            return Blocked(twin)
        known = self.store.find(page.url)
        before: Match | None = None
        formerly = self._former.of(page, known)
        if formerly and (ruled := self._as_formerly(page, fingerprint, known, formerly)):
            return ruled
        if known is not None and known.former:
            before = self._before(known, formerly)
        elif known is not None and (known.is_original or known.delivered):
            comparison = self._method.compare(fingerprint, known.sketch, frozenset())
            if comparison.identical:
                original = self._original(known)
                self.store.touch(known, of=() if original is known else (original,))
                same = self._match(page, Found(comparison, original, known))
                return Ruled(Verdict(Kind.UNCHANGED, page.url, known.id, same))
            before = self._match(page, Found(comparison, known, known))
        said = self._judgements.of(page.url)
        if said is not None and (ruling := self._as_said(said, page, known, fingerprint)) is not None:
            return ruling
        if reason := fingerprint.why_unjudged(self._min_letters):
            return self._by_mark(page, Verdict(Kind.UNJUDGED, page.url, reason=reason))
        common, best = self._matching.best(page.url, fingerprint, page.canonical)
        keys = tuple(key for key in fingerprint.keys if key not in common)
        is_kept = said is not None and said.said is Said.KEEP
        is_copy = best is not None and best.comparison.is_copy(self._also_copies)
        if best is not None and is_copy and not is_kept:
            role = self._succession.role(Contender(page, fingerprint), known, best, common)
            if role is Standing.COPY:
                return self._copy(page, best, known, fingerprint, keys)
            return self._in_its_group(role, page, best, known, replace(fingerprint, keys=keys), before)
        for twin in [] if is_kept else self._on_their_way(fingerprint):
            comparison = self._method.compare(fingerprint, twin.record.sketch, common)
            if has_a_say(twin.record, comparison) and comparison.is_copy(self._also_copies):
                return Blocked(twin)
        id = self.store.new_id()
        kind, match, likeness = Kind.UNIQUE, None, None
        if before is not None:
            kind, match = Kind.UPDATED, before
        elif best is not None:
            match, likeness = self._match(page, best), None if is_copy else best.comparison.likeness
        verdict = Verdict(kind, page.url, id, match, likeness=likeness, by_hand=is_kept and is_copy)
        record = Record(id, page.url, id, 1.0, keys, fingerprint.sketch)
        return self._reserve(page, verdict, record, fingerprint, known)

    def _as_formerly(
        self, page: Page, fingerprint: Fingerprint, known: Record | None, formerly: FormerlyFound
    ) -> Ruled | None:
        """The verdict on a page of a former recipe that is what it was, or is a copy of what it was a copy of."""
        base, comparison = formerly.base, formerly.comparison
        if known is None or not (comparison.identical if known.former else comparison.is_copy(self._also_copies)):
            return None
        original = self._original(base)
        match = Match(original.id, original.url, original.first_seen, comparison.similarity, comparison.containment)
        if not known.former:
            verdict = Verdict(Kind.DUPLICATE, page.url, known.id, match, likeness=comparison.likeness)
            if self.passes(verdict):
                return None  # it is to be delivered: as what comes for the first time
            along = self._dropped(self.store.new_id(), page, match, comparison.likeness)
            self.store.touch(known, of=(original,), along=along)
            return Ruled(verdict)
        common = self._matching.common(fingerprint)
        keys = tuple(key for key in fingerprint.keys if key not in common) if known.is_original else ()
        record = replace(known, keys=keys, sketch=fingerprint.sketch, former=False)
        self.store.add(record, self.store.evidence(known.id), replaces=known.id)
        self._note(page.url, page.site, fingerprint, everywhere=not known.delivered)
        return Ruled(Verdict(Kind.UNCHANGED, page.url, known.id, match))

    def _before(self, known: Record, formerly: FormerlyFound | None) -> Match:
        """Of a page of a former recipe that is not what it was, as far as that can be told."""
        comparison = formerly.comparison if formerly else None
        similarity, containment = (comparison.similarity, comparison.containment) if comparison else (0.0, 0.0)
        return Match(known.id, known.url, known.first_seen, similarity, containment)

    def _as_said(self, said: Opinion, page: Page, known: Record | None, fingerprint: Fingerprint) -> Ruling | None:
        """A page that is a copy by hand, as long as its original is there; it waits for one that is on its way."""
        if said.said is not Said.COPY:
            return None
        original = original_at(self.store, said.other, page.url)
        if original is None:
            twin = self._in_flight.by_url.get(said.other)
            return Blocked(twin) if twin is not None else None
        common = self._matching.common(fingerprint)
        keys = tuple(key for key in fingerprint.keys if key not in common)
        found = Found(by_hand(self._method.compare(fingerprint, original.sketch, common)), original, original)
        return self._copy(page, found, known, fingerprint, keys, said=True)

    def _reserve(
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

        ``found``: how it is like which page, where the verdict does not say that.
        """
        likeness, match = found or (verdict.likeness, verdict.match)
        kept = evidence(page, likeness, match, copy=record.original != record.id, keep=self._keep)
        if (preference := self._succession.preference) is not None and record.keys:
            kept = preference.weighed(Contender(page, fingerprint), kept, self._method)
        reservation = Reservation(verdict, fingerprint, record, kept, page.site, known.id if known else 0, of)
        self._in_flight.add(reservation)
        return Ruled(verdict, reservation)

    def _by_mark(self, page: Page, verdict: Verdict) -> Ruling:
        """What is compared with no other page passes; but made from the very same at the same URL, it need not twice.

        Rows of a listing that say too little may be alike and mean different things: in one crawl all of them pass.
        """
        if not page.html:
            return Ruled(verdict)
        mark = page.html.to_bytes(8, "big")
        twins_pass = page.row and verdict.kind is Kind.UNJUDGED
        if (twin := self._in_flight.by_url.get(page.url)) is not None:
            return Blocked(twin) if twin.record.sketch == mark and not twins_pass else Ruled(verdict)
        known = self.store.find(page.url)
        if known is not None and known.similarity > 0:
            return Ruled(verdict)  # its text may only have failed to load; what is known of it stays
        if known is not None and known.sketch == mark:
            if twins_pass and known.id > self._generation:
                return Ruled(verdict)
            self.store.touch(known)
            match = Match(known.id, known.url, known.first_seen, 1.0, 1.0)
            return Ruled(Verdict(Kind.UNCHANGED, page.url, known.id, match))
        id = self.store.new_id()
        if verdict.kind is Kind.UNIQUE:
            verdict = replace(verdict, id=id, kind=Kind.UPDATED if known else Kind.UNIQUE)
        return self._reserve(page, verdict, Record(id, page.url, id, 0.0, (), mark), Fingerprint((), mark), known)

    def _on_their_way(self, fingerprint: Fingerprint) -> list[Reservation]:
        """The pages that share a key with this one, and whose items have not arrived yet."""
        found = (reservation for key in fingerprint.keys for reservation in self._in_flight.by_key.get(key, ()))
        return list(dict.fromkeys(found))

    def _copy(
        self,
        page: Page,
        best: Found,
        known: Record | None,
        fingerprint: Fingerprint,
        keys: tuple[int, ...],
        *,
        said: bool = False,
    ) -> Ruled:
        """Note a copy's URL, once; if its item passes, once that came through.

        A copy that is like its original is found through that; one that differs speaks for itself, and is a witness.
        ``said``: it is a copy by hand.
        """
        match, likeness = self._match(page, best), best.comparison.likeness
        verdict = Verdict(Kind.DUPLICATE, page.url, match=match, likeness=likeness, by_hand=said)
        passes = self.passes(verdict)
        of = tuple({one.id: one for one in (best.original, best.compared)}.values())
        if known is not None and not passes and _keeps_its_place(known, match.id):
            along = self._dropped(self.store.new_id(), page, match, likeness)
            self.store.touch(known, of=of, along=along)
            return Ruled(replace(verdict, id=known.id))
        differs = match.similarity < self._method.witness_below
        is_witness = differs and best.compared.is_original
        copy = Record(
            self.store.new_id(),
            page.url,
            match.id,
            match.similarity,
            keys if is_witness else (),
            fingerprint.sketch if is_witness or passes else b"",
            delivered=passes,
        )
        verdict = replace(verdict, id=copy.id)
        counts = differs and known is None
        if passes:
            filed = replace(fingerprint, keys=copy.keys, sentences=fingerprint.sentences if counts else ())
            return self._reserve(page, verdict, copy, filed, known, of=of)
        if counts:
            self._note(page.url, page.site, fingerprint, everywhere=False)
        kept = evidence(page, likeness, match, copy=True, keep=self._keep)
        along = self._dropped(copy.id, page, match, likeness)
        self.store.add(copy, kept, replaces=known.id if known else 0, of=of, along=along)
        return Ruled(verdict)

    def _in_its_group(
        self,
        role: Standing,
        page: Page,
        best: Found,
        known: Record | None,
        fingerprint: Fingerprint,
        before: Match | None,
    ) -> Ruling:
        """The page passes though it is a copy: it stands for its group from now on, or is news of a delivered page.

        Who leads may not change while another page that is to lead is on its way.
        """
        group, match, likeness = best.original.group, self._match(page, best), best.comparison.likeness
        rivals = self._in_flight.by_key.get(group)
        if role.leads and rivals:
            return Blocked(rivals[0])
        differs = match.similarity < self._method.witness_below
        filed = replace(
            fingerprint,
            keys=fingerprint.keys if role.leads or (differs and best.compared.is_original) else (),
            sentences=fingerprint.sentences if differs and known is None else (),
        )
        if role.leads:
            filed = replace(filed, keys=(*filed.keys, group))
        id = self.store.new_id()
        record = Record(id, page.url, group, match.similarity, filed.keys, fingerprint.sketch, delivered=True)
        better = role is Standing.BETTER
        verdict = Verdict(
            role.kind,
            page.url,
            id,
            match if better else before or match,
            likeness=likeness if better else None,
            group=group,
        )
        return self._reserve(page, verdict, record, filed, known, (likeness, match), of=(best.original,))

    def _dropped(self, id: int, page: Page, match: Match, likeness: Likeness | None) -> tuple[Row, ...]:
        """What tells later that the page was dropped, if that is kept."""
        return self._drops.rows(id, page.url, match, likeness) if self._drops is not None else ()

    def _original(self, known: Record) -> Record:
        """The page that stands for the group of a known one: it is itself if there is none, or that one is gone."""
        return stands_for(self.store, known) or known

    def _match(self, page: Page, found: Found) -> Match:
        return Match(
            found.original.group,
            found.original.url,
            found.original.first_seen,
            found.comparison.similarity,
            found.comparison.containment,
            self._method.shared(page, found.compared.sketch),
        )


def _keeps_its_place(known: Record, original: int) -> bool:
    """Whether what is known of a URL stays though the page has become a copy of this original, and is dropped.

    What was delivered does: its text may come back, and on an original others may stand.
    """
    return known.is_original or known.delivered or known.original == original
