"""Pages are read elsewhere, and the crawl goes on in the meantime: those that may take long, and with workers all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, TypeVar

from scrapy.utils.asyncio import is_asyncio_available

from scrapy_neardup.config import AUTO, Config
from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.crawl.turns import Turn
from scrapy_neardup.crawl.waiting import Event
from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.judging.prepared import Prepared
from scrapy_neardup.judging.reader import Readers, ReadPage
from scrapy_neardup.model import Page
from scrapy_neardup.page.apart import MayTakeLong, NoReader
from scrapy_neardup.page.pool import Pages, Pool
from scrapy_neardup.page.raw import Raw
from scrapy_neardup.page.source import Draft, PageSource

#: Seconds that nobody waits in vain: what is waited for is bounded itself, and so are those before it.
_FOR_GOOD = 3600.0
IsUnchanged = Callable[[str, int], Awaitable[bool]]
_Made = TypeVar("_Made", Page, Page | Draft)
_A = TypeVar("_A")
#: Seconds of reading before workers that nobody asked for are started: each takes one to start, and some 150 MB.
_BEGINNING = 3.0


class Aside:
    """Reads pages for a loop that must not be held up."""

    def __init__(
        self,
        source: PageSource,
        notes: Notes,
        *,
        apart: Pages | None,
        workers: Readers | None = None,
        after: float = 0.0,
        is_unchanged: IsUnchanged | None = None,
    ) -> None:
        """``apart`` reads pages that may take long, ``workers`` all others; without them they are read here.

        ``after``: seconds of reading here before workers are started. ``is_unchanged``: what the source asks of a page
        that may take long, where the answer comes over a network.
        """
        #: Seconds spent on reading, wherever that was.
        self.spent = 0.0
        self._source = source
        self._is_unchanged = is_unchanged
        self._notes = notes
        self._apart = apart
        self._workers = workers
        self._close = [pool.close for pool in (workers, apart) if pool is not None]
        self._after = after

    async def read(self, draft: Draft, turn: Turn) -> ReadPage:
        """The page of a draft; raises ExtractionError if there is none. Others need not wait for what may take long."""
        made, prepared = await self._made(draft, turn)
        if isinstance(made, Page):
            return ReadPage(made, prepared)
        if self._is_unchanged is not None:
            mark = self._source.mark(made)
            if await self._is_unchanged(made.raw.url, mark):
                return ReadPage(self._source.unread(made, mark, "too_slow"))
        await turn.comes()  # so that such pages are read in the order in which they came
        turn.leave()
        if self._apart is None:
            return ReadPage(self._timed(self._source.read, made))
        self._notes.count(stats.APART)
        answer = await self._asked(self._apart, made.raw)
        assert not isinstance(answer, MayTakeLong)
        return ReadPage(self._source.finished(made, answer))

    def close(self) -> None:
        """End the processes; pages that are still to be read are too slow."""
        for close in self._close:
            close()

    async def _made(self, draft: Draft, turn: Turn) -> tuple[Page | Draft, Prepared | None]:
        """The page, or the draft of one that may take long; of one that a worker has read, with its fingerprint."""
        pool = self._workers
        if pool is None or self.spent < self._after:
            return self._timed(self._source.read_here, draft), None
        answer = await self._asked(pool, draft.raw, turn)
        self._tell(pool)
        if isinstance(answer, ReadPage):
            return self._source.answered(draft, answer.page), answer.prepared
        if not isinstance(answer, NoReader):
            return self._source.answered(draft, answer), None
        self._workers = None
        self._notes.warn_once(
            "workers",
            "NEARDUP_WORKERS is off from here on, because %s. If other processes cannot import NEARDUP_EXTRACTOR or "
            "NEARDUP_METHOD, move it to a module that they can import.",
            str(answer).rstrip("."),
        )
        return self._timed(self._source.read_here, draft), None

    def _timed(self, read: Callable[[Draft], _Made], draft: Draft) -> _Made:
        begun = perf_counter()
        try:
            return read(draft)
        finally:
            self.spent += perf_counter() - begun

    async def _asked(self, pool: Pool[Raw, _A], raw: Raw, turn: Turn | None = None) -> _A | ExtractionError:
        """What the pool answers."""
        done, found, wake = Event(), list[tuple[_A | ExtractionError, float]](), _waker()

        def answered(answer: _A | ExtractionError, seconds: float) -> None:
            found.append((answer, seconds))
            if turn is not None:
                turn.end()
            wake(done.happen)

        pool.ask(raw, answered, turn.begin if turn is not None else lambda: None)
        await done.wait(_FOR_GOOD)
        if not found:
            return ExtractionError("too_slow", "no worker answered within an hour")
        answer, seconds = found[0]
        self.spent += seconds
        return answer

    def _tell(self, pool: Readers) -> None:
        """Say that processes were replaced, once, and count them."""
        if replaced := pool.replaced:
            self._notes.stats.set_value(stats.REPLACED, replaced)
            self._notes.warn_once(
                "replaced",
                "A worker that reads pages %s. Another one replaces it.",
                pool.why,
            )


def _waker() -> Callable[[Callable[[], Any]], Any]:
    """Has something called by the loop that runs here, from a thread."""
    if is_asyncio_available():
        loop = asyncio.get_running_loop()
        return _unless_over(loop.call_soon_threadsafe)
    from twisted.internet import reactor

    return reactor.callFromThread  # type: ignore[no-any-return]  # the module is the reactor


def _unless_over(call: Callable[[Callable[[], Any]], Any]) -> Callable[[Callable[[], Any]], Any]:
    def wake(what: Callable[[], Any]) -> None:
        try:
            call(what)
        except RuntimeError:  # the loop is closed, and nobody waits any more
            return

    return wake


def make_aside(
    source: PageSource,
    config: Config,
    notes: Notes,
    *,
    hashes: Keyed | None = None,
    is_unchanged: IsUnchanged | None = None,
) -> Aside:
    """What reads the pages of a crawl with these settings, to be closed by whoever asked.

    ``hashes``: of the state, if fingerprints can be made ahead. The rest is as for ``Aside``.
    """
    if not config.terms.can_be_sent:
        if config.many_workers:
            notes.warn_once(
                "workers",
                "NEARDUP_WORKERS is off, because NEARDUP_EXTRACTOR is a function of the started script, which workers "
                "cannot import. Move it to a module of its own.",
            )
        return Aside(source, notes, apart=None, is_unchanged=is_unchanged)
    return Aside(
        source,
        notes,
        apart=Pool(config.terms, 1, "neardup-apart"),
        workers=config.make_readers(hashes),
        after=_BEGINNING if config.workers == AUTO else 0.0,
        is_unchanged=is_unchanged,
    )
