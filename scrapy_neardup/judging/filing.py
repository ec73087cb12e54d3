"""A page on its way to its verdict, where all crawlers of a server see it; see ``stores/pending`` for why that does.

First what the page is filed under is looked up, and the page filed, in one step; then the records of what was found are
fetched. By these the detector judges, which is the same as on a disk. So a verdict takes two ways to the server and
back, and what it writes goes on its way while others are judged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from scrapy_neardup.errors import StoreError
from scrapy_neardup.judging.awaited import Awaited
from scrapy_neardup.judging.detector import Detector
from scrapy_neardup.judging.reservations import Blocked, Earlier, Reservation, Ruling
from scrapy_neardup.judging.transactions import Transactions, wanted
from scrapy_neardup.model import Fingerprint, Kind, Page, Verdict
from scrapy_neardup.stores import Record, layout
from scrapy_neardup.stores.leading import ALL
from scrapy_neardup.stores.pending import PendingPage, PendingPlace, ask, heads_of, seen
from scrapy_neardup.stores.redis import RedisStore
from scrapy_neardup.stores.redis_async import PAUSES, AsyncLink, NoAnswer
from scrapy_neardup.stores.redis_counting import OvertakenError
from scrapy_neardup.stores.redis_program import Program
from scrapy_neardup.stores.view import PageView

#: Seconds between two looks at a crawl that was not heard of.
_AGAIN = 1.0


class Filings(Transactions):
    """The pages of one crawl that are judged, or on their way."""

    def __init__(
        self, detector: Detector, store: RedisStore, link: AsyncLink, on_error: Callable[[StoreError], None]
    ) -> None:
        """As for ``Transactions``."""
        super().__init__(detector, store, link, on_error)
        self.filings: dict[PendingPlace, Filing] = {}
        self.on_their_way: dict[Reservation, Filing] = {}
        self.awaited = Awaited(link, partial(self.later, writes=False))

    def filing(self, page: Page) -> Filing:
        """A page that is to be judged; to be entered, and left when its verdict is known."""
        return Filing(self, page)


class Filing:
    """One page while it is judged, and until it is known what became of it."""

    #: As others see the page; there from the first check on.
    pending: PendingPage
    #: How often the server had been gone when it was filed there (``AsyncLink.breaks``).
    breaks = 0

    def __init__(self, crawl: Filings, page: Page) -> None:
        self.view = PageView()
        self._crawl = crawl
        self._page = page
        self._fingerprint: Fingerprint | None = None
        #: Who was there before this page, and is still to be heard of.
        self._earlier: list[PendingPlace] = []
        self._is_filed = self._is_reserved = self._is_left = False
        #: Those before this page that took too long. It is judged without them.
        self._given_up: dict[PendingPlace, Reservation] = {}
        #: For which page this one waits, and since when. It waits anew as soon as one before it is gone.
        self._blocker, self._since = 0, 0.0
        self._waiting: list[Callable[[], None]] = []

    async def __aenter__(self) -> Filing:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_left = True
        if self._is_filed and not self._is_reserved:
            self._crawl.later(self.unfiled())

    async def check(self) -> Ruling:
        """Judge the page by what is there now; whoever is told to wait calls again. Raises StoreError."""
        crawl, detector = self._crawl, self._crawl.detector
        if not self._is_filed:
            self._fingerprint = detector.fingerprint(self._page)
            answers = await self._filed()
        else:
            answers = await self._looked()
        while True:
            self._take(answers)
            earlier = await self._heard()
            if earlier is not None:
                ruling = await crawl.done(partial(self._judged, earlier), self.view)
                if isinstance(ruling, Blocked):
                    self._wait_for(ruling.by)
                    return ruling
                if ruling.reservation is None:
                    self._is_filed = False
                    crawl.later(self._dropped())
                    return ruling
                twin = await self._claimed(ruling.reservation)
                if twin is None:
                    self._is_reserved = True
                    crawl.on_their_way[ruling.reservation] = self
                    return ruling
                self._earlier.append(twin)
            answers = await self._looked()

    def _judged(self, earlier: list[Reservation]) -> Ruling:
        in_flight = self._crawl.detector.in_flight
        assert isinstance(in_flight, Earlier)
        in_flight.show(earlier)
        return self._crawl.detector.check(self._page, self._fingerprint, given_up=[*self._given_up.values()])

    async def wait(self, by: Reservation, seconds: float) -> None:
        """Wait until a page before this one is settled, or give it up after ``seconds``. Raises StoreError.

        It is given up only if all crawls that have a page before this one were heard of after that time. One that was
        not may be dead or asleep: its place is free once its lease has ended, and the next page in line takes it.
        """
        loop = asyncio.get_running_loop()
        if by.record.id != self._blocker:
            self._blocker, self._since = by.record.id, loop.time()
        settled, ends = asyncio.Event(), self._since + seconds
        by.when_settled(settled.set)
        pause = ends - loop.time()
        while not await _is_set(settled, pause):
            is_all_there, is_heard = await self._asked_after_all(loop.time() - ends)
            if is_all_there and is_heard:
                place = self._place_of(by)
                self._earlier.remove(place)
                self._given_up[place] = by
            if is_heard or not is_all_there:
                return
            pause = _AGAIN

    async def _asked_after_all(self, seconds: float) -> tuple[bool, bool]:
        """Whether all pages before this one are there, and all their crawls were heard of in the last ``seconds``."""
        crawl, program = self._crawl, self._crawl.link.program()
        others = [place for place in self._earlier if place not in crawl.filings]
        if not others:
            return True, True
        for place in others:
            ask(program, place)
        answers = (await crawl.link.run(program))[1:]
        oldest = min(answers[1::2])  # the milliseconds that the leases last
        is_all_there = None not in answers[::2] and oldest >= 0
        return is_all_there, oldest > 1000 * (crawl.store.leases.seconds - seconds)

    # First way to the server: file, and look.

    def _provisional(self) -> PendingPage:
        """The page as others are to see it: an original with all its keys, until it is known what it is."""
        store, fingerprint = self._crawl.store, self._fingerprint
        id = store.new_id()
        keys, sketch = (fingerprint.keys, fingerprint.sketch) if fingerprint else ((), b"")
        if fingerprint is None and self._page.html:
            sketch = self._page.html.to_bytes(8, "big")
        similarity = 1.0 if fingerprint else 0.0
        return PendingPage(
            Record(id, layout.kept_url(self._page.url), id, similarity, keys, sketch),
            self._crawl.detector.generation,
        )

    async def _filed(self) -> Iterator[Any]:
        """Sent once: who is there before the page depends on when that is done. What failed is removed by the next."""
        crawl, failed, pauses = self._crawl, list[PendingPage](), iter(PAUSES)
        while True:
            self.pending = self._provisional()
            program = crawl.link.program()
            crawl.store.leases.expect(self.pending.crawl, program)
            for one in failed:
                one.remove(program, crawl.store.hashes)
            self.pending.file(program, crawl.store.hashes, looks=True)
            self._look_up(program)
            crawl.filings[self.pending.place] = self
            self.breaks = crawl.link.breaks
            try:
                self._is_filed = True
                found = await crawl.link.run_once(program)
                break
            except NoAnswer as error:
                failed.append(self.pending)
                del crawl.filings[self.pending.place]
                await crawl.link.wait(error, next(pauses, None))
        crawl.store.raise_for(found)
        answers = iter(found[1:])
        self._earlier = seen(next(answers), self.pending.place)
        return answers

    async def _looked(self) -> Iterator[Any]:
        program = self._crawl.link.program()
        self._look_up(program)
        return iter((await self._crawl.link.run(program))[1:])

    def _look_up(self, program: Program) -> None:
        """What is known of a page without asking the state: its rows, those of the page it names, its postings."""
        page, store, detector = self._page, self._crawl.store, self._crawl.detector
        urls = [layout.url_key(url, store.hashes) for url in (page.url, page.canonical) if url]
        rows = [*urls, layout.judgement_key(page.url, store.hashes)]
        keys = self._fingerprint.keys if self._fingerprint else ()
        self.view = PageView()
        self._take = wanted(program, self.view, rows, [(key, detector.common) for key in keys], store.width)

    # Second way: what was found.

    async def _heard(self) -> list[Reservation] | None:
        """The earlier pages that are on their way; None if one is no more, so that all is to be looked up anew."""
        crawl, program = self._crawl, self._crawl.link.program()
        for place in self._earlier:
            ask(program, place)
        rows, postings = self._found()
        take = wanted(program, self.view, rows, postings, crawl.store.width)
        if program.is_empty:
            return []
        answers = iter((await crawl.link.run(program))[1:])
        found, is_one_gone = [], False
        for place in list(self._earlier):
            packed, lasts = next(answers), next(answers)
            if packed is not None:
                record = Record.unpack(place.id, packed)
                if lasts >= 0:
                    found.append(_as_reservation(record))
                    continue
                if not await self._take_away(PendingPage(record, place.crawl)):
                    is_one_gone = True  # its crawl is back: it is to be heard anew
                    continue
            self._earlier.remove(place)
            is_one_gone, self._blocker = True, 0
        take(answers)
        return None if is_one_gone else found

    def _found(self) -> tuple[list[bytes], list[tuple[int, int]]]:
        rows, postings = list[bytes](), list[tuple[int, int]]()
        for key, seen_at in self.view.rows.items():
            if key[:1] == b"u" and seen_at is not None:
                id = layout.unpack_seen(seen_at)[0]
                rows.append(layout.record_key(id))
                postings.append((id, ALL))
        if self._fingerprint is not None:
            self._crawl.store.view = self.view
            try:
                ids = self._crawl.detector.proposed(self._fingerprint.keys)
            finally:
                self._crawl.store.view = None
            rows += [layout.record_key(id) for id in ids]
            postings += [(id, ALL) for id in ids]
        return rows, postings

    async def _take_away(self, page: PendingPage) -> bool:
        """One whose crawl is no more: it cannot be committed from now on. False if the crawl is back."""
        program = self._crawl.link.program()
        page.take_away(program, self._crawl.store.hashes)
        found = await self._crawl.link.run(program)
        return bool(found[0] == 1)

    async def _claimed(self, reservation: Reservation) -> PendingPlace | None:
        """File the page under what it has come to have beside its keys, unless an earlier one is there: that one."""
        more = [key for key in reservation.fingerprint.keys if key not in self.pending.record.keys]
        if not more:
            return None
        crawl, record = self._crawl, self.pending.record
        claimed = PendingPage(
            Record(record.id, record.url, record.original, record.similarity, (*record.keys, *more), record.sketch),
            self.pending.crawl,
        )
        program = crawl.link.program()
        claimed.file(program, crawl.store.hashes)
        program.entered(heads_of(more))
        found = seen((await crawl.link.run(program))[1], claimed.place)
        others = [place for place in found if place not in self._given_up]
        if not others:
            self.pending = claimed
            return None
        program = crawl.link.program()
        claimed.remove(program, crawl.store.hashes)
        self.pending.file(program, crawl.store.hashes)
        await crawl.link.run(program)
        return others[0]

    # What becomes of it.

    async def _dropped(self) -> None:
        """Write what is known of a page that does not pass; if others were faster, there is nothing to add."""
        crawl = self._crawl
        program = crawl.store.written(self.view.changes, self.view.asked)
        self.pending.remove(program, crawl.store.hashes)
        found = await crawl.link.run(program)
        try:
            crawl.store.raise_for(found)
        except OvertakenError:
            await self.unfiled()
        else:
            crawl.counted(self.view)
        finally:
            self.is_over()

    async def unfiled(self) -> None:
        """The page was never here."""
        self._is_filed = False
        program = self._crawl.link.program()
        self.pending.remove(program, self._crawl.store.hashes)
        try:
            await self._crawl.link.run(program)
        finally:
            self.is_over()

    def is_over(self) -> None:
        """Tell those of this crawl that wait."""
        self._crawl.filings.pop(self.pending.place, None)
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()

    def _wait_for(self, by: Reservation) -> None:
        place = self._place_of(by)
        if (filing := self._crawl.filings.get(place)) is not None:
            filing._waiting.append(by.settle)
        else:
            self._crawl.awaited.wait(place, by, lambda: self._is_left or place in self._given_up)

    def _place_of(self, by: Reservation) -> PendingPlace:
        return next(one for one in self._earlier if one.id == by.record.id)


async def _is_set(event: asyncio.Event, seconds: float) -> bool:
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(event.wait(), max(0.0, seconds))
    return event.is_set()


def _as_reservation(record: Record) -> Reservation:
    fingerprint = Fingerprint(record.keys, record.sketch)
    return Reservation(Verdict(Kind.UNIQUE, record.url, record.id), fingerprint, record)
