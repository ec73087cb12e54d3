"""A crawl on a server, where many crawlers judge at once.

The first request for a page registers it in flight and reads its URL and postings. The second one reads the records
that these name. The detector then judges as on a disk, and the crawl goes on while the result is written.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from math import inf
from typing import Any, TypeVar

from scrapy_neardup.errors import StoreError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Blocked, InFlight, Reservation, Ruling
from scrapy_neardup.judge.matching import candidates
from scrapy_neardup.judge.rules import judge_page
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.server.asynchronous import AsyncLink
from scrapy_neardup.server.claims import PageLost, pack, pending_page
from scrapy_neardup.server.layout import lease_name
from scrapy_neardup.server.program import PLACE, REGISTER, PendingPage, Program
from scrapy_neardup.server.store import BATCH, CHUNK, RedisStore
from scrapy_neardup.server.transaction import TRIES, NotFetched, OvertakenError, RemoteTransaction, overtaken_too_often
from scrapy_neardup.state import layout
from scrapy_neardup.state.pages import ALL
from scrapy_neardup.state.record import Record

T = TypeVar("T")
#: Called with the kind of the error once the server stops answering, and with "" once it answers again.
Patience = Callable[[str], None]
#: Seconds between two looks at a page of another crawler that blocks one of ours: the first, and at most.
_SOON, _LATE = 0.01, 0.2


class RemoteCrawl:
    """The pages of one crawl on a server. Nothing else runs during one run of synchronous code.

    ``commit``, ``release``, ``roll_back`` and ``seal`` do the same as in the detector, but return before they are done.
    """

    def __init__(
        self,
        detector: Detector,
        on_error: Callable[[StoreError], None],
        on_lost: Callable[[], None] = lambda: None,
        patience: Patience | None = None,
    ) -> None:
        """Make it on the running loop. ``on_error`` gets errors of work that nobody awaits.

        ``on_lost`` is called when the item of a page came through that the server has lost. With ``patience`` the crawl
        waits for its server as long as it takes.
        """
        assert isinstance(detector.store, RedisStore)
        self.detector = detector
        self.store = detector.store
        self.link = AsyncLink(self.store.kv.link)
        self.program = self.store.kv.link.program
        if patience is not None:
            loop, self.store.kv.link.patient_thread = asyncio.get_running_loop(), threading.get_ident()
            self.store.kv.link.on_outage = lambda why: loop.call_soon_threadsafe(patience, why)
        #: The pages of this crawl that are in flight, by place; and the reserved ones.
        self.judgements: dict[bytes, RemoteJudgement] = {}
        self.reserved: dict[Reservation, RemoteJudgement] = {}
        self._on_error = on_error
        self._on_lost = on_lost
        self._breaks = self.store.kv.link.breaks
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Wait until all is written, and stop sending. The store closes the connection."""
        await self.finish()
        await self.link.close()
        self.store.kv.link.on_outage = lambda why: None

    def judgement(self) -> RemoteJudgement:
        """The judgement of a page; enter it, and leave it with the verdict."""
        return RemoteJudgement(self)

    async def catch_up(self) -> None:
        """Count the sentences of the others. After a failover also remove pages of ours that are over."""
        if (breaks := self.store.kv.link.breaks) != self._breaks:
            await self._remove_revived()
            self._breaks = breaks
        boilerplate = self.store.boilerplate
        while entries := await self._ask(Program.entries, boilerplate.stream_position, CHUNK):
            boilerplate.count_entries(entries)

    async def _remove_revived(self) -> None:
        """Remove pages of ours that are in flight again because the server lost their outcome: copies wait for them."""
        generation = self.detector.generation
        found = await self._ask(Program.in_flight, pack(generation))
        for page in self.store.journal.unpack_in_flight(generation, found):
            if page.place not in self.judgements:
                await self.unregister(page)

    async def _ask(self, read: Callable[..., None], *arguments: Any) -> Any:
        """Like ``Link.ask``."""
        program = self.program()
        read(program, *arguments)
        return (await self.link.run(program))[1]

    async def unregister(self, page: PendingPage) -> None:
        """Remove a page from those in flight."""
        program = self.program()
        program.unregister(page)
        await self.link.run(program)

    # Work that nobody awaits.

    def start(self, work: Coroutine[Any, Any, None], *, follows: bool = False) -> None:
        """Start work that nobody awaits. If it ``follows``, all started work is done first."""
        task = asyncio.create_task(self._report_errors(work, list(self._tasks) if follows else []))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        """Wait until all started work is done."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _report_errors(self, work: Coroutine[Any, Any, None], before: list[asyncio.Task[None]]) -> None:
        if before:
            await asyncio.wait(before)
        try:
            await work
        except StoreError as error:
            self._on_error(error)

    # Transactions.

    async def transact(
        self,
        work: Callable[[], object],
        transaction: RemoteTransaction,
        page: PendingPage | None = None,
        record: bytes = b"",
    ) -> None:
        """Run synchronous work and write its changes; again, until nobody writes first. See ``write``."""
        for _ in range(TRIES):
            await self.run(work, transaction)
            try:
                await self.write(transaction, page, record)
            except OvertakenError:
                transaction.discard_read_set()
                continue
            return
        raise overtaken_too_often(self.store.location)

    async def write(self, transaction: RemoteTransaction, page: PendingPage | None = None, record: bytes = b"") -> None:
        """Write the changes of a transaction; see ``Redis.write_program``. Raises OvertakenError and StoreError."""
        kv = self.store.kv
        kv.raise_for(await self.link.run(kv.write_program(transaction, page, record)))
        self.store.boilerplate.count(transaction.notes)

    async def run(self, work: Callable[[], T], transaction: RemoteTransaction) -> T:
        """Return the result of synchronous work; its changes are in the transaction."""
        while True:
            transaction.restart()
            try:
                return self.run_once(work, transaction)
            except NotFetched as error:
                missing = error
            if missing.scan:  # rare, and may take long
                rows = await asyncio.to_thread(lambda prefix: list(self.store.kv.fetch_all(prefix)), missing.scan)
                transaction.scans[missing.scan] = rows
            else:
                await self.fetch(transaction, missing.rows, missing.postings)

    def run_once(self, work: Callable[[], T], transaction: RemoteTransaction) -> T:
        """Return the result of synchronous work that finds all rows in the transaction; raises NotFetched."""
        self.store.kv.transaction = transaction
        try:
            return work()
        finally:
            self.store.kv.transaction = None

    async def fetch(
        self, transaction: RemoteTransaction, rows: Iterable[bytes] = (), postings: Iterable[tuple[int, int]] = ()
    ) -> None:
        """Fetch missing rows and postings in one request."""
        program = self.program()
        take = transaction.add_reads(program, rows, postings)
        if not program.is_empty:
            take(iter((await self.link.run(program))[1:]))

    # The outcome of a page.

    def commit(self, reservation: Reservation, *, sealed: bool) -> None:
        """The item came through."""
        self.start(self._commit(reservation, sealed))

    def release(self, reservation: Reservation) -> None:
        """The item was lost."""
        self.start(self._release(reservation))

    def roll_back(self, id: int) -> None:
        self.start(self.transact(lambda: self.detector.roll_back(id), RemoteTransaction()), follows=True)

    def seal(self, ids: Iterable[int]) -> None:
        """The feeds that hold these pages are stored."""
        self.start(self._seal(list(ids)), follows=True)

    async def _commit(self, reservation: Reservation, sealed: bool) -> None:
        judgement = self.reserved.pop(reservation)
        file = partial(self.detector.file, reservation, sealed=sealed)
        row = layout.record_key(reservation.record.id)
        try:
            await self.transact(file, judgement.transaction, judgement.pending, row)
        except PageLost:
            if judgement.breaks == self.store.kv.link.breaks:
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
            replaced = [layout.last_id(packed) for packed in transaction.rows.values() if packed]
            await self.fetch(transaction, [layout.record_key(id) for id in replaced])
            await self.transact(partial(self.detector.seal, some), transaction)


class RemoteJudgement:
    """One page from its first check until its outcome is known. Enter it, and leave it with the verdict."""

    #: The rows that it read, and whether its outcome is known.
    transaction: RemoteTransaction
    over: asyncio.Event
    #: The page, its fingerprint, the row of its URL, how others see it, and ``Link.breaks`` when it was registered.
    _page: Page
    _fingerprint: Fingerprint | None
    _url_row: bytes
    pending: PendingPage
    breaks: int

    def __init__(self, crawl: RemoteCrawl) -> None:
        self._crawl = crawl
        self._store = crawl.store
        #: Keys that its verdict added.
        self._more_keys: tuple[int, ...] = ()
        #: Places of earlier pages with an unknown outcome, and the pages that took too long.
        self._earlier: list[bytes] = []
        self._given_up: dict[bytes, Reservation] = {}
        self._is_registered = self._is_reserved = False

    async def __aenter__(self) -> RemoteJudgement:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._is_registered and not self._is_reserved:
            self._crawl.start(self.unregister())

    async def check(self, page: Page) -> Ruling:
        """Judge the page by the state as it stands. If it is blocked, wait and call again. Raises StoreError."""
        if self._is_registered:
            await self._look_up()
        else:
            self._page, self._fingerprint = page, self._crawl.detector.fingerprint(page)
            self._url_row = self._store.url_key(page.url)
            await self._register()
        while True:
            if (earlier := await self._fetch_earlier()) is None:
                await self._look_up()
                continue
            ruling = await self._crawl.run(partial(self._judge, earlier), self.transaction)
            if isinstance(ruling, Blocked):
                return ruling
            if ruling.reservation is None:
                self._is_registered = False
                self._crawl.start(self._write_dropped())
                return ruling
            known = {*(self._fingerprint.keys if self._fingerprint else ()), *self._more_keys}
            if more := [key for key in ruling.reservation.fingerprint.keys if key not in known]:
                self._more_keys += tuple(more)
                await self._register()
                continue
            self._is_reserved = True
            self._crawl.reserved[ruling.reservation] = self
            return ruling

    def _judge(self, earlier: list[Reservation]) -> Ruling:
        arguments = self._page, self._fingerprint, InFlight(earlier), self._given_up.values()
        return self._crawl.detector.judge(judge_page, *arguments)

    async def wait(self, by: Reservation, seconds: float) -> None:
        """Wait until the outcome of an earlier page is known, or give it up after ``seconds``. Raises StoreError.

        It is given up only if all crawls with earlier pages have renewed their leases after that time. A silent crawl
        may be dead: its place is free once its lease has ended, and the next page in line takes it.
        """
        loop = asyncio.get_running_loop()
        place = next(place for place in self._earlier if place[:8] == pack(by.record.id))
        ours, ends, pause = self._crawl.judgements.get(place), loop.time() + seconds, _SOON
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

    async def _ask_for(self, places: list[bytes]) -> tuple[bool, float]:
        """Whether pages of other crawls are all there, and how many seconds the first of their leases lasts."""
        program = self._crawl.program()
        for place in places:
            if place not in self._crawl.judgements:
                program.pending(place)
        if program.is_empty:
            return True, inf
        answers = (await self._crawl.link.run(program))[1:]
        shortest = min(answers[1::2])
        return None not in answers[::2] and shortest >= 0, shortest / 1000

    # First request: register the page, and look it up.

    async def _register(self) -> None:
        """Register the page as an original with all its keys, and look it up.

        The time of the registration decides who was earlier. If it is unknown, because an answer was lost, or if the
        verdict added keys, the page is registered again. It takes its place behind pages that have come since.
        """
        crawl, kv, former = self._crawl, self._store.kv, b""
        while True:
            program = self._crawl.program()
            kv.leases.expect(crawl.detector.generation, program)
            if self._is_registered:
                former = self.pending.place
                program.unregister(self.pending)
                self.end()
            self.pending, self.over = self._provisional_page(), asyncio.Event()
            program.register(self.pending)
            take = self._add_look_up(program)
            crawl.judgements[self.pending.place] = self
            self._is_registered, self.breaks = True, kv.link.breaks
            found = await crawl.link.run(program)
            if found[1] != REGISTER:
                break
        kv.raise_for(found)
        answers = iter(found[1:])
        places: bytes = next(answers)
        found_places = dict.fromkeys(places[at : at + PLACE] for at in range(0, len(places), PLACE))
        self._earlier = [place for place in found_places if place != former and place not in self._given_up]
        take(answers)

    def _provisional_page(self) -> PendingPage:
        """Return the page as others see it first: an original with all its keys."""
        id, fingerprint = self._store.new_id(), self._fingerprint
        keys, sketch = (fingerprint.keys, fingerprint.sketch) if fingerprint else ((), b"")
        if fingerprint is None and self._page.html:
            sketch = self._page.html.to_bytes(8, "big")
        similarity = 1.0 if fingerprint else 0.0  # 0 says that it is compared with no other page
        url, keys = layout.kept_url(self._page.url), (*keys, *self._more_keys)
        record = Record(id=id, url=url, original=id, similarity=similarity, keys=keys, sketch=sketch)
        return pending_page(record, self._crawl.detector.generation, self._url_row)

    async def _look_up(self) -> None:
        program = self._crawl.program()
        take = self._add_look_up(program)
        take(iter((await self._crawl.link.run(program))[1:]))

    def _add_look_up(self, program: Program) -> Callable[[Iterator[Any]], None]:
        """Begin a new transaction with the rows of the page's URLs and its postings."""
        common, keys = self._crawl.detector.method.common, self._fingerprint.keys if self._fingerprint else ()
        rows = [self._url_row, b"n" + self._url_row[1:]]  # see layout.judgement_key
        if self._page.canonical:
            rows.append(self._store.url_key(self._page.canonical))
        self.transaction = RemoteTransaction()
        return self.transaction.add_reads(program, rows, [(key, common) for key in keys])

    # Second request: what the first one found.

    async def _fetch_earlier(self) -> list[Reservation] | None:
        """Fetch the found records. Return the earlier pages in flight; None if one is gone: then look up again."""
        rows, groups = self._wanted()
        if not (self._earlier or rows):
            return []
        program = self._crawl.program()
        for place in self._earlier:
            program.pending(place)
        take = self.transaction.add_reads(program, rows, groups)
        answers = iter((await self._crawl.link.run(program))[1:])
        found, is_one_gone = list[Reservation](), False
        for place in list(self._earlier):
            packed, milliseconds_left = next(answers), next(answers)
            record = None if packed is None else Record.unpack(layout.last_id(place[:8]), packed)
            if record is not None and milliseconds_left >= 0:
                found.append(Reservation(record, Fingerprint(record.keys, record.sketch)))
                continue
            is_one_gone = True
            if record is None or await self._is_abandoned(record, place):  # else its crawl is back: it is read again
                self._earlier.remove(place)
        take(answers)
        return None if is_one_gone else found

    async def _is_abandoned(self, record: Record, place: bytes) -> bool:
        """Remove a page of a crawl without a lease; False if the crawl has a lease again."""
        program = self._crawl.program()
        program.expect_no_lease(lease_name(place[8:]))
        program.unregister(pending_page(record, layout.last_id(place), self._store.url_key(record.url)))
        return bool((await self._crawl.link.run(program))[0] == 1)

    def _wanted(self) -> tuple[list[bytes], list[tuple[int, int]]]:
        """Return the records and groups of the pages that the first request found."""
        seen = [row for key, row in self.transaction.rows.items() if key[:1] == b"u" and row is not None]
        ids = [layout.unpack_seen(row)[0] for row in seen]
        if self._fingerprint is not None and any(self.transaction.filed.values()):
            propose = partial(candidates, self._crawl.detector.method, self._store, self._fingerprint.keys)
            ids += self._crawl.run_once(propose, self.transaction).ids
        return [layout.record_key(id) for id in ids], [(id, ALL) for id in ids]

    # The outcome.

    async def _write_dropped(self) -> None:
        """Write the rows of a page that does not pass; nothing if others wrote first."""
        try:
            await self._crawl.write(self.transaction, self.pending)
        except OvertakenError:
            await self.unregister()
        finally:
            self.end()

    async def unregister(self) -> None:
        """Remove the page, as if it had never come."""
        self._is_registered = False
        try:
            await self._crawl.unregister(self.pending)
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
