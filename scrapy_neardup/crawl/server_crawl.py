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

#: Seconds that a new crawl waits for its server: longer than a failover with the defaults of Redis and Sentinel.
_BEGINNING = 120.0
#: Seconds between two looks at the counts of others, and between two times of forgetting; steps of that at most.
_PAUSE, _FORGETTING, _STEPS = 1.0, 10.0, 5000


def need_asyncio() -> None:
    """Raise SettingsError if Scrapy does not run on asyncio."""
    if not is_asyncio_available():
        raise SettingsError(
            f"{SETTING} names a state on a server, which needs Scrapy's asyncio reactor. Remove TWISTED_REACTOR from "
            "the settings, because asyncio is the default, or name a state on this machine."
        )


@dataclass
class ServerWatch:
    """Logs that the server is gone, and that it is back, for NEARDUP_ON_STORE_ERROR = 'wait'."""

    location: str
    notes: Notes

    def gone(self, why: str) -> None:
        """Pages wait until the server is back."""
        self.notes.count(stats.SERVER_GONE)
        logger.warning(
            "The server of the state at %s does not answer (%s). Pages wait for it, because "
            "NEARDUP_ON_STORE_ERROR is 'wait'.",
            self.location,
            why,
        )

    def back(self) -> None:
        """Pages are judged again."""
        logger.info("The server of the state at %s answers again. Pages are judged again.", self.location)


async def until_it_answers(url: str, notes: Notes) -> None:
    """Wait at most two minutes for the server of a state. If it does not answer, opening the state says why."""
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
    """The connection of one crawl to its server, and the upkeep there. Judge and ledger use ``crawl``."""

    def __init__(
        self,
        detector: Detector,
        notes: Notes,
        *,
        waits: bool,
        bounds: Bounds | None,
        on_error: Callable[[StoreError], None],
    ) -> None:
        """``bounds`` of the state: a connection of its own forgets old pages. ``waits`` for a server that is gone."""
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
        """Wait until everything is written, and close the connection. The store itself writes the last rows."""
        self._stop.set()
        await self._upkeep
        await self.crawl.settled()
        if self._waits:
            self._store.wait_longer()
        if self._bounds:
            with suppress(StoreError):  # the next crawl tidies
                await self._tidy()
        await self._link.close()

    def give_up(self) -> None:
        """The crawl does not begin, so nothing waits to be written."""
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
        """Roll back pages of dead crawls, and forget pages beyond the bounds, until the crawl ends."""
        loop = asyncio.get_running_loop()
        last = loop.time()
        while not await self._is_over(_PAUSE):
            with suppress(StoreError):  # the next judged page meets it, too
                await self.crawl.catch_up()
            is_due = loop.time() - last >= self._store.lease
            if not (is_due or (self._bounds and loop.time() - last >= _FORGETTING)):
                continue
            last = loop.time()
            with suppress(StoreError):
                await self._tidy()

    async def _is_over(self, seconds: float) -> bool:
        """Wait so long, or until the crawl ends. Nothing is cancelled, because an answer may be on its way."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)
        return self._stop.is_set()

    async def _tidy(self) -> None:
        rolled_back, expired = await asyncio.to_thread(self._tidy_in_thread)
        if rolled_back:
            self._notes.count(stats.TAKEN_BACK, rolled_back)
            logger.warning(
                "%d pages of crawls that no longer answer are rolled back in the state. They are judged again when "
                "they come again.",
                rolled_back,
            )
        if expired:
            self._notes.count(stats.EXPIRED, expired)

    def _tidy_in_thread(self) -> tuple[int, int]:
        """Returns how many pages were rolled back, and forgotten. Removes old drops, too."""
        store = type(self._store)(self._store.location, None, self._store.named_by, self._store.secret)
        try:
            expired = 0
            for _ in range(_STEPS if self._bounds else 0):
                expired += (step := store.expire(self._bounds))  # type: ignore[arg-type]
                if not step:
                    break
            trim(store, store.count_rows(b"d"))
            return store.taken_back.pages, expired
        finally:
            store.close()
