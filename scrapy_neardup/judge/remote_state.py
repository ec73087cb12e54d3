"""A state on a server as one crawl uses it: synchronous code and writes, while the crawl goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from scrapy_neardup.errors import StoreError
from scrapy_neardup.kv.base import Row
from scrapy_neardup.server.asynchronous import AsyncLink, NoAnswer, Patience
from scrapy_neardup.server.counting import FEW
from scrapy_neardup.server.program import Program
from scrapy_neardup.server.store import RedisStore
from scrapy_neardup.server.transaction import TRIES, NotFetched, OvertakenError, RemoteTransaction, overtaken_too_often

T = TypeVar("T")


class RemoteState:
    """A state on a server as one crawl uses it. Nothing else runs during one run of synchronous code."""

    def __init__(self, store: RedisStore, on_error: Callable[[StoreError], None], patience: Patience | None) -> None:
        """Make it on the running loop. ``on_error`` gets errors of work that nobody awaits.

        ``patience``: see ``AsyncLink``.
        """
        self.store = store
        self.link = AsyncLink(store.location, patience)
        self._on_error = on_error
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Wait until all is written, and close the connections."""
        await self.finish()
        await self.link.close()

    # Work that nobody awaits.

    def start(self, work: Coroutine[Any, Any, None], *, follows: bool = False) -> None:
        """Start work that nobody awaits. If it ``follows``, all started work is done first."""
        task = asyncio.ensure_future(self._report_errors(work, list(self._tasks) if follows else []))
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
        self, work: Callable[[], object], transaction: RemoteTransaction, *operations: Callable[[Program], None]
    ) -> None:
        """Run synchronous work and write its changes; again, until nobody writes first.

        ``operations`` add to the program what rows cannot say.
        """
        for _ in range(TRIES):
            await self.run(work, transaction)
            program = self.store.kv.write_program(transaction.changes, transaction.read_set)
            for add in operations:
                add(program)
            try:
                self.store.kv.raise_for(await self.link.run(program))
            except OvertakenError:
                transaction.discard_read_set()
                continue
            self.count(transaction)
            return
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
                rows = await self.link.in_thread(partial(self._fetch_all, missing.scan))
                transaction.scans[missing.scan] = rows
            else:
                await self.fetch(transaction, missing.rows, missing.postings)

    def _fetch_all(self, prefix: bytes) -> list[Row]:
        return list(self.store.kv.fetch_all(prefix))

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
        program = self.link.program()
        take = transaction.add_reads(program, rows, postings)
        if not program.is_empty:
            take(iter((await self.link.run(program))[1:]))

    # Counted sentences.

    def count(self, transaction: RemoteTransaction) -> None:
        """Count the sentences of a written page. Others learn of them later."""
        self.store.boilerplate.count(transaction.notes)

    async def exchange_counts(self) -> None:
        """Publish what was counted here, and count what others have published."""
        with suppress(NoAnswer):  # it may have been published, and must not be twice
            while self.store.boilerplate.publish(program := self.link.program()):
                await self.link.run_once(program)
        many = FEW
        while many == FEW:
            entries = await asyncio.to_thread(self.store.boilerplate.fetch_entries, FEW)
            self.store.boilerplate.count_entries(entries)
            many = len(entries)
