"""A crawl on a server, where many crawlers judge at once.

The first request for a page registers it in flight and reads what it is filed under. The second one reads the records
found so. The detector then judges as on a disk, and the crawl goes on while the result is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from math import inf
from typing import Any, TypeVar

from scrapy_neardup.errors import StoreError
from scrapy_neardup.hashing.keys import pack_key
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Blocked, InFlight, Reservation, Ruling
from scrapy_neardup.model import Fingerprint, Kind, Page, Verdict
from scrapy_neardup.server.asynchronous import AsyncLink, NoAnswer, Patience
from scrapy_neardup.server.counting import FEW
from scrapy_neardup.server.engine import TRIES, OvertakenError, overtaken_too_often
from scrapy_neardup.server.in_flight import PendingPage, PendingPlace, heads_of, places_in
from scrapy_neardup.server.layout import pending_name
from scrapy_neardup.server.leases import PageLost
from scrapy_neardup.server.program import Program
from scrapy_neardup.server.rows import NotFetched, RemoteTransaction, newest_of
from scrapy_neardup.server.store import BATCH, RedisStore
from scrapy_neardup.state import layout
from scrapy_neardup.state.pages import ALL
from scrapy_neardup.state.record import Record
from scrapy_neardup.workers.speculation import PreparedFingerprint

T = TypeVar("T")
#: Seconds between two looks at a page of another crawler that blocks one of ours: the first, and at most.
_SOON, _LATE = 0.01, 0.2


class RemoteCrawl:
    """The pages of one crawl on a server.

    ``commit``, ``release``, ``withdraw`` and ``seal`` are those of the detector, but return before they are done.
    Synchronous code of the detector runs in transactions that are fetched before and written afterwards. Nothing else
    runs during one run of it, so one store serves all pages.
    """

    def __init__(
        self,
        detector: Detector,
        on_error: Callable[[StoreError], None],
        on_lost: Callable[[], None] = lambda: None,
        patience: Patience | None = None,
    ) -> None:
        """Make it on the running loop. ``on_error`` gets errors of work that nobody awaits.

        ``on_lost`` is called when the item of a page came through that the server has lost. ``patience``: see
        ``AsyncLink``.
        """
        assert isinstance(detector.store, RedisStore)
        self.detector = detector
        self.store = detector.store
        self.link = AsyncLink(self.store.location, patience)
        #: The pages of this crawl that are in flight, and those of them that have passed.
        self.judgements: dict[PendingPlace, RemoteJudgement] = {}
        self.reserved: dict[Reservation, RemoteJudgement] = {}
        self._on_error = on_error
        self._on_lost = on_lost
        self._breaks = self.link.breaks
        self._writes: set[asyncio.Task[None]] = set()
        self._other_tasks: set[asyncio.Task[None]] = set()

    def judgement(self) -> RemoteJudgement:
        """The judgement of a page; enter it, and leave it with the verdict."""
        return RemoteJudgement(self)

    async def is_unchanged(self, url: str, source: int) -> bool:
        """Like ``Detector.is_unchanged``."""
        return await self.run(lambda: self.detector.is_unchanged(url, source), RemoteTransaction())

    async def close(self) -> None:
        """Wait until all is written, and close the connections."""
        await self.finish()
        await self.link.close()

    # Work that nobody awaits.

    def start(self, work: Coroutine[Any, Any, None], *, writes: bool = True) -> None:
        """Start work that nobody awaits. What needs an order waits for the work that ``writes``."""
        running = self._writes if writes else self._other_tasks
        task = asyncio.ensure_future(self._report_errors(work))
        running.add(task)
        task.add_done_callback(running.discard)

    async def finish(self) -> None:
        """Wait until all started work is done."""
        while running := self._writes | self._other_tasks:
            await asyncio.wait(running)

    async def _report_errors(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except StoreError as error:
            self._on_error(error)

    # Transactions.

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
                rows = await self.link.in_thread(partial(self.store.read_rows, missing.scan))
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
        take = add_reads(program, transaction, rows, postings)
        if not program.is_empty:
            take(iter((await self.link.run(program))[1:]))

    # Counted sentences.

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
        """Exchange counts with the others. After a failover also remove pages of ours that are over."""
        if (breaks := self.link.breaks) != self._breaks:
            await self._remove_revived()
            self._breaks = breaks
        await self._publish()
        many = FEW
        while many == FEW:
            entries = await self.link.read_stream(self.store.boilerplate.stream_position)
            self.store.boilerplate.count_entries(entries)
            many = len(entries)

    async def _remove_revived(self) -> None:
        """Remove pages of ours that are in flight again because the server lost their outcome: copies wait for them."""
        crawl = self.detector.generation
        for id, packed in (await self.link.fields(pending_name(crawl))).items():
            page = PendingPage(Record.unpack(int.from_bytes(id, "big"), packed), crawl)
            if page.place not in self.judgements:
                program = self.link.program()
                page.unregister(program, self.store.hashes)
                await self.link.run(program)

    # What becomes of a page.

    def commit(self, reservation: Reservation, *, sealed: bool) -> None:
        """The item came through."""
        self.start(self._commit(reservation, sealed))

    def release(self, reservation: Reservation) -> None:
        """The item was lost."""
        self.start(self._release(reservation))

    def withdraw(self, id: int) -> None:
        """Roll back a committed page."""
        self.start(self._withdraw(id, list(self._writes)))

    def seal(self, ids: Iterable[int]) -> None:
        """The feeds that hold these pages are stored."""
        self.start(self._seal(list(ids), list(self._writes)))

    async def _commit(self, reservation: Reservation, sealed: bool) -> None:
        judgement = self.reserved.pop(reservation)
        key = layout.record_key(reservation.record.id)
        transaction = judgement.transaction

        def extend(program: Program) -> None:
            judgement.pending.expect_in_flight(program, key, transaction.changes.puts[key])
            judgement.pending.unregister(program, self.store.hashes)

        try:
            await self.transact(lambda: self.detector.file(reservation, sealed=sealed), transaction, extend)
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

    async def _withdraw(self, id: int, before: list[asyncio.Task[None]]) -> None:
        if before:
            await asyncio.wait(before)
        await self.transact(lambda: self.detector.withdraw(id), RemoteTransaction())

    async def _seal(self, ids: list[int], before: list[asyncio.Task[None]]) -> None:
        if before:
            await asyncio.wait(before)
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

    async def check(self, page: Page, prepared: PreparedFingerprint | None = None) -> Ruling:
        """Judge the page by what the server has now. If it is blocked, wait and call again. Raises StoreError."""
        if self._is_registered:
            await self._look_up()
        else:
            self._page, self._fingerprint = page, self._crawl.detector.fingerprint(page, prepared)
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
        record = Record(id, layout.kept_url(self._page.url), id, 1.0 if fingerprint else 0.0, keys, sketch)
        return PendingPage(record, self._crawl.detector.generation)

    async def _register(self) -> None:
        """Register the page. A program without an answer is not repeated, because its time decides who was earlier.

        The next program registers the page anew, and removes what the lost one may have registered.
        """
        crawl, hashes, lost = self._crawl, self._store.hashes, list[PendingPage]()
        while True:
            self.pending = self._provisional_page()
            program = self._link.program()
            self._store.leases.expect(self.pending.crawl, program)
            for page in lost:
                page.unregister(program, hashes)
            self.pending.register(program, hashes)
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
        self._store.raise_for(found)
        answers = iter(found[1:])
        self._earlier = places_in(next(answers), self.pending.place)
        take(answers)

    async def _look_up(self) -> None:
        program = self._link.program()
        take = self._add_look_up(program)
        take(iter((await self._link.run(program))[1:]))

    def _add_look_up(self, program: Program) -> Callable[[Iterator[Any]], None]:
        """Begin a new transaction with the rows of the page's URLs and its postings."""
        page, hashes, common = self._page, self._store.hashes, self._crawl.detector.common
        rows = [layout.url_key(url, hashes) for url in (page.url, page.canonical) if url]
        rows.append(layout.judgement_key(page.url, hashes))
        keys = self._fingerprint.keys if self._fingerprint else ()
        self.transaction = RemoteTransaction()
        return add_reads(program, self.transaction, rows, [(key, common) for key in keys])

    # Second request: what the first one found.

    async def _fetch_earlier(self) -> list[Reservation] | None:
        """Fetch the found records. Return the earlier pages in flight; None if one is gone: then look up again."""
        program = self._link.program()
        for place in self._earlier:
            place.add_reads(program)
        take = add_reads(program, self.transaction, *self._wanted())
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
            propose = partial(self._crawl.detector.proposed, self._fingerprint.keys)
            ids += self._crawl.run_once(propose, self.transaction)
        return [layout.record_key(id) for id in ids], [(id, ALL) for id in ids]

    async def _has_removed(self, page: PendingPage) -> bool:
        """Remove a page whose crawl is gone, so that nobody commits it; False if the crawl is back."""
        program = self._link.program()
        page.unregister_abandoned(program, self._store.hashes)
        return bool((await self._link.run(program))[0] == 1)

    async def _claim(self, reservation: Reservation) -> bool:
        """Register the page under the keys that its verdict added; False if an earlier page has one of them."""
        hashes, record = self._store.hashes, self.pending.record
        more = [key for key in reservation.fingerprint.keys if key not in record.keys]
        if not more:
            return True
        claimed = PendingPage(replace(record, keys=(*record.keys, *more)), self.pending.crawl)
        program = self._link.program()
        claimed.register(program, hashes)
        program.in_flight(heads_of(more))
        found = places_in((await self._link.run(program))[2], claimed.place)
        others = [place for place in found if place not in self._given_up]
        if others:
            program = self._link.program()
            claimed.unregister(program, hashes)
            self.pending.register(program, hashes)
            await self._link.run(program)
            self._earlier.append(others[0])
            return False
        self.pending = claimed
        return True

    # The outcome.

    async def _write_dropped(self) -> None:
        """Write what the state keeps of a page that does not pass; nothing if others wrote first."""
        transaction = self.transaction
        program = self._store.write_program(transaction.changes, transaction.read_set)
        self.pending.unregister(program, self._store.hashes)
        found = await self._link.run(program)
        try:
            self._store.raise_for(found)
        except OvertakenError:
            await self.unregister()
        else:
            self._crawl.count(transaction)
        finally:
            self.end()

    async def unregister(self) -> None:
        """Remove the page, as if it had never come."""
        self._is_registered = False
        program = self._link.program()
        self.pending.unregister(program, self._store.hashes)
        try:
            await self._link.run(program)
        finally:
            self.end()

    def end(self) -> None:
        """Wake the pages of this crawl that wait for this one."""
        self._crawl.judgements.pop(self.pending.place, None)
        self.over.set()


def add_reads(
    program: Program, transaction: RemoteTransaction, rows: Iterable[bytes], postings: Iterable[tuple[int, int]]
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


async def _is_set(event: asyncio.Event, seconds: float) -> bool:
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(event.wait(), max(0.0, seconds))
    return event.is_set()


def _as_reservation(record: Record) -> Reservation:
    fingerprint = Fingerprint(record.keys, record.sketch)
    return Reservation(Verdict(Kind.UNIQUE, record.url, record.id), fingerprint, record)
