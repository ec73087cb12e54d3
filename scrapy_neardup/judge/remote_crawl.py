"""One crawl on a server: it judges pages, commits and seals them, and notes pages that the server has lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice

from scrapy_neardup.errors import StoreError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Reservation
from scrapy_neardup.judge.remote import RemoteJudgement, RemoteState
from scrapy_neardup.model import Page
from scrapy_neardup.server.asynchronous import AsyncLink
from scrapy_neardup.server.in_flight import PendingPage
from scrapy_neardup.server.layout import pending_name
from scrapy_neardup.server.leases import PageLost
from scrapy_neardup.server.program import Program
from scrapy_neardup.server.rows import RemoteTransaction
from scrapy_neardup.server.store import BATCH, RedisStore
from scrapy_neardup.state import layout
from scrapy_neardup.state.record import Record


class RemoteCrawl(RemoteState):
    """Judges the pages of a crawl. The other methods are those of the detector, and return before they are done."""

    def __init__(
        self,
        detector: Detector,
        store: RedisStore,
        link: AsyncLink,
        on_error: Callable[[StoreError], None],
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_lost`` is called when the item of a page came through that the server has lost."""
        super().__init__(detector, store, link, on_error)
        self._on_lost = on_lost
        self._breaks = link.breaks

    def judgement(self, page: Page) -> RemoteJudgement:
        """Return the judgement of a page; enter it, and leave it with the verdict."""
        return RemoteJudgement(self, page)

    async def is_unchanged(self, url: str, mark: int) -> bool:
        """Like ``Detector.is_unchanged``."""
        return await self.run(lambda: self.detector.is_unchanged(url, mark), RemoteTransaction())

    async def catch_up(self) -> None:
        """Exchange counts with the others. After a failover also remove pages of ours that are over."""
        if (breaks := self.link.breaks) != self._breaks:
            await self._remove_revived()
            self._breaks = breaks
        await super().catch_up()

    async def _remove_revived(self) -> None:
        """Remove pages of ours that are in flight again because the server lost their outcome: copies wait for them."""
        crawl = self.detector.generation
        for id, packed in (await self.link.fields(pending_name(crawl))).items():
            page = PendingPage(Record.unpack(int.from_bytes(id, "big"), packed), crawl)
            if page.place not in self.judgements:
                program = self.link.program()
                page.unregister(program, self.store.hashes)
                await self.link.run(program)

    def commit(self, reservation: Reservation, *, sealed: bool) -> None:
        """The item came through."""
        self.start(self._commit(reservation, sealed))

    def release(self, reservation: Reservation) -> None:
        """The item was lost."""
        self.start(self._release(reservation))

    def withdraw(self, id: int) -> None:
        """Roll back a committed page."""
        self.start(self._withdraw(id, list(self.writes)))

    def seal(self, ids: Iterable[int]) -> None:
        """The feeds that hold these pages are stored."""
        self.start(self._seal(list(ids), list(self.writes)))

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
            await self.transact(lambda some=some: self.detector.seal(some), transaction)  # type: ignore[misc]
