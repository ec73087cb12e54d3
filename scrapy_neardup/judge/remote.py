"""A crawl on a server, where many crawlers judge at once.

The first request for a page registers it in flight and reads what it is filed under. The second one reads the records
found so. The detector then judges as on a disk, and the crawl goes on while the result is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from math import inf
from typing import Any

from scrapy_neardup.errors import StoreError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Blocked, InFlight, Reservation, Ruling
from scrapy_neardup.judge.matching import candidates
from scrapy_neardup.judge.remote_state import RemoteState
from scrapy_neardup.model import Fingerprint, Kind, Page, Verdict
from scrapy_neardup.server.asynchronous import NoAnswer, Patience
from scrapy_neardup.server.claims import PageLost, PendingPage, PendingPlace, heads_of, places_in
from scrapy_neardup.server.program import Program
from scrapy_neardup.server.store import BATCH, RedisStore
from scrapy_neardup.server.transaction import OvertakenError, RemoteTransaction
from scrapy_neardup.state import layout
from scrapy_neardup.state.pages import ALL
from scrapy_neardup.state.record import Record

#: Seconds between two looks at a page of another crawler that blocks one of ours: the first, and at most.
_SOON, _LATE = 0.01, 0.2


class RemoteCrawl(RemoteState):
    """The pages of one crawl on a server.

    ``commit``, ``release``, ``roll_back`` and ``seal`` are those of the detector, but return before they are done.
    """

    def __init__(
        self,
        detector: Detector,
        on_error: Callable[[StoreError], None],
        on_lost: Callable[[], None] = lambda: None,
        patience: Patience | None = None,
    ) -> None:
        """``on_lost`` is called when the item of a page came through that the server has lost."""
        assert isinstance(detector.store, RedisStore)
        super().__init__(detector.store, on_error, patience)
        self.detector = detector
        #: The pages of this crawl that are in flight, and those of them that have passed.
        self.judgements: dict[PendingPlace, RemoteJudgement] = {}
        self.reserved: dict[Reservation, RemoteJudgement] = {}
        self._on_lost = on_lost
        self._breaks = self.link.breaks

    def judgement(self) -> RemoteJudgement:
        """The judgement of a page; enter it, and leave it with the verdict."""
        return RemoteJudgement(self)

    async def catch_up(self) -> None:
        """Exchange counts with the others. After a failover also remove pages of ours that are over."""
        if (breaks := self.link.breaks) != self._breaks:
            await self._remove_revived()
            self._breaks = breaks
        await self.exchange_counts()

    async def _remove_revived(self) -> None:
        """Remove pages of ours that are in flight again because the server lost their outcome: copies wait for them."""
        crawl = self.detector.generation
        for page in await asyncio.to_thread(self.store.journal.pages_in_flight, crawl):
            if page.place not in self.judgements:
                await self.link.send(page.unregister)

    # What becomes of a page.

    def commit(self, reservation: Reservation, *, sealed: bool) -> None:
        """The item came through."""
        self.start(self._commit(reservation, sealed))

    def release(self, reservation: Reservation) -> None:
        """The item was lost."""
        self.start(self._release(reservation))

    def roll_back(self, id: int) -> None:
        """Roll back a committed page."""
        self.start(self.transact(lambda: self.detector.roll_back(id), RemoteTransaction()), follows=True)

    def seal(self, ids: Iterable[int]) -> None:
        """The feeds that hold these pages are stored."""
        self.start(self._seal(list(ids)), follows=True)

    async def _commit(self, reservation: Reservation, sealed: bool) -> None:
        judgement = self.reserved.pop(reservation)
        key = layout.record_key(reservation.record.id)
        transaction, pending = judgement.transaction, judgement.pending

        def expect_in_flight(program: Program) -> None:
            pending.expect_in_flight(program, key, transaction.changes.puts[key])

        file = partial(self.detector.file, reservation, sealed=sealed)
        try:
            await self.transact(file, transaction, expect_in_flight, pending.unregister)
        except PageLost:
            if judgement.breaks == self.link.breaks:
                raise
            self._on_lost()  # the server lost it; it comes again
        finally:
            judgement.end()
            reservation.settle()

    async def _release(self, reservation: Reservation) -> None:
        try:
            await self.reserved.pop(reservation).unregister()
        finally:
            reservation.settle()

    async def _seal(self, ids: list[int]) -> None:
        rest = iter(ids)
        while some := list(islice(rest, BATCH)):
            transaction = RemoteTransaction()
            await self.fetch(transaction, [layout.journal_key(self.detector.generation, id) for id in some])
            replaced = [layout.unpack_id(packed) for packed in transaction.rows.values() if packed]
            await self.fetch(transaction, [layout.record_key(id) for id in replaced])
            await self.transact(partial(self.detector.seal, some), transaction)


class RemoteJudgement:
    """One page from its first check until its outcome is known. Enter it, and leave it with the verdict."""

    #: The page, its fingerprint, how others see it, and ``AsyncLink.breaks`` when it was registered.
    _page: Page
    _fingerprint: Fingerprint | None
    pending: PendingPage
    breaks: int

    def __init__(self, crawl: RemoteCrawl) -> None:
        self.transaction = RemoteTransaction()
        #: Whether the outcome is known.
        self.over = asyncio.Event()
        self._crawl = crawl
        self._link = crawl.link
        self._store = crawl.store
        #: Pages that came before this one and whose outcome is unknown, and those of them that took too long.
        self._earlier: list[PendingPlace] = []
        self._given_up: dict[PendingPlace, Reservation] = {}
        self._is_registered = self._is_reserved = False
        #: The page that blocks this one, and since when.
        self._blocker, self._since = 0, 0.0

    async def __aenter__(self) -> RemoteJudgement:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._is_registered and not self._is_reserved:
            self._crawl.start(self.unregister())

    async def check(self, page: Page) -> Ruling:
        """Judge the page by what the server has now. If it is blocked, wait and call again. Raises StoreError."""
        if self._is_registered:
            await self._look_up()
        else:
            self._page, self._fingerprint = page, self._crawl.detector.fingerprint(page)
            await self._register()
        while True:
            earlier = await self._fetch_earlier()
            if earlier is not None:
                ruling = await self._crawl.run(partial(self._judge, earlier), self.transaction)
                if isinstance(ruling, Blocked):
                    return ruling
                if ruling.reservation is None:
                    self._is_registered = False
                    self._crawl.start(self._write_dropped())
                    return ruling
                if await self._claim(ruling.reservation):
                    self._is_reserved = True
                    self._crawl.reserved[ruling.reservation] = self
                    return ruling
            await self._look_up()

    def _judge(self, earlier: list[Reservation]) -> Ruling:
        return self._crawl.detector.judge(self._page, self._fingerprint, InFlight(earlier), self.given_up)

    @property
    def given_up(self) -> Collection[Reservation]:
        """The pages before this one that took too long."""
        return self._given_up.values()

    async def wait(self, by: Reservation, seconds: float) -> None:
        """Wait until the outcome of an earlier page is known, or give it up after ``seconds``. Raises StoreError.

        It is given up only if all crawls with earlier pages have renewed their leases after that time. A silent crawl
        may be dead: its place is free once its lease has ended, and the next page in line takes it.
        """
        loop = asyncio.get_running_loop()
        if by.record.id != self._blocker:
            self._blocker, self._since = by.record.id, loop.time()
        place = next(place for place in self._earlier if place.id == by.record.id)
        ours, ends, pause = self._crawl.judgements.get(place), self._since + seconds, _SOON
        over = ours.over if ours is not None else asyncio.Event()
        while True:
            left = ends - loop.time()
            until_look = pause - loop.time() % pause if pause else 0.0  # all look at the same times, so in one pipeline
            if await _is_set(over, left if left > 0 and (ours or left < until_look) else until_look):
                return
            pause, late = min(2 * pause, _LATE), loop.time() - ends
            is_there, seconds_left = await self._ask_for(self._earlier if late >= 0 else [place])
            if not is_there:
                return
            if late >= 0 and seconds_left > self._store.leases.seconds - late:
                self._earlier.remove(place)
                self._given_up[place] = by
                return

    async def _ask_for(self, places: list[PendingPlace]) -> tuple[bool, float]:
        """Whether pages of other crawls are all there, and how many seconds the first of their leases lasts."""
        program = self._link.program()
        for place in places:
            if place not in self._crawl.judgements:
                place.add_reads(program)
        if program.is_empty:
            return True, inf
        answers = (await self._link.run(program))[1:]
        shortest = min(answers[1::2])
        return None not in answers[::2] and shortest >= 0, shortest / 1000

    # First request: register the page, and look it up.

    def _provisional_page(self) -> PendingPage:
        """Return the page as others see it first: an original with all its keys."""
        id, fingerprint = self._store.new_id(), self._fingerprint
        keys, sketch = (fingerprint.keys, fingerprint.sketch) if fingerprint else ((), b"")
        if fingerprint is None and self._page.html:
            sketch = self._page.html.to_bytes(8, "big")
        similarity = 1.0 if fingerprint else 0.0  # 0 says that it is compared with no other page
        url = layout.kept_url(self._page.url)
        record = Record(id=id, url=url, original=id, similarity=similarity, keys=keys, sketch=sketch)
        return PendingPage.make(record, self._crawl.detector.generation, self._store.hashes)

    async def _register(self) -> None:
        """Register the page. A program without an answer is not repeated, because its time decides who was earlier.

        The next program registers the page anew, and removes what the lost one may have registered.
        """
        crawl, lost = self._crawl, list[PendingPage]()
        while True:
            self.pending = self._provisional_page()
            program = self._link.program()
            self._store.leases.expect(self.pending.place.crawl, program)
            for page in lost:
                page.unregister(program)
            self.pending.register(program)
            program.in_flight(self.pending.heads)
            take = self._add_look_up(program)
            crawl.judgements[self.pending.place] = self
            self.breaks = self._link.breaks
            self._is_registered = True
            try:
                found = await self._link.run_once(program)
                break
            except NoAnswer as error:
                del crawl.judgements[self.pending.place]
                await self._link.wait(error, len(lost))
                lost.append(self.pending)
        self._store.kv.raise_for(found)
        answers = iter(found[1:])
        self._earlier = places_in(next(answers), self.pending.place)
        take(answers)

    async def _look_up(self) -> None:
        program = self._link.program()
        take = self._add_look_up(program)
        take(iter((await self._link.run(program))[1:]))

    def _add_look_up(self, program: Program) -> Callable[[Iterator[Any]], None]:
        """Begin a new transaction with the rows of the page's URLs and its postings."""
        page, hashes, common = self._page, self._store.hashes, self._crawl.detector.method.common
        rows = [layout.url_key(url, hashes) for url in (page.url, page.canonical) if url]
        rows.append(layout.judgement_key(page.url, hashes))
        keys = self._fingerprint.keys if self._fingerprint else ()
        self.transaction = RemoteTransaction()
        return self.transaction.add_reads(program, rows, [(key, common) for key in keys])

    # Second request: what the first one found.

    async def _fetch_earlier(self) -> list[Reservation] | None:
        """Fetch the found records. Return the earlier pages in flight; None if one is gone: then look up again."""
        program = self._link.program()
        for place in self._earlier:
            place.add_reads(program)
        take = self.transaction.add_reads(program, *self._wanted())
        if program.is_empty:
            return []
        answers = iter((await self._link.run(program))[1:])
        found, is_one_gone = list[Reservation](), False
        for place in list(self._earlier):
            packed, milliseconds_left = next(answers), next(answers)
            if packed is not None:
                record = Record.unpack(place.id, packed)
                if milliseconds_left >= 0:
                    found.append(_as_reservation(record))
                    continue
                abandoned = PendingPage.make(record, place.crawl, self._store.hashes)
                if (await self._link.send(abandoned.unregister_abandoned))[0] != 1:
                    is_one_gone = True  # its crawl is back, so it is read again
                    continue
            self._earlier.remove(place)
            is_one_gone, self._blocker = True, 0
        take(answers)
        return None if is_one_gone else found

    def _wanted(self) -> tuple[list[bytes], list[tuple[int, int]]]:
        """Return the records and groups of the pages that the first request found."""
        seen = [row for key, row in self.transaction.rows.items() if key[:1] == b"u" and row is not None]
        ids = [layout.unpack_seen(row)[0] for row in seen]
        if self._fingerprint is not None:
            propose = partial(candidates, self._crawl.detector.method, self._store, self._fingerprint.keys)
            ids += self._crawl.run_once(propose, self.transaction).ids
        return [layout.record_key(id) for id in ids], [(id, ALL) for id in ids]

    async def _claim(self, reservation: Reservation) -> bool:
        """Register the page under the keys that its verdict added; False if an earlier page has one of them."""
        record, place = self.pending.record, self.pending.place
        more = [key for key in reservation.fingerprint.keys if key not in record.keys]
        if not more:
            return True
        with_more = replace(record, keys=(*record.keys, *more))
        claimed = PendingPage.make(with_more, place.crawl, self._store.hashes)
        found = await self._link.send(claimed.register, lambda program: program.in_flight(heads_of(more)))
        others = [one for one in places_in(found[1], place) if one not in self._given_up]
        if others:
            await self._link.send(claimed.unregister, self.pending.register)
            self._earlier.append(others[0])
            return False
        self.pending = claimed
        return True

    # The outcome.

    async def _write_dropped(self) -> None:
        """Write what the state keeps of a page that does not pass; nothing if others wrote first."""
        transaction = self.transaction
        program = self._store.kv.write_program(transaction.changes, transaction.read_set)
        self.pending.unregister(program)
        found = await self._link.run(program)
        try:
            self._store.kv.raise_for(found)
        except OvertakenError:
            await self.unregister()
        else:
            self._crawl.count(transaction)
        finally:
            self.end()

    async def unregister(self) -> None:
        """Remove the page, as if it had never come."""
        self._is_registered = False
        try:
            await self._link.send(self.pending.unregister)
        finally:
            self.end()

    def end(self) -> None:
        """Wake the pages of this crawl that wait for this one."""
        self._crawl.judgements.pop(self.pending.place, None)
        self.over.set()


async def _is_set(event: asyncio.Event, seconds: float) -> bool:
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(event.wait(), max(0.0, seconds))
    return event.is_set()


def _as_reservation(record: Record) -> Reservation:
    fingerprint = Fingerprint(record.keys, record.sketch)
    return Reservation(Verdict(Kind.UNIQUE, record.url, record.id), fingerprint, record)
