"""A crawl whose state is on a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from scrapy.utils.asyncio import is_asyncio_available

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.errors import SettingsError, StoreError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.drops import trim
from scrapy_neardup.judge.remote_crawl import SharedCrawl
from scrapy_neardup.oneline import line_logger
from scrapy_neardup.server.asynchronous import AsyncLink
from scrapy_neardup.server.store import RedisStore
from scrapy_neardup.state.expiry import Bounds
from scrapy_neardup.state.kv import SETTING
from scrapy_neardup.state.opening import parse_url

logger = line_logger(__name__)

#: Seconds for which a crawl that is about to begin waits for its server: longer than a failover takes with what Redis
#: and Sentinel come with.
_BEGINNING = 120.0
#: Seconds between two looks at what others have counted, at what is to be forgotten, and steps of that at most.
_PAUSE, _FORGETTING, _STEPS = 1.0, 10.0, 5000


def need_asyncio() -> None:
    """Raise SettingsError where Scrapy runs on another loop."""
    if not is_asyncio_available():
        raise SettingsError(
            f"{SETTING} names a state on a server, which needs Scrapy's asyncio reactor. Remove TWISTED_REACTOR from "
            "the settings, because asyncio is the default, or name a state on this machine."
        )


@dataclass
class ServerWatch:
    """Says once that the server is gone, and once that it is back: NEARDUP_ON_STORE_ERROR = 'wait'."""

    location: str
    notes: Notes

    def gone(self, why: str) -> None:
        """No page is judged until it is back, and none is lost."""
        self.notes.count(stats.SERVER_GONE)
        logger.warning(
            "The server of the state at %s does not answer (%s). Pages wait for it, because "
            "NEARDUP_ON_STORE_ERROR is 'wait'.",
            self.location,
            why,
        )

    def back(self) -> None:
        """All goes on."""
        logger.info("The server of the state at %s answers again. Pages are judged again.", self.location)


async def until_it_answers(url: str, notes: Notes) -> None:
    """Wait for the server of a state before a crawl begins, two minutes at most: opening it then says what is wrong."""
    need_asyncio()
    _, location = parse_url(url)
    link = AsyncLink(location, SETTING, ServerWatch(location, notes))
    program = link.program()
    program.count()
    try:
        await asyncio.wait_for(link.run(program), _BEGINNING)
    except (asyncio.TimeoutError, StoreError):
        return
    finally:
        await link.close()


class Sharing:
    """The connections of one crawl, and its upkeep; ``crawl`` is what judge and ledger ask."""

    def __init__(
        self,
        detector: Detector,
        notes: Notes,
        *,
        waits: bool,
        bounds: Bounds | None,
        on_error: Callable[[StoreError], None],
    ) -> None:
        """``detector``: on a state on a server.

        ``bounds``: how much that is to know; it is forgotten beside the judging, by a connection of its own.
        """
        store = detector.store
        assert isinstance(store, RedisStore)
        self._store = store
        self._bounds = bounds
        self._waits = waits
        self._notes = notes
        self._link = AsyncLink(store.location, store.named_by, ServerWatch(store.location, notes) if waits else None)
        self.crawl = SharedCrawl(detector, store, self._link, on_error, self._lost)
        self._stop = asyncio.Event()
        self._upkeep = asyncio.ensure_future(self._keep_up())

    async def close(self) -> None:
        """Wait until all is written, and let go of the server.

        What is left to be written at the end is sent by the store itself, while nothing else is to be done.
        """
        self._stop.set()
        await self._upkeep
        await self.crawl.settled()
        if self._waits:
            self._store.wait_longer()
        if self._bounds:
            with suppress(StoreError):  # the next crawl does it
                await self._tidy()
        await self._link.close()

    def give_up(self) -> None:
        """The crawl does not begin: nothing was written that is to be waited for."""
        self._upkeep.cancel()

    def _lost(self) -> None:
        self._notes.count(stats.LOST_BY_SERVER)
        if self._notes.mark_logged("lost by the server"):
            logger.warning(
                "The server of the state at %s was down and has lost confirmed pages. They are judged again when they "
                "come again. To prevent losses, see the guide 'Crawl with many machines'.",
                self._store.location,
            )

    async def _keep_up(self) -> None:
        """Take back what crawls that are no more have left, and forget what is too old or too much."""
        loop = asyncio.get_running_loop()
        looked = loop.time()
        while not await self._is_over(_PAUSE):
            with suppress(StoreError):  # whoever judges a page meets it too
                await self.crawl.catch_up()
            is_due = loop.time() - looked >= self._store.lease
            if not (is_due or (self._bounds and loop.time() - looked >= _FORGETTING)):
                continue
            looked = loop.time()
            with suppress(StoreError):
                await self._tidy()

    async def _is_over(self, seconds: float) -> bool:
        """After so many seconds, or at once when it is. Nothing is cancelled: an answer may be on its way."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)
        return self._stop.is_set()

    async def _tidy(self) -> None:
        back, gone = await asyncio.to_thread(self._tidied)
        if back:
            self._notes.count(stats.TAKEN_BACK, back)
            logger.warning(
                "%d pages of crawls that no longer answer are rolled back in the state. They are judged again when "
                "they come again.",
                back,
            )
        if gone:
            self._notes.count(stats.EXPIRED, gone)

    def _tidied(self) -> tuple[int, int]:
        """In a thread: how many pages were taken back, and forgotten. Old drops go, too."""
        store = type(self._store)(self._store.location, None, self._store.named_by, self._store.secret)
        try:
            gone = 0
            for _ in range(_STEPS if self._bounds else 0):
                gone += (step := store.expire(self._bounds))  # type: ignore[arg-type]
                if not step:
                    break
            trim(store, store.count_rows(b"d"))
            return store.taken_back.pages, gone
        finally:
            store.close()
