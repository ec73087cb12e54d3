"""A page judged on a server, where many crawlers judge at once.

The first request registers the page in flight and reads what it is filed under. The second one reads the records found
so. The detector then judges as on a disk, and the crawl goes on while the result is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from scrapy_neardup.errors import StoreError
from scrapy_neardup.hashing.keys import pack_key
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Blocked, Earlier, Reservation, Ruling
from scrapy_neardup.model import Fingerprint, Kind, Page, Verdict
from scrapy_neardup.server.asynchronous import AsyncLink, NoAnswer
from scrapy_neardup.server.counting import FEW
from scrapy_neardup.server.engine import TRIES, OvertakenError, overtaken_too_often
from scrapy_neardup.server.in_flight import PendingPage, PendingPlace, heads_of, places_in
from scrapy_neardup.server.program import Program
from scrapy_neardup.server.rows import NotFetched, RemoteTransaction, newest_of
from scrapy_neardup.server.store import RedisStore
from scrapy_neardup.state import layout
from scrapy_neardup.state.pages import ALL
from scrapy_neardup.state.record import Record

T = TypeVar("T")
#: Seconds between two looks at the pages that others wait for: the first, and at most.
_SOON, _LATE = 0.01, 0.2
#: Seconds between two looks at a silent crawl.
_AGAIN = 1.0


class RemoteState:
    """The state as the pages of one crawl use it: synchronous code runs in transactions that are fetched and written.

    Nothing else runs during one run of synchronous code, so one store serves all pages.
    """

    def __init__(
        self, detector: Detector, store: RedisStore, link: AsyncLink, on_error: Callable[[StoreError], None]
    ) -> None:
        """``detector`` uses ``store`` and an ``Earlier``. ``on_error`` gets errors of work that nobody awaits."""
        self.detector = detector
        self.store = store
        self.link = link
        self.blockers = BlockerWatch(link, partial(self.start, writes=False))
        #: The pages of this crawl that are in flight.
        self.judgements: dict[PendingPlace, RemoteJudgement] = {}
        #: Those whose page has passed.
        self.reserved: dict[Reservation, RemoteJudgement] = {}
        self.writes: set[asyncio.Task[None]] = set()
        self._other_tasks: set[asyncio.Task[None]] = set()
        self._on_error = on_error

    def start(self, work: Coroutine[Any, Any, None], *, writes: bool = True) -> None:
        """Start work that nobody awaits. What needs an order waits for the work that ``writes``."""
        running = self.writes if writes else self._other_tasks
        task = asyncio.ensure_future(self._report_errors(work))
        running.add(task)
        task.add_done_callback(running.discard)

    async def finish(self) -> None:
        """Wait until all started work is done."""
        while running := self.writes | self._other_tasks:
            await asyncio.wait(running)

    async def _report_errors(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except StoreError as error:
            self._on_error(error)

    async def transact(
        self,
        work: Callable[[], T],
        transaction: RemoteTransaction,
        extend: Callable[[Program], None] = lambda program: None,
    ) -> T:
        """Run synchronous work and write its changes; again, until nobody writes first.

        ``extend`` adds to the program what rows cannot say.
        """
        for _ in range(TRIES):
            result = await self.run(work, transaction)
            program = self.store.write_program(transaction.changes, transaction.read_set)
            extend(program)
            try:
                self.store.raise_for(await self.link.run(program))
            except OvertakenError:
                transaction.discard_read_set()
                continue
            self.count(transaction)
            return result
        raise overtaken_too_often(self.store.location)

    async def run(self, work: Callable[[], T], transaction: RemoteTransaction) -> T:
        """Return the result of synchronous work; its changes are in the transaction."""
        while True:
            transaction.restart()
            try:
                return self.run_once(work, transaction)
            except NotFetched as error:
                missing = error
            if missing.scan:  # rare, and may take long
                rows = await self.link.in_thread(lambda prefix=missing.scan: self.store.read_rows(prefix))  # type: ignore[misc]
                transaction.scans[missing.scan] = rows
            elif missing.postings:
                await self.fetch(transaction, postings=[missing.postings])
            else:
                await self.fetch(transaction, [missing.row])

    def run_once(self, work: Callable[[], T], transaction: RemoteTransaction) -> T:
        """Return the result of synchronous work that finds all rows in the transaction; raises NotFetched."""
        self.store.transaction = transaction
        try:
            return work()
        finally:
            self.store.transaction = None

    async def fetch(
        self, transaction: RemoteTransaction, rows: Iterable[bytes] = (), postings: Iterable[tuple[int, int]] = ()
    ) -> None:
        """Fetch missing rows and postings in one request."""
        program = self.link.program()
        take = self.add_reads(program, transaction, rows, postings)
        if not program.is_empty:
            take(iter((await self.link.run(program))[1:]))

    def add_reads(
        self,
        program: Program,
        transaction: RemoteTransaction,
        rows: Iterable[bytes],
        postings: Iterable[tuple[int, int]],
    ) -> Callable[[Iterator[Any]], None]:
        """Have a program read what is missing. Return the function that takes its answers into the transaction."""
        new_rows = [row for row in dict.fromkeys(rows) if row not in transaction.rows]
        by_limit: dict[int, list[int]] = {}
        for key, limit in dict.fromkeys(postings):
            if (key, limit) not in transaction.filed:
                by_limit.setdefault(limit, []).append(key)
        for row in new_rows:
            program.get(row)
        for limit, keys in by_limit.items():
            program.newest([pack_key(key) for key in keys], limit)

        def take(answers: Iterator[Any]) -> None:
            transaction.rows.update((row, next(answers)) for row in new_rows)
            for limit, keys in by_limit.items():
                found = newest_of(next(answers), limit)
                transaction.filed.update(((key, limit), found.get(pack_key(key), [])) for key in keys)

        return take

    def count(self, transaction: RemoteTransaction) -> None:
        """Count the sentences of a written page. Others learn of them later."""
        self.store.boilerplate.count(transaction.notes)
        if self.store.boilerplate.has_entry_to_publish:
            self.start(self._publish(), writes=False)

    async def _publish(self) -> None:
        with suppress(NoAnswer):  # it may have been published, and must not be twice
            while self.store.boilerplate.publish(program := self.link.program()):
                await self.link.run_once(program)

    async def catch_up(self) -> None:
        """Publish what was counted here, and count what others have published."""
        await self._publish()
        many = FEW
        while many == FEW:
            entries = await self.link.read_stream(self.store.boilerplate.stream_position)
            self.store.boilerplate.count_entries(entries)
            many = len(entries)


class RemoteJudgement:
    """One page from its first check until its outcome is known. Enter it, and leave it with the verdict."""

    #: The page as others see it, and ``AsyncLink.breaks`` when it was registered; both from the first check on.
    pending: PendingPage
    breaks = 0

    def __init__(self, state: RemoteState, page: Page) -> None:
        self.transaction = RemoteTransaction()
        self._state = state
        self._page = page
        self._fingerprint: Fingerprint | None = None
        #: Pages that came before this one and whose outcome is unknown.
        self._earlier: list[PendingPlace] = []
        #: Earlier pages that took too long; this one is judged without them.
        self._given_up: dict[PendingPlace, Reservation] = {}
        self._is_registered = self._is_reserved = self._is_left = False
        #: The page that blocks this one, and since when.
        self._blocker, self._since = 0, 0.0
        #: Calls for pages of this crawl that wait for this one.
        self._when_over: list[Callable[[], None]] = []

    async def __aenter__(self) -> RemoteJudgement:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_left = True
        if self._is_registered and not self._is_reserved:
            self._state.start(self.unregister())

    async def check(self) -> Ruling:
        """Judge the page by what the server has now. If it is blocked, wait and call again. Raises StoreError."""
        if self._is_registered:
            await self._look_up()
        else:
            await self._register()
        while True:
            earlier = await self._fetch_earlier()
            if earlier is not None:
                ruling = await self._state.run(partial(self._judge, earlier), self.transaction)
                if isinstance(ruling, Blocked):
                    self._wait_for(ruling.by)
                    return ruling
                if ruling.reservation is None:
                    self._is_registered = False
                    self._state.start(self._write_dropped())
                    return ruling
                if await self._claim(ruling.reservation):
                    self._is_reserved = True
                    self._state.reserved[ruling.reservation] = self
                    return ruling
            await self._look_up()

    def _judge(self, earlier: list[Reservation]) -> Ruling:
        detector = self._state.detector
        assert isinstance(detector.in_flight, Earlier)
        detector.in_flight.show(earlier)
        return detector.check(self._page, self._fingerprint, given_up=[*self._given_up.values()])

    async def wait(self, by: Reservation, seconds: float) -> None:
        """Wait until the outcome of an earlier page is known, or give it up after ``seconds``. Raises StoreError.

        It is given up only if all crawls with earlier pages have renewed their leases after that time. A silent crawl
        may be dead: its place is free once its lease has ended, and the next page in line takes it.
        """
        loop = asyncio.get_running_loop()
        if by.record.id != self._blocker:
            self._blocker, self._since = by.record.id, loop.time()
        settled, ends = asyncio.Event(), self._since + seconds
        by.when_settled(settled.set)
        pause = ends - loop.time()
        while not await _is_set(settled, pause):
            is_complete, is_alive = await self._ask_for_earlier(loop.time() - ends)
            if is_complete and is_alive:
                place = self._place_of(by)
                self._earlier.remove(place)
                self._given_up[place] = by
            if is_alive or not is_complete:
                return
            pause = _AGAIN

    async def _ask_for_earlier(self, seconds: float) -> tuple[bool, bool]:
        """Whether all earlier pages are still there, and all their crawls renewed a lease in the last ``seconds``."""
        program = self._state.link.program()
        others = [place for place in self._earlier if place not in self._state.judgements]
        if not others:
            return True, True
        for place in others:
            place.add_reads(program)
        answers = (await self._state.link.run(program))[1:]
        shortest = min(answers[1::2])
        is_complete = None not in answers[::2] and shortest >= 0
        return is_complete, shortest > 1000 * (self._state.store.leases.seconds - seconds)

    # First request: register the page, and look it up.

    def _provisional_page(self) -> PendingPage:
        """Return the page as others see it first: an original with all its keys."""
        id, fingerprint = self._state.store.new_id(), self._fingerprint
        keys, sketch = (fingerprint.keys, fingerprint.sketch) if fingerprint else ((), b"")
        if fingerprint is None and self._page.html:
            sketch = self._page.html.to_bytes(8, "big")
        record = Record(id, layout.kept_url(self._page.url), id, 1.0 if fingerprint else 0.0, keys, sketch)
        return PendingPage(record, self._state.detector.generation)

    async def _register(self) -> None:
        """Register the page. A program without an answer is not repeated, because its time decides who was earlier.

        The next program registers the page anew, and removes what the lost one may have registered.
        """
        state, store, lost = self._state, self._state.store, list[PendingPage]()
        self._fingerprint = state.detector.fingerprint(self._page)
        while True:
            self.pending = self._provisional_page()
            program = state.link.program()
            store.leases.expect(self.pending.crawl, program)
            for page in lost:
                page.unregister(program, store.hashes)
            self.pending.register(program, store.hashes)
            take = self._add_look_up(program)
            state.judgements[self.pending.place] = self
            self.breaks = state.link.breaks
            self._is_registered = True
            try:
                found = await state.link.run_once(program)
                break
            except NoAnswer as error:
                del state.judgements[self.pending.place]
                await state.link.wait(error, len(lost))
                lost.append(self.pending)
        store.raise_for(found)
        answers = iter(found[1:])
        self._earlier = places_in(next(answers), self.pending.place)
        take(answers)

    async def _look_up(self) -> None:
        program = self._state.link.program()
        take = self._add_look_up(program)
        take(iter((await self._state.link.run(program))[1:]))

    def _add_look_up(self, program: Program) -> Callable[[Iterator[Any]], None]:
        """Begin a new transaction with the rows of the page's URLs and its postings."""
        page, store, common = self._page, self._state.store, self._state.detector.common
        rows = [layout.url_key(url, store.hashes) for url in (page.url, page.canonical) if url]
        rows.append(layout.judgement_key(page.url, store.hashes))
        keys = self._fingerprint.keys if self._fingerprint else ()
        self.transaction = RemoteTransaction()
        return self._state.add_reads(program, self.transaction, rows, [(key, common) for key in keys])

    # Second request: what the first one found.

    async def _fetch_earlier(self) -> list[Reservation] | None:
        """Fetch the found records. Return the earlier pages in flight; None if one is gone: then look up again."""
        program = self._state.link.program()
        for place in self._earlier:
            place.add_reads(program)
        take = self._state.add_reads(program, self.transaction, *self._wanted())
        if program.is_empty:
            return []
        answers = iter((await self._state.link.run(program))[1:])
        found, is_one_gone = list[Reservation](), False
        for place in list(self._earlier):
            packed, milliseconds_left = next(answers), next(answers)
            if packed is not None:
                record = Record.unpack(place.id, packed)
                if milliseconds_left >= 0:
                    found.append(_as_reservation(record))
                    continue
                if not await self._has_removed(PendingPage(record, place.crawl)):
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
            propose = partial(self._state.detector.proposed, self._fingerprint.keys)
            ids += self._state.run_once(propose, self.transaction)
        return [layout.record_key(id) for id in ids], [(id, ALL) for id in ids]

    async def _has_removed(self, page: PendingPage) -> bool:
        """Remove a page whose crawl is gone, so that nobody commits it; False if the crawl is back."""
        program = self._state.link.program()
        page.unregister_abandoned(program, self._state.store.hashes)
        return bool((await self._state.link.run(program))[0] == 1)

    async def _claim(self, reservation: Reservation) -> bool:
        """Register the page under the keys that its verdict added; False if an earlier page has one of them."""
        state, hashes, record = self._state, self._state.store.hashes, self.pending.record
        more = [key for key in reservation.fingerprint.keys if key not in record.keys]
        if more:
            claimed = PendingPage(replace(record, keys=(*record.keys, *more)), self.pending.crawl)
            program = state.link.program()
            claimed.register(program, hashes)
            program.in_flight(heads_of(more))
            found = places_in((await state.link.run(program))[2], claimed.place)
            others = [place for place in found if place not in self._given_up]
            if others:
                program = state.link.program()
                claimed.unregister(program, hashes)
                self.pending.register(program, hashes)
                await state.link.run(program)
                self._earlier.append(others[0])
                return False
            self.pending = claimed
        return True

    # The outcome.

    async def _write_dropped(self) -> None:
        """Write what the state keeps of a page that does not pass; nothing if others wrote first."""
        state, transaction = self._state, self.transaction
        program = state.store.write_program(transaction.changes, transaction.read_set)
        self.pending.unregister(program, state.store.hashes)
        found = await state.link.run(program)
        try:
            state.store.raise_for(found)
        except OvertakenError:
            await self.unregister()
        else:
            state.count(transaction)
        finally:
            self.end()

    async def unregister(self) -> None:
        """Remove the page, as if it had never come."""
        self._is_registered = False
        program = self._state.link.program()
        self.pending.unregister(program, self._state.store.hashes)
        try:
            await self._state.link.run(program)
        finally:
            self.end()

    def end(self) -> None:
        """Wake the pages of this crawl that wait for this one."""
        self._state.judgements.pop(self.pending.place, None)
        calls, self._when_over = self._when_over, []
        for call in calls:
            call()

    def _wait_for(self, by: Reservation) -> None:
        place = self._place_of(by)
        if (judgement := self._state.judgements.get(place)) is not None:
            judgement._when_over.append(by.settle)
        else:
            self._state.blockers.watch(place, by, lambda: self._is_left or place in self._given_up)

    def _place_of(self, by: Reservation) -> PendingPlace:
        return next(place for place in self._earlier if place.id == by.record.id)


class _Wait(NamedTuple):
    by: Reservation
    is_over: Callable[[], bool]


class BlockerWatch:
    """Asks the server for the pages of other crawlers that block pages of this one; for all of them at once."""

    def __init__(self, link: AsyncLink, start: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        """``start`` starts work that nobody awaits."""
        self._link = link
        self._start = start
        self._waits: dict[PendingPlace, list[_Wait]] = {}
        self._pause = _SOON
        self._is_running = False

    def watch(self, place: PendingPlace, by: Reservation, is_over: Callable[[], bool]) -> None:
        """Settle ``by`` once the page is no longer in flight, unless the wait ``is_over`` by then."""
        self._waits.setdefault(place, []).append(_Wait(by, is_over))
        self._pause = _SOON
        if not self._is_running:
            self._is_running = True
            self._start(self._run())

    async def _run(self) -> None:
        try:
            while self._waits:  # nobody cancels it: an answer may be under way
                await asyncio.sleep(self._pause)
                self._pause = min(2 * self._pause, _LATE)
                await self._look()
        finally:
            self._is_running = False

    async def _look(self) -> None:
        self._waits = {
            place: waits for place, waits in self._waits.items() if not all(wait.is_over() for wait in waits)
        }
        places, program = list(self._waits), self._link.program()
        if not places:
            return
        for place in places:
            place.add_reads(program)
        try:
            answers = iter((await self._link.run(program))[1:])
        except StoreError:  # who checks again meets it
            answers = iter([None, -1] * len(places))
        for place in places:
            packed, milliseconds_left = next(answers), next(answers)
            if packed is None or milliseconds_left < 0:
                for wait in self._waits.pop(place):
                    wait.by.settle()


async def _is_set(event: asyncio.Event, seconds: float) -> bool:
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(event.wait(), max(0.0, seconds))
    return event.is_set()


def _as_reservation(record: Record) -> Reservation:
    fingerprint = Fingerprint(record.keys, record.sketch)
    return Reservation(Verdict(Kind.UNIQUE, record.url, record.id), fingerprint, record)
