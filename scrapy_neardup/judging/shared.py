"""A crawl on a state that it shares with others over a network: judged by what was fetched, and never by halves.

The detector is the same as on a disk. It runs on a view (``stores/view``): first what the page is filed under is
looked up, and the page filed, in one step (see ``stores/pending``); then the records of what was found are fetched; by
these it judges. What it misses all the same is fetched, and it begins again. So a verdict takes two ways to the server
and back, and what it writes goes on its way while others are judged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from scrapy_neardup.errors import StoreError
from scrapy_neardup.judging.detector import Detector
from scrapy_neardup.judging.reservations import Blocked, InFlight, Reservation, Ruling
from scrapy_neardup.model import Fingerprint, Kind, Page, Verdict
from scrapy_neardup.stores import layout
from scrapy_neardup.stores.leading import ALL
from scrapy_neardup.stores.pending import PendingPage, PendingPlace, ask, look, seen
from scrapy_neardup.stores.redis import OvertakenError, RedisStore
from scrapy_neardup.stores.redis_async import PAUSES, AsyncLink, NoAnswer
from scrapy_neardup.stores.redis_rows import newest_of
from scrapy_neardup.stores.redis_script import Program
from scrapy_neardup.stores.view import NotFetched, PageView

T = TypeVar("T")
#: Seconds between two looks at what others do with a page that one of ours waits for: the first, and at most.
_SOON, _LATE = 0.01, 0.2
#: Times that a write is tried that others come before.
_TRIES = 200
#: Pages that are sealed in one piece.
_BATCH = 200


class Earlier(InFlight):
    """The pages on their way that one page has seen: those of other machines and those of this crawl are one."""

    def show(self, reservations: Iterable[Reservation]) -> None:
        """From now on these are on their way, and no others."""
        self.by_url, self.by_key = {}, {}
        for one in reservations:
            super().add(one)

    def add(self, reservation: Reservation) -> None:
        """It is on the server already."""

    def remove(self, reservation: Reservation) -> None:
        """It goes from there."""


class SharedCrawl:
    """One crawl's way to the state; ``filing`` a page has it judged, the rest is as of the detector, but later.

    ``on_error`` is told of what failed when nobody waited for it.
    """

    def __init__(
        self, detector: Detector, store: RedisStore, link: AsyncLink, on_error: Callable[[StoreError], None]
    ) -> None:
        """``detector`` is on that store, and its pages in flight are an ``Earlier``."""
        self.detector = detector
        self.store = store
        self.link = link
        self.filings: dict[PendingPlace, Filing] = {}
        self._reserved: dict[Reservation, Filing] = {}
        self._on_error = on_error
        self._tasks: set[asyncio.Task[None]] = set()

    def filing(self, page: Page) -> Filing:
        """A page that is to be judged; to be entered, and left when its verdict is known."""
        return Filing(self, page)

    # As of the detector; whoever calls does not wait.

    def commit(self, reservation: Reservation, *, sealed: bool) -> None:
        """The item came through."""
        self.later(self._committed(reservation, sealed))

    def release(self, reservation: Reservation) -> None:
        """The item was lost."""
        self.later(self._released(reservation))

    def withdraw(self, id: int) -> None:
        """Take back a page that was committed."""
        self.later(self._after_all(lambda: self.detector.withdraw(id)))

    def seal(self, ids: Iterable[int]) -> None:
        """The feeds that hold these pages are stored."""
        self.later(self._sealed(list(ids), list(self._tasks)))

    async def settled(self) -> None:
        """Wait until all of that is done."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that nobody waits for."""
        task = asyncio.ensure_future(self._watched(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watched(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except StoreError as error:
            self._on_error(error)

    def reserved(self, reservation: Reservation, filing: Filing) -> None:
        """The page passes, and stays on its way until its item has arrived."""
        self._reserved[reservation] = filing

    async def _committed(self, reservation: Reservation, sealed: bool) -> None:
        filing = self._reserved.pop(reservation)
        key = layout.record_key(reservation.record.id)

        def finish(program: Program, view: PageView) -> None:
            filing.pending.expect_here(program, key, view.changes.puts[key])
            filing.pending.remove(program, self.store.hashes)

        try:
            await self.transacted(lambda: self.detector.file(reservation, sealed=sealed), filing.view, finish)
        finally:
            filing.is_over()
            reservation.settle()

    async def _released(self, reservation: Reservation) -> None:
        filing = self._reserved.pop(reservation)
        try:
            await filing.unfiled()
        finally:
            reservation.settle()

    async def _after_all(self, work: Callable[[], object]) -> None:
        before = self._tasks - {asyncio.current_task()}
        if before:
            await asyncio.wait(before)
        await self.transacted(work, PageView())

    async def _sealed(self, ids: list[int], before: list[asyncio.Task[None]]) -> None:
        if before:
            await asyncio.wait(before)
        rest = iter(ids)
        while some := list(islice(rest, _BATCH)):
            view = PageView()
            await self.fetch(view, [layout.journal_key(self.detector.generation, id) for id in some])
            replaced = [layout.unpack_id(packed) for packed in view.rows.values() if packed]
            await self.fetch(view, [layout.record_key(id) for id in replaced])
            await self.transacted(lambda some=some: self.detector.seal(some), view)  # type: ignore[misc]

    # How.

    async def transacted(
        self,
        work: Callable[[], T],
        view: PageView,
        finish: Callable[[Program, PageView], None] = lambda program, view: None,
    ) -> T:
        """Do synchronous work, and write what it writes, until nobody comes in between.

        ``finish`` adds to the program what is not said by rows.
        """
        for _ in range(_TRIES):
            done = await self.done(work, view)
            program = self.store.written(view.changes, view.asked)
            self.store.tell(program, view.notes)
            finish(program, view)
            try:
                self.store.raise_for(program, await self.link.run(program))
            except OvertakenError:
                view.forget()
                continue
            self.store.count(view.notes)
            return done
        raise StoreError(f"A write to the state at {self.store.location} was overtaken by others {_TRIES} times.")

    async def done(self, work: Callable[[], T], view: PageView) -> T:
        """What synchronous work gives that is answered from a view; what it writes is in there."""
        while True:
            view.again()
            self.store.view = view
            try:
                return work()
            except NotFetched as missing:
                wanted = missing
            finally:
                self.store.view = None
            await self._fetch_missing(view, wanted)

    async def _fetch_missing(self, view: PageView, missing: NotFetched) -> None:
        if missing.scan:
            # Rare, and may be long; a thread waits for it.
            view.scans[missing.scan] = await asyncio.to_thread(self.store.scanned, missing.scan)
        elif missing.postings:
            await self.fetch(view, postings=[missing.postings])
        else:
            await self.fetch(view, [missing.row])

    async def fetch(self, view: PageView, rows: Iterable[bytes] = (), postings: Iterable[tuple[int, int]] = ()) -> None:
        """Fetch rows and postings that are not there yet, all in one way to the server and back."""
        program = self.link.program()
        take = wanted(program, view, rows, postings)
        if not program.is_empty:
            take(iter((await self.link.run(program))[1:]))

    async def catch_up(self) -> None:
        """Count what others have counted."""
        self.store.take_in(await self.link.told_since(self.store.read_to))


class Filing:
    """One page while it is judged, and until it is known what became of it."""

    #: As others see the page; there from the first check on.
    pending: PendingPage

    def __init__(self, crawl: SharedCrawl, page: Page) -> None:
        self.view = PageView()
        self._crawl = crawl
        self._page = page
        self._fingerprint: Fingerprint | None = None
        #: Who was there before this page, and is still to be heard of.
        self._earlier: list[PendingPlace] = []
        self._is_filed = self._is_reserved = False
        self._waiting: list[Callable[[], None]] = []
        self._polls: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Filing:
        return self

    async def __aexit__(self, *_: object) -> None:
        for poll in self._polls:
            poll.cancel()
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
                    crawl.reserved(ruling.reservation, self)
                    return ruling
                self._earlier.append(twin)
            answers = await self._looked()

    def _judged(self, earlier: list[Reservation]) -> Ruling:
        in_flight = self._crawl.detector.in_flight
        assert isinstance(in_flight, Earlier)
        in_flight.show(earlier)
        return self._crawl.detector.check(self._page, self._fingerprint)

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
            layout.Record(id, layout.kept_url(self._page.url), id, similarity, keys, sketch),
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
            self.pending.file(program, crawl.store.hashes)
            look(program, self.pending.found_by(crawl.store.hashes))
            self._look_up(program)
            try:
                self._is_filed = True
                found = await crawl.link.run_once(program)
                break
            except NoAnswer as error:
                failed.append(self.pending)
                await crawl.link.wait(error, next(pauses, None))
        crawl.store.raise_for(program, found)
        crawl.filings[self.pending.place] = self
        answers = iter(found[1:])
        keys = sum(1 for _ in self.pending.found_by(crawl.store.hashes))
        self._earlier = seen(islice(answers, keys), besides=self.pending.place)
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
        self._take = wanted(program, self.view, rows, [(key, detector.common) for key in keys])

    # Second way: what was found.

    async def _heard(self) -> list[Reservation] | None:
        """The earlier pages that are on their way; None if one is no more, so that all is to be looked up anew."""
        crawl, program = self._crawl, self._crawl.link.program()
        for place in self._earlier:
            ask(program, place)
        rows, postings = self._found()
        take = wanted(program, self.view, rows, postings)
        if program.is_empty:
            return []
        answers = iter((await crawl.link.run(program))[1:])
        found, is_one_gone = [], False
        for place in list(self._earlier):
            packed, held = next(answers), next(answers)
            if packed is not None:
                record = layout.Record.unpack(place.id, packed)
                if held:
                    found.append(_as_reservation(record))
                    continue
                if not await self._take_away(PendingPage(record, place.crawl)):
                    is_one_gone = True  # its crawl is back: it is to be heard anew
                    continue
            self._earlier.remove(place)
            is_one_gone = True
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
            layout.Record(
                record.id, record.url, record.original, record.similarity, (*record.keys, *more), record.sketch
            ),
            self.pending.crawl,
        )
        program = crawl.link.program()
        claimed.file(program, crawl.store.hashes)
        look(program, [(b"w", key.to_bytes(8, "big")) for key in more])
        others = seen((await crawl.link.run(program))[1:], besides=claimed.place)
        if not others:
            self.pending = claimed
            return None
        program = crawl.link.program()
        for name, member in claimed.members(crawl.store.hashes):
            if (name, member) not in set(self.pending.members(crawl.store.hashes)):
                program.unfile(name, member)
        self.pending.file(program, crawl.store.hashes)
        await crawl.link.run(program)
        return others[0]

    # What becomes of it.

    async def _dropped(self) -> None:
        """Write what is known of a page that does not pass; if others were faster, there is nothing to add."""
        crawl = self._crawl
        program = crawl.store.written(self.view.changes, self.view.asked)
        crawl.store.tell(program, self.view.notes)
        self.pending.remove(program, crawl.store.hashes)
        found = await crawl.link.run(program)
        try:
            crawl.store.raise_for(program, found)
        except OvertakenError:
            await self.unfiled()
        else:
            crawl.store.count(self.view.notes)
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
        place = next(one for one in self._earlier if one.id == by.record.id)
        if (filing := self._crawl.filings.get(place)) is not None:
            filing._waiting.append(by.settle)
        else:
            self._polls.append(asyncio.ensure_future(self._poll(place, by)))

    async def _poll(self, place: PendingPlace, by: Reservation) -> None:
        pause = _SOON
        while True:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LATE)
            program = self._crawl.link.program()
            ask(program, place)
            with suppress(StoreError):  # whoever asks again meets it
                _, packed, held = await self._crawl.link.run(program)
                if packed is not None and held:
                    continue
            by.settle()
            return


def wanted(
    program: Program, view: PageView, rows: Iterable[bytes], postings: Iterable[tuple[int, int]]
) -> Callable[[Iterator[Any]], None]:
    """Have a program read what a view has not yet; the answer takes what it says into the view."""
    new_rows = [row for row in dict.fromkeys(rows) if row not in view.rows]
    new_postings = [one for one in dict.fromkeys(postings) if one not in view.postings]
    for row in new_rows:
        program.get(row)
    for key, limit in new_postings:
        program.newest(key.to_bytes(8, "big"), limit)

    def take(answers: Iterator[Any]) -> None:
        view.rows.update((row, next(answers)) for row in new_rows)
        view.postings.update(((key, limit), newest_of(next(answers), limit)) for key, limit in new_postings)

    return take


def _as_reservation(record: layout.Record) -> Reservation:
    fingerprint = Fingerprint(record.keys, record.sketch)
    return Reservation(Verdict(Kind.UNIQUE, record.url, record.id), fingerprint, record)
