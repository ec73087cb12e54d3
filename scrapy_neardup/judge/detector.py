"""The detector: judges a page against the state, then files it or rolls it back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Set
from dataclasses import replace
from time import perf_counter
from typing import Any, cast
from weakref import WeakKeyDictionary

from scrapy_neardup.errors import AnyReason, SettingsError
from scrapy_neardup.judge.copies import Copies, Registrar, Returning, note_once
from scrapy_neardup.judge.drops import Drops
from scrapy_neardup.judge.in_flight import Blocked, Earlier, InFlight, ReadOnlyInFlight, Reservation, Ruled, Ruling
from scrapy_neardup.judge.manual_verdicts import ManualVerdicts
from scrapy_neardup.judge.matching import Matching, candidates
from scrapy_neardup.judge.preference import Preference, Succession
from scrapy_neardup.judge.rules import ByBytes, ByMark, ByText, SameUrl
from scrapy_neardup.methods import Method
from scrapy_neardup.model import ROW, Fingerprint, Kind, Likeness, Page, Verdict
from scrapy_neardup.page.response import BodyHasher
from scrapy_neardup.state.evidence import Keep
from scrapy_neardup.state.expiry import Bounds
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.text.prose import why_unjudged
from scrapy_neardup.workers.speculation import PreparedFingerprint

# ----------------------------------------------------------------------------------------------------------------------
# A crawl forgets what a state is no longer to know, a step with each page that is judged.


#: Steps in a row without a page that can go, after which no more are tried.
_IDLE = 1000


class Ageing:
    """``bounds``: how long and how many pages a state is to know; ``on_expired`` is told how many were forgotten."""

    def __init__(self, store: PageStore, bounds: Bounds | None, on_expired: Callable[[int], None]) -> None:
        self._store = store
        self._bounds = bounds
        self._on_expired = on_expired
        self._judged = 0
        #: Whether anything is ever forgotten.
        self.has_bounds = bounds is not None

    def judged(self) -> None:
        """A page is judged: take a step. Raises StoreError."""
        self._judged += 1
        self._step()

    def trim(self) -> None:
        """As many steps as pages were judged, as far as there are too many: what this crawl added may be sealed by now.

        Whatever else is too much in the state takes its time.
        """
        idle = 0
        while self._judged and idle < _IDLE and self._bounds and self._bounds.exceeded(self._store.pages):
            self._judged -= 1
            idle = 0 if self._step() else idle + 1

    def _step(self) -> int:
        gone = self._store.expire(self._bounds) if self._bounds is not None else 0
        if gone:
            self._on_expired(gone)
        return gone


# ----------------------------------------------------------------------------------------------------------------------
# A store that is looked into and not written to: for a verdict of which nothing is to stay.


class _Glance:
    """Answers as the store does; what a detector writes comes to nothing."""

    def __init__(self, store: PageStore) -> None:
        self.base = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self.base, name)

    def begin(self, who: str, job: str = "") -> int:
        return 0

    def add(self, *_: Any, **__: Any) -> None:
        return

    def touch(self, *_: Any, **__: Any) -> None:
        return

    def note(self, *_: Any, **__: Any) -> None:
        return

    def note_form(self, *_: Any, **__: Any) -> None:
        return

    def write(self, *_: Any, **__: Any) -> None:
        return


def glance(store: PageStore) -> PageStore:
    """The store for a detector that must leave no trace: a write that a detector learns to do belongs in the class."""
    return cast(PageStore, _Glance(store))


def base_of(store: PageStore) -> PageStore:
    """The store beneath a glance; any other store is its own base."""
    return store.base if isinstance(store, _Glance) else store


# ----------------------------------------------------------------------------------------------------------------------
# Where a method meets a store: a page goes in, a verdict comes out, and is kept or taken back.


def _all_but_copies(verdict: Verdict) -> bool:
    return not verdict.is_copy


#: The pages in flight of each store of this process: all crawls on a store share them, and a glance sees them.
_IN_FLIGHT: WeakKeyDictionary[PageStore, InFlight] = WeakKeyDictionary()


def _in_flight_of(store: PageStore) -> InFlight:
    if store.is_shared:
        return Earlier()
    base = base_of(store)
    found = _IN_FLIGHT.setdefault(base, InFlight())
    return found if base is store else ReadOnlyInFlight(found)


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
        store: PageStore,
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
        """``min_letters``: letters that a text needs; ``who`` names the crawl, ``job`` is as for ``PageStore.begin``.

        ``also_copies``: what is to be a duplicate beside what the method says is one. ``passes``: whether the item of a
        duplicate is passed on; without it, none is. ``keep``: what the state is to tell of pages later. ``preference``:
        which copies are better than the page that came first; none is without it. ``bounds``: how long and how many
        pages the state is to know; ``on_expired`` is told how many were forgotten for that.

        Raises SettingsError for a method that only works in memory and a store on disk.
        """
        if method.memory_only and store.lasts:
            raise SettingsError(
                f"The method {method.name} keeps several kilobytes per page and works only in memory. "
                "Set NEARDUP_STORE = 'memory:', or choose another method."
            )
        self.store = store
        #: Seconds; added to at each place by itself, as whatever would do it for all takes calls at each page.
        self.spent = {"method": 0.0, "store": 0.0}
        self._method = method = method.under(store.hashes)
        self._min_letters = min_letters
        self.passes = passes
        self._ageing = Ageing(store, bounds, on_expired)
        self._generation = store.begin(who, job)
        self._in_flight = _in_flight_of(store)
        drops = Drops(store, self._generation) if store.lasts and keep is not Keep.NOTHING else None
        self._registrar = registrar = Registrar(method, store, self._in_flight, passes, keep, preference, drops)
        matching, judgements = Matching(method, store, also_copies), ManualVerdicts(store)
        self._by_mark = ByMark(registrar, self._generation)
        same_url = SameUrl(registrar, matching, also_copies)
        copies = Copies(registrar, Returning(method, min_letters, also_copies))
        by_others = self._by_mark, same_url, copies, Succession(method, store, also_copies, preference), judgements
        self._by_bytes = ByBytes(registrar, *by_others, also_copies)
        self._by_text = ByText(registrar, matching, *by_others, also_copies, min_letters)
        rules = {"recipe": store.recipe, "decisions": method.decisions(), "min_letters": min_letters}
        #: By what bodies are known again under these rules.
        self.bodies = BodyHasher(store.hashes, {**rules, "also_copies": sorted(also_copies)})

    def check(
        self,
        page: Page,
        fingerprint: Fingerprint | None = None,
        prepared: PreparedFingerprint | None = None,
        given_up: Collection[Reservation] = (),
    ) -> Ruling:
        """Judge a page. Raises StoreError if the state fails; then nothing is reserved.

        ``fingerprint``: what the method of that name has said of it, where it is judged a second time; ``prepared``:
        what another process has, which is taken if the state agrees. ``given_up``: pages on their way that took too
        long. The page is judged without them, and is unjudged (``in_flight``) where it would be unique; it is reserved
        like any other, so that it is known from then on.
        """
        self._in_flight.overlooked = given_up
        if self._ageing.has_bounds:
            begun = perf_counter()
            try:
                self._ageing.judged()
            finally:
                self.spent["store"] += perf_counter() - begun
        reason = page.unread or why_unjudged(page.text, self._min_letters)
        if page.row or reason:
            ruling = self._without_comparing(page, reason)
        else:
            fingerprint = fingerprint or self._fingerprint(page, prepared)
            begun = perf_counter()
            try:
                ruling = self._by_text.ruling(page, fingerprint)
            finally:
                self.spent["store"] += perf_counter() - begun
        if isinstance(ruling, Blocked):
            return ruling
        if given_up and ruling.reservation is not None:
            ruling.reservation.gave_up = True
            if ruling.verdict.kind is Kind.UNIQUE:
                id = ruling.verdict.id
                ruling = replace(ruling, verdict=Verdict(Kind.UNJUDGED, page.url, id, reason="in_flight"))
        if ruling.verdict.reader == page.reader:
            return ruling
        return replace(ruling, verdict=replace(ruling.verdict, reader=page.reader))

    def check_bytes(self, url: str, site: str, body: int, given_up: Collection[Reservation] = ()) -> Ruling | None:
        """Judge a page by its bytes alone, whose digest ``body`` is; None if it has to be read. Raises StoreError.

        ``given_up``: as for ``check``.
        """
        self._in_flight.overlooked = given_up
        begun = perf_counter()
        try:
            if not self._by_bytes.may_know(url, body):
                return None
            self._ageing.judged()
            return self._by_bytes.ruling(url, site, body)
        finally:
            self.spent["store"] += perf_counter() - begun

    def learn(self, page: Page, prepared: PreparedFingerprint) -> None:
        """What the state says of a page of which something else was presumed is presumed of the next ones."""
        prepared.learn(page.site, self.store.on_site(page.site))

    def may_know(self, url: str, body: int) -> bool:
        """Whether it is worth while to wait for what ``check_bytes`` says before a page is read. Raises StoreError."""
        begun = perf_counter()
        try:
            return self._by_bytes.may_know(url, body)
        finally:
            self.spent["store"] += perf_counter() - begun

    def fingerprint(self, page: Page) -> Fingerprint | None:
        """By what a page is compared with others; None for one that is not."""
        if page.row or page.unread or why_unjudged(page.text, self._min_letters):
            return None
        return self._fingerprint(page)

    def _fingerprint(self, page: Page, prepared: PreparedFingerprint | None = None) -> Fingerprint:
        begun = perf_counter()
        try:
            known = self.store.on_site(page.site)
            if prepared is not None:
                return prepared.verified(page, known, self._method)
            return self._method.for_state(page, known)
        finally:
            self.spent["method"] += perf_counter() - begun

    def _without_comparing(self, page: Page, reason: AnyReason) -> Ruling:
        """The ruling on a row of a listing, or a page that cannot be judged for this reason."""
        verdict = Verdict(Kind.UNJUDGED, page.url, reason=ROW if page.row else reason)
        return self._by_mark.ruling(page, verdict, is_known_again=not reason)

    def is_unchanged(self, url: str, mark: int) -> bool:
        """Whether the page at a URL was too little or too much to be judged, and is still made from the very same."""
        return self._by_mark.is_unchanged(url, mark)

    def is_enough(self, text: str) -> bool:
        """Whether a text can be judged."""
        return not why_unjudged(text, self._min_letters)

    def judge_now(self, page: Page, *, sealed: bool, prepared: PreparedFingerprint | None = None) -> Verdict:
        """Judge a page that counts at once, for good if ``sealed``: for whoever has no items on their way.

        Where a crawl of this process is at work on the same state, a near-duplicate may be on its way: nobody waits for
        it here, so it is given up at once. Raises StoreError.
        """
        given_up = list[Reservation]()
        while isinstance(ruling := self.check(page, prepared=prepared, given_up=given_up), Blocked):
            given_up.append(ruling.by)
        return self._counted(ruling, sealed=sealed)

    def judge_bytes_now(self, url: str, site: str, body: int, *, sealed: bool) -> Verdict | None:
        """The same by the bytes of a page alone; None if it has to be read."""
        ruling = self.check_bytes(url, site, body)
        return self._counted(ruling, sealed=sealed) if isinstance(ruling, Ruled) else None

    def _counted(self, ruling: Ruled, *, sealed: bool) -> Verdict:
        if ruling.reservation is not None:
            self.commit(ruling.reservation, sealed=sealed)
        return ruling.verdict

    def commit(self, reservation: Reservation, *, sealed: bool) -> None:
        """The item came through: the page counts, for good if ``sealed``. Raises StoreError if that failed."""
        try:
            self.file(reservation, sealed=sealed)
        finally:
            self.release(reservation)

    def file(self, reservation: Reservation, *, sealed: bool) -> None:
        """Write what was reserved, and count it once; those who wait for it are not told yet."""
        begun, store, replaces, record = perf_counter(), self.store, reservation.replaces, reservation.record
        try:
            # In the meantime it was taken back for the one before it, or the page that was given up has come through.
            if reservation.gave_up or (replaces and store.record(replaces) is None):
                earlier = store.find(record.url)
                if earlier is None or earlier.id != record.id:  # else an earlier attempt has written it
                    replaces = reservation.replaces = earlier.id if earlier else 0
            generation = 0 if sealed else self._generation
            store.add(record, reservation.evidence, generation=generation, replaces=replaces, of=reservation.of)
            if not reservation.replaces:
                site, fingerprint = reservation.site, reservation.fingerprint
                store.note_form(site, in_form=fingerprint.in_form)
                note_once(store, record.url, site, fingerprint, everywhere=not record.delivered)
        finally:
            self.spent["store"] += perf_counter() - begun

    def release(self, reservation: Reservation) -> None:
        """The page is no more on its way; if it was not filed, its item was lost, and it was never here."""
        self._in_flight.remove(reservation)
        reservation.settle()

    def withdraw(self, id: int) -> None:
        """Take back a page that was committed."""
        self.store.withdraw(self._generation, id)

    def seal(self, ids: Iterable[int] | None = None) -> None:
        """The feeds that hold these pages are stored: keep them for good; without ids, all that are not sealed yet."""
        self.store.seal(self._generation, self.store.unsealed(self._generation) if ids is None else ids)

    def proposed(self, keys: Iterable[int]) -> tuple[int, ...]:
        """The earlier pages that a page with these keys is compared with, by what the store tells of them."""
        return candidates(self._method, self.store, keys).ids

    @property
    def in_flight(self) -> InFlight:
        """The pages that are on their way."""
        return self._in_flight

    @property
    def common(self) -> int:
        """From how many pages on a key is no evidence."""
        return self._method.common

    @property
    def generation(self) -> int:
        """Names the crawl: the time at which it began, in nanoseconds since 1970."""
        return self._generation

    def trim(self) -> None:
        """At the end of a crawl: forget what is too much, as far as its own pages made it so."""
        begun = perf_counter()
        try:
            self._ageing.trim()
        finally:
            self.spent["store"] += perf_counter() - begun

    def end(self) -> int:
        """The crawl is over; returns the number of pages that are not sealed."""
        return self.store.end(self._generation)
