"""A crawl with a state on a server: its connections and its periodic work."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.errors import StoreError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.lists import trim
from scrapy_neardup.judge.remote import RemoteCrawl
from scrapy_neardup.state.expiry import Bounds
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.untrusted import line_logger

logger = line_logger(__name__)

#: Tries, a second each, to reach a server at the end of a crawl that waited for it.
_LAST_TRIES = 40
#: Seconds between two looks at the counts of others, and between two rounds of expiry; and steps of a round, at most.
_PAUSE, _EXPIRY, _STEPS = 1.0, 10.0, 5000


class ServerCrawl(RemoteCrawl):
    """The pages of a crawl on a server. A task counts what others count, and expires pages by a second connection."""

    def __init__(self, detector: Detector, notes: Notes, *, waits: bool, bounds: Bounds | None) -> None:
        """``waits``: wait for a server that is gone. ``bounds``: of the state."""
        super().__init__(detector, notes.report, self._note_lost, self._note_outage if waits else None)
        self._bounds = bounds
        self._notes = notes
        self._stop = asyncio.Event()
        self._upkeep = asyncio.ensure_future(self._keep_up())

    async def close(self) -> None:
        """Wait until all is written, and close the connections. The store sends the rest itself."""
        link = self.store.kv.link
        self._stop.set()
        try:
            await self._upkeep
            await self.finish()
        finally:
            if link.patient_thread is not None:
                link.patient_thread, link.tries = None, _LAST_TRIES
        if self._bounds:
            with suppress(StoreError):  # the next crawl tidies
                await self._tidy()
        await super().close()

    def give_up(self) -> None:
        """Cancel the periodic work of a crawl that does not begin."""
        self._upkeep.cancel()
        self.store.kv.link.patient_thread = None

    def _note_outage(self, why: str) -> None:
        """Log that pages wait for their server, or, without a reason, that the crawl goes on."""
        location = self.store.location
        if not why:
            logger.info("The server of the state at %s answers again. Pages are judged again.", location)
            return
        self._notes.count(stats.SERVER_GONE)
        logger.warning(
            "The server of the state at %s does not answer (%s). Pages wait for it, because NEARDUP_ON_STORE_ERROR is "
            "'wait'.",
            location,
            why,
        )

    def _note_lost(self) -> None:
        self._notes.count(stats.LOST_BY_SERVER)
        if self._notes.mark_logged("lost by the server"):
            logger.warning(
                "The server of the state at %s was down and has lost confirmed pages. They are judged again when they "
                "come again. To prevent losses, see the guide 'Crawl with many machines'.",
                self.store.location,
            )

    async def _keep_up(self) -> None:
        loop = asyncio.get_running_loop()
        tidied = loop.time()
        while True:
            with suppress(asyncio.TimeoutError):  # nobody cancels this task: an answer may be under way
                await asyncio.wait_for(self._stop.wait(), _PAUSE)
                return
            with suppress(StoreError):  # who judges a page meets it too
                await self.catch_up()
            seconds = loop.time() - tidied
            if seconds >= self.store.leases.seconds or (self._bounds and seconds >= _EXPIRY):
                tidied = loop.time()
                with suppress(StoreError):
                    await self._tidy()

    async def _tidy(self) -> None:
        rolled_back, expired, pages, size = await asyncio.to_thread(self._tidy_blocking)
        self.store.kv.known_pages = pages
        self._notes.set_state(pages, size)
        if rolled_back:
            self._notes.count(stats.TAKEN_BACK, rolled_back)
            logger.warning(
                "%d pages of crawls that no longer answer are rolled back in the state. They are judged again when "
                "they come again.",
                rolled_back,
            )
        if expired:
            self._notes.count(stats.EXPIRED, expired)

    def _tidy_blocking(self) -> tuple[int, int, int, int]:
        """Roll back the pages of dead crawls, expire pages and old drops.

        Returns how many pages were rolled back and expired, how many are left, and the size of the state.
        """
        kv = self.store.kv
        store = open_at(type(kv), kv.location, None, kv.named_by, self.store.secret)
        try:
            expired = 0
            for _ in range(_STEPS if self._bounds else 0):
                expired += (step := store.expire(self._bounds))  # type: ignore[arg-type]
                if not step:
                    break
            trim(store, store.kv.count(b"d"))
            return store.rolled_back.pages, expired, store.pages, store.kv.size()
        finally:
            store.close()
