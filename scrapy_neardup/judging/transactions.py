"""The way of one crawl to a state on a server: synchronous work done on what was fetched, and written if still so.

The work asks the store, which answers from a view (``stores/view``); what is missing is fetched, and the work begins
again. Between two steps of it nothing else runs, so one store serves all pages of a crawl.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, TypeVar

from scrapy_neardup.errors import StoreError
from scrapy_neardup.hashing.width import KeyWidth
from scrapy_neardup.judging.detector import Detector
from scrapy_neardup.stores.redis import RedisStore
from scrapy_neardup.stores.redis_async import AsyncLink, NoAnswer
from scrapy_neardup.stores.redis_counting import OvertakenError
from scrapy_neardup.stores.redis_notes import FEW
from scrapy_neardup.stores.redis_program import Program
from scrapy_neardup.stores.redis_rows import newest_of
from scrapy_neardup.stores.view import NotFetched, PageView

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
        take = wanted(program, view, rows, postings, self.store.width)
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
    program: Program, view: PageView, rows: Iterable[bytes], postings: Iterable[tuple[int, int]], width: KeyWidth
) -> Callable[[Iterator[Any]], None]:
    """Have a program read what a view has not yet; the answer takes what it says into the view.

    ``width``: of the keys of the state.
    """
    new_rows = [row for row in dict.fromkeys(rows) if row not in view.rows]
    new_postings = [one for one in dict.fromkeys(postings) if one not in view.postings]
    for row in new_rows:
        program.get(row)
    limits = {limit: [key for key, one in new_postings if one == limit] for _, limit in new_postings}
    for limit, keys in limits.items():
        program.newest([width.pack(key) for key in keys], limit)

    def take(answers: Iterator[Any]) -> None:
        view.rows.update(zip(new_rows, answers))  # noqa: B905  # others take what follows
        for limit, keys in limits.items():
            found = newest_of(next(answers), limit)
            view.postings.update([((key, limit), found.get(width.pack(key), [])) for key in keys])

    return take
