"""One crawl on a server: commits, seals and lost pages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice

from scrapy_neardup.errors import StoreError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Reservation
from scrapy_neardup.judge.remote import RemoteJudgements
from scrapy_neardup.server.asynchronous import AsyncLink
from scrapy_neardup.server.counting import PageView
from scrapy_neardup.server.in_flight import PendingPage
from scrapy_neardup.server.layout import pending_name
from scrapy_neardup.server.leases import PageLost
from scrapy_neardup.server.program import Program
from scrapy_neardup.server.store import RedisStore
from scrapy_neardup.state import layout
from scrapy_neardup.state.record import Record

#: Pages that are sealed in one piece.
_BATCH = 200


class SharedCrawl(RemoteJudgements):
    """``filing`` a page has it judged; the rest is as of the detector, but later."""

    def __init__(
        self,
        detector: Detector,
        store: RedisStore,
        link: AsyncLink,
        on_error: Callable[[StoreError], None],
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_lost`` is told of a page whose item came through, and which the server has lost before."""
        super().__init__(detector, store, link, on_error)
        self._on_lost = on_lost
        self._breaks = link.breaks

    async def catch_up(self) -> None:
        """Count what others have counted; and see what a server that was gone has forgotten."""
        if (breaks := self.link.breaks) != self._breaks:
            await self._strike_what_is_over()
            self._breaks = breaks
        await super().catch_up()

    async def _strike_what_is_over(self) -> None:
        """Remove pages of ours that the server has on their way again, as it has lost what became of them.

        Copies would wait for them until this crawl is over.
        """
        crawl = self.detector.generation
        for id, packed in (await self.link.fields(pending_name(crawl))).items():
            page = PendingPage(Record.unpack(int.from_bytes(id, "big"), packed), crawl)
            if page.place not in self.filings:
                program = self.link.program()
                page.remove(program, self.store.hashes)
                await self.link.run(program)

    # As of the detector; whoever calls does not wait.

    def commit(self, reservation: Reservation, *, sealed: bool) -> None:
        """The item came through."""
        self.later(self._committed(reservation, sealed))

    def release(self, reservation: Reservation) -> None:
        """The item was lost."""
        self.later(self._released(reservation))

    def withdraw(self, id: int) -> None:
        """Take back a page that was committed."""
        self.after_all(lambda: self.detector.withdraw(id))

    def seal(self, ids: Iterable[int]) -> None:
        """The feeds that hold these pages are stored."""
        self.later(self._sealed(list(ids), list(self.tasks)))

    def after_all(self, work: Callable[[], None]) -> None:
        """Do synchronous work on the state once all pending writes are done."""
        self.later(self._after_all(work, list(self.tasks)))

    async def is_unchanged(self, url: str, mark: int) -> bool:
        """As of the detector."""
        return await self.done(lambda: self.detector.is_unchanged(url, mark), PageView())

    async def _committed(self, reservation: Reservation, sealed: bool) -> None:
        filing = self.on_their_way.pop(reservation)
        key = layout.record_key(reservation.record.id)

        def finish(program: Program, view: PageView) -> None:
            filing.pending.expect_here(program, key, view.changes.puts[key])
            filing.pending.remove(program, self.store.hashes)

        try:
            await self.transacted(lambda: self.detector.file(reservation, sealed=sealed), filing.view, finish)
        except PageLost:
            if filing.breaks == self.link.breaks:
                raise
            self._on_lost()  # with the server that had it; it comes again
        finally:
            filing.is_over()
            reservation.settle()

    async def _released(self, reservation: Reservation) -> None:
        filing = self.on_their_way.pop(reservation)
        try:
            await filing.unfiled()
        finally:
            reservation.settle()

    async def _after_all(self, work: Callable[[], None], before: list[asyncio.Task[None]]) -> None:
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
