"""The detector: judges a page against the state, then files it or rolls it back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from time import perf_counter
from typing import TypeVar
from weakref import WeakKeyDictionary

from scrapy_neardup.judge.context import Context, CrawlContext, Policy
from scrapy_neardup.judge.in_flight import Blocked, InFlight, Reservation, Ruled, Ruling
from scrapy_neardup.judge.rules import count_sentences, judge_bytes, judge_page
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Outcome, Page, Verdict
from scrapy_neardup.page.source import BodyHasher
from scrapy_neardup.state.expiry import Bounds
from scrapy_neardup.state.pages import PageStore

R = TypeVar("R", Ruling, Ruled | None)


#: Steps of expiry in a row without an expired page, after which the end of a crawl tries no more.
_IDLE = 1000
#: The pages in flight of each store of this process: all crawls on a store share them.
_IN_FLIGHT: WeakKeyDictionary[PageStore, InFlight] = WeakKeyDictionary()


class Detector(CrawlContext):
    """Judges the pages of one crawl against the state, and against pages in flight.

    Pages are compared with originals. A copy that differs much from its original is filed as a variant, so a page that
    copies the copy is found too. That page is dropped for the original and is never a variant itself. So a group cannot
    drift further than one step.

    A copy that passes by the policy is reserved like any other page. A copy that is better than the page that leads its
    group passes and leads from then on: see ``groups.outcome_of_copy``.
    """

    def __init__(
        self,
        method: Method,
        store: PageStore,
        *,
        who: str,
        policy: Policy = Policy(),  # noqa: B008  # it is frozen
        job: str = "",
        bounds: Bounds | None = None,
        on_expired: Callable[[int], None] = lambda pages: None,
    ) -> None:
        """``who`` names the crawl; ``job`` is as for ``PageStore.begin``.

        ``bounds``: how long, and how many pages, the state knows. The crawl forgets the others, a few with each page
        that it judges; ``on_expired`` gets the number of pages that were forgotten.
        """
        super().__init__(method, store, policy, store.journal.begin(who, job))
        #: Seconds spent in the method and in the store.
        self.spent = {"method": 0.0, "store": 0.0}
        #: The pages in flight, of all crawls of this process; on a server the server has them.
        self.in_flight = _IN_FLIGHT.setdefault(store, InFlight())
        #: Makes the digests by which bodies are known again under these rules.
        rules = {"recipe": store.recipe, "decisions": self.method.decisions(), **policy.rules()}
        self.bodies = BodyHasher(store.hashes, rules)
        self._bounds = bounds
        self._on_expired = on_expired
        self._judged = 0

    # Judging. Each of these raises StoreError if the state fails; then nothing is reserved.

    def check(self, page: Page, given_up: Collection[Reservation] = ()) -> Ruling:
        """Judge a page, and reserve it if it passes.

        ``given_up``: pages in flight that took too long. The page is judged without them; if it would be unique, it is
        unjudged (``in_flight``) and still reserved.
        """
        ruling = self.judge(judge_page, page, self.fingerprint(page), self.in_flight, given_up)
        if isinstance(ruling, Ruled) and ruling.reservation is not None:
            self.in_flight.add(ruling.reservation)
        return ruling

    def judge(
        self,
        rule: Callable[[Context], R],
        page: Page,
        fingerprint: Fingerprint | None,
        in_flight: InFlight,
        given_up: Collection[Reservation] = (),
        *,
        writes: bool = True,
    ) -> R:
        """Judge a page by a rule against the state and pages ``in_flight``, without reserving it.

        ``given_up`` is as for ``check``. ``writes``: whether the state learns of the page, and expires others.
        """
        begun = perf_counter()
        try:
            if writes and self._bounds is not None:
                self._judged += 1
                self._expire()  # before the rule reads anything: this may be the page's own record
            ruling = rule(Context(self, page, fingerprint, in_flight, given_up))
            if writes and isinstance(ruling, Ruled) and ruling.write is not None:
                ruling.write()
            return ruling
        finally:
            self.spent["store"] += perf_counter() - begun

    def may_know(self, url: str, body: int) -> bool:
        """Whether the state knows these bytes at this URL, and ``check_bytes`` may save reading the page.

        Every page of a state on a server is read: to ask the server takes as long.
        """
        known = self.store.find(url) if body and not self.store.is_shared else None
        return known is not None and known.body == body

    def check_bytes(self, url: str, body: int, *, writes: bool = True) -> Ruled | None:
        """Rule that a page is unchanged by the digest ``body`` of its bytes; None if it must be read."""
        if not self.may_know(url, body):
            return None
        return self.judge(judge_bytes, Page(url, body=body), None, self.in_flight, writes=writes)

    def judge_now(self, page: Page, *, sealed: bool) -> Verdict:
        """Judge a page that counts at once, permanently if ``sealed``.

        A crawl of this process may have a near-duplicate in flight on the same state. This page does not wait for it.
        """
        fingerprint = self.fingerprint(page)
        given_up: list[Reservation] = []
        while isinstance(ruling := self.judge(judge_page, page, fingerprint, self.in_flight, given_up), Blocked):
            given_up.append(ruling.by)
        if ruling.reservation is not None:
            self._file(ruling.reservation, sealed)  # nothing changed since it was judged
        return ruling.verdict

    def look(self, page: Page) -> Verdict:
        """The verdict that a page would get: unjudged (``in_flight``) while a page in flight decides it.

        Nothing is reserved or written.
        """
        ruling = self.judge(judge_page, page, self.fingerprint(page), self.in_flight, writes=False)
        if isinstance(ruling, Blocked):
            return Verdict(Outcome.UNJUDGED, page.url, reason="in_flight")
        return ruling.verdict if self.store.record(ruling.verdict.id) else replace(ruling.verdict, id=0)

    # Fingerprints.

    def fingerprint(self, page: Page) -> Fingerprint | None:
        """The fingerprint of a page; None if it is compared with no other page."""
        if page.row or page.unread or self.policy.why_unjudged(page.text):
            return None
        begun = perf_counter()
        try:
            return self.method.for_state(page, self.store.on_site(page.site))
        finally:
            self.spent["method"] += perf_counter() - begun

    # The outcome of a page.

    def commit(self, reservation: Reservation, *, sealed: bool) -> None:
        """The item came through: the page counts, permanently if ``sealed``. Raises StoreError if that failed."""
        try:
            self.file(reservation, sealed=sealed)
        finally:
            self.release(reservation)

    def file(self, reservation: Reservation, *, sealed: bool) -> None:
        """Write a reserved page and count its sentences once; pages that wait for it go on waiting."""
        # The earlier version may be rolled back by now. Another version may have come through, if one of the two
        # gave up the other. On a server that may happen at this moment: the write depends on the row of the URL.
        earlier = self.store.find(reservation.record.url)
        if earlier is None or earlier.id != reservation.record.id:  # else an earlier attempt has written it
            reservation.replaces = earlier.id if earlier else 0
        self._file(reservation, sealed)

    def _file(self, reservation: Reservation, sealed: bool) -> None:
        begun, store, record, replaces = perf_counter(), self.store, reservation.record, reservation.replaces
        generation, copied_from = 0 if sealed else self.generation, reservation.copied_from
        try:
            store.add(record, reservation.evidence, generation=generation, replaces=replaces, copied_from=copied_from)
            if not replaces:
                site, fingerprint = reservation.site, reservation.fingerprint
                store.note_form(site, in_form=fingerprint.in_form)
                count_sentences(store, record.url, site, fingerprint, everywhere=record.is_original)
        finally:
            self.spent["store"] += perf_counter() - begun

    def release(self, reservation: Reservation) -> None:
        """The page is no longer in flight; if it was not filed, its item was lost and the state never knew it."""
        self.in_flight.remove(reservation)
        reservation.settle()

    def roll_back(self, id: int) -> None:
        self.store.journal.roll_back(self.generation, id)

    def seal(self, ids: Iterable[int] | None = None) -> None:
        """The feeds of these pages are stored: keep them permanently; without ids, all unsealed pages of the crawl."""
        self.store.journal.seal(self.generation, self.store.journal.unsealed(self.generation) if ids is None else ids)

    def end(self) -> int:
        """End the crawl; returns the number of unsealed pages."""
        return self.store.journal.end(self.generation)

    # Expiry.

    def trim(self) -> None:
        """At the end of a crawl, expire as many pages as it judged, while the state has too many.

        Pages that were unsealed until now may go.
        """
        begun, idle = perf_counter(), 0
        while self._judged and idle < _IDLE and self._bounds and self._bounds.exceeded(self.store.pages):
            self._judged -= 1
            idle = 0 if self._expire() else idle + 1
        self.spent["store"] += perf_counter() - begun

    def _expire(self) -> int:
        expired = self.store.expire(self._bounds) if self._bounds is not None else 0
        if expired:
            self._on_expired(expired)
        return expired
