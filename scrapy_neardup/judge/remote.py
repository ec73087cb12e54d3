"""One page judged on a server, where many crawlers judge at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

from scrapy_neardup.errors import StoreError
from scrapy_neardup.hashing.keys import pack_key
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Blocked, Earlier, Reservation, Ruling
from scrapy_neardup.model import Fingerprint, Kind, Page, Verdict
from scrapy_neardup.server.asynchronous import PAUSES, AsyncLink, NoAnswer
from scrapy_neardup.server.counting import FEW, NotFetched, OvertakenError, PageView, newest_of
from scrapy_neardup.server.in_flight import PendingPage, PendingPlace, ask, heads_of, seen
from scrapy_neardup.server.program import Program
from scrapy_neardup.server.store import RedisStore
from scrapy_neardup.state import layout
from scrapy_neardup.state.pages import ALL
from scrapy_neardup.state.record import Record

# ----------------------------------------------------------------------------------------------------------------------
# Pages of other crawlers for which pages of this one wait: the server is asked for all of them at once.
#
# What was asked for each of them alone would go in as many pieces, and where many crawlers meet the same articles at
# one time, that would be most of what the server is asked.


#: Seconds between two looks at what others do with the pages that are waited for: the first, and at most.
_SOON, _LATE = 0.01, 0.2


class _Wait(NamedTuple):
    by: Reservation
    #: Whether nobody waits any more.
    is_left: Callable[[], bool]


class Awaited:
    """``later``: does what nobody waits for."""

    def __init__(self, link: AsyncLink, later: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        self._link = link
        self._later = later
        self._waits: dict[PendingPlace, list[_Wait]] = {}
        self._pause = _SOON
        self._is_looking = False

    def wait(self, place: PendingPlace, by: Reservation, is_left: Callable[[], bool]) -> None:
        """Settle ``by`` once the page at that place is no more on its way, unless nobody waits by then."""
        self._waits.setdefault(place, []).append(_Wait(by, is_left))
        self._pause = _SOON
        if not self._is_looking:
            self._is_looking = True
            self._later(self._look())

    async def _look(self) -> None:
        try:
            while self._waits:  # nothing is cancelled: an answer may be on its way
                await asyncio.sleep(self._pause)
                self._pause = min(2 * self._pause, _LATE)
                await self._look_once()
        finally:
            self._is_looking = False

    async def _look_once(self) -> None:
        for place, waits in list(self._waits.items()):
            if all(wait.is_left() for wait in waits):
                del self._waits[place]
        places, program = list(self._waits), self._link.program()
        if not places:
            return
        for place in places:
            ask(program, place)
        try:
            answers = iter((await self._link.run(program))[1:])
        except StoreError:  # whoever asks again meets it
            answers = iter([None, -1] * len(places))
        for place in places:
            packed, lasts = next(answers), next(answers)
            if packed is None or lasts < 0:
                for wait in self._waits.pop(place):
                    wait.by.settle()


# ----------------------------------------------------------------------------------------------------------------------
# The way of one crawl to a state on a server: synchronous work done on what was fetched, and written if still so.
#
# The work asks the store, which answers from a view (``server/counting``); what is missing is fetched, and the work
# begins again. Between two steps of it nothing else runs, so one store serves all pages of a crawl.


T = TypeVar("T")
#: Times that a write is tried that others come before.
_TRIES = 200


class Transactions:
    """``on_error`` is told of what failed when nobody waited for it."""

    def __init__(
        self, detector: Detector, store: RedisStore, link: AsyncLink, on_error: Callable[[StoreError], None]
    ) -> None:
        """``detector`` is on that store, and its pages in flight are an ``Earlier`` (see ``filing``)."""
        self.detector = detector
        self.store = store
        self.link = link
        self.tasks: set[asyncio.Task[None]] = set()
        self._looks: set[asyncio.Task[None]] = set()
        self._on_error = on_error

    async def settled(self) -> None:
        """Wait until all is done for which nobody waited."""
        while running := self.tasks | self._looks:
            await asyncio.wait(running)

    def later(self, work: Coroutine[Any, Any, None], *, writes: bool = True) -> None:
        """Do something that nobody waits for; others that are to be done in order wait for what ``writes``."""
        running = self.tasks if writes else self._looks
        task = asyncio.ensure_future(self._watched(work))
        running.add(task)
        task.add_done_callback(running.discard)

    async def _watched(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except StoreError as error:
            self._on_error(error)

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
            finish(program, view)
            try:
                self.store.raise_for(await self.link.run(program))
            except OvertakenError:
                view.forget()
                continue
            self.counted(view)
            return done
        raise StoreError(
            f"{_TRIES} writes to the state at {self.store.location} failed, because others wrote first. Try again."
        )

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
            # Rare, and may be long.
            view.scans[missing.scan] = await self.link.in_thread(lambda: self.store.scanned(missing.scan))
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

    def counted(self, view: PageView) -> None:
        """Count what is to be counted once it is written; others are told of it with the next, or after a while."""
        self.store.count(view.notes)
        if self.store.has_much_to_tell:
            self.later(self._told(), writes=False)

    async def _told(self) -> None:
        program = self.link.program()
        while self.store.tell(program):
            try:
                await self.link.run_once(program)
            except NoAnswer:
                return  # they may have been told, and must not be told twice; whoever judges a page meets it too
            program = self.link.program()

    async def catch_up(self) -> None:
        """Tell others of what was counted here, and count what they have told."""
        await self._told()
        many = FEW
        while many == FEW:
            entries = await self.link.told_since(self.store.read_to)
            self.store.take_in(entries)
            many = len(entries)


def wanted(
    program: Program, view: PageView, rows: Iterable[bytes], postings: Iterable[tuple[int, int]]
) -> Callable[[Iterator[Any]], None]:
    """Have a program read what a view has not yet; the answer takes what it says into the view."""
    new_rows = [row for row in dict.fromkeys(rows) if row not in view.rows]
    new_postings = [one for one in dict.fromkeys(postings) if one not in view.postings]
    for row in new_rows:
        program.get(row)
    limits = {limit: [key for key, one in new_postings if one == limit] for _, limit in new_postings}
    for limit, keys in limits.items():
        program.newest([pack_key(key) for key in keys], limit)

    def take(answers: Iterator[Any]) -> None:
        view.rows.update(zip(new_rows, answers))  # noqa: B905  # others take what follows
        for limit, keys in limits.items():
            found = newest_of(next(answers), limit)
            view.postings.update([((key, limit), found.get(pack_key(key), [])) for key in keys])

    return take


# ----------------------------------------------------------------------------------------------------------------------
# A page on its way to its verdict, where all crawlers of a server see it; see ``server/in_flight`` for why that does.
#
# First what the page is filed under is looked up, and the page filed, in one step; then the records of what was found
# are fetched. By these the detector judges, which is the same as on a disk. So a verdict takes two ways to the server
# and back, and what it writes goes on its way while others are judged.


#: Seconds between two looks at a crawl that was not heard of.
_AGAIN = 1.0


class RemoteJudgements(Transactions):
    """The pages of one crawl that are judged, or on their way."""

    def __init__(
        self, detector: Detector, store: RedisStore, link: AsyncLink, on_error: Callable[[StoreError], None]
    ) -> None:
        """As for ``Transactions``."""
        super().__init__(detector, store, link, on_error)
        self.filings: dict[PendingPlace, RemoteJudgement] = {}
        self.on_their_way: dict[Reservation, RemoteJudgement] = {}
        self.awaited = Awaited(link, partial(self.later, writes=False))

    def filing(self, page: Page) -> RemoteJudgement:
        """A page that is to be judged; to be entered, and left when its verdict is known."""
        return RemoteJudgement(self, page)


class RemoteJudgement:
    """One page while it is judged, and until it is known what became of it."""

    #: As others see the page; there from the first check on.
    pending: PendingPage
    #: How often the server had been gone when it was filed there (``AsyncLink.breaks``).
    breaks = 0

    def __init__(self, crawl: RemoteJudgements, page: Page) -> None:
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

    async def __aenter__(self) -> RemoteJudgement:
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
