"""Read pages asynchronously, and judge them in the order in which they came."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from time import monotonic, perf_counter
from typing import Any, TypeVar

from scrapy.utils.asyncio import call_later, is_asyncio_available

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.event import Event
from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.judge.fingerprint_tasks import Prepared
from scrapy_neardup.judge.page_tasks import Readers, ReadPage
from scrapy_neardup.model import Page
from scrapy_neardup.page.apart import MayTakeLong, NoReader
from scrapy_neardup.page.pool import Pages, Pool
from scrapy_neardup.page.response import PageContent
from scrapy_neardup.page.source import PageSource, ReadTask
from scrapy_neardup.settings import AUTO, Config

# ----------------------------------------------------------------------------------------------------------------------
# Pages are judged in the order in which they came, though some are read sooner than those before them.


#: Seconds after which a page that is still being read is overtaken.
PATIENCE = 0.5
#: Seconds for which those behind a judged page wait for its item to come through.
_SOON = 0.002


class Turns:
    """The pages that are to be judged, first come, first served."""

    def __init__(self) -> None:
        self._line: OrderedDict[Turn, None] = OrderedDict()

    def join(self) -> Turn:
        """That of a page that has just come; whoever gets it is to leave, come what may."""
        turn = Turn(self)
        self._line[turn] = None
        return turn

    @property
    def front(self) -> Turn:
        """Whose turn it is."""
        return next(iter(self._line))

    def __contains__(self, turn: Turn) -> bool:
        return turn in self._line

    def __len__(self) -> int:
        return len(self._line)

    def remove(self, turn: Turn) -> None:
        """Take one out of the line; the next is told if it is its turn, but not before whoever leaves is through.

        Told at once it would be judged in here, and the next one in there, without an end.
        """
        if turn in self._line:
            was_front = turn is self.front
            del self._line[turn]
            if was_front and self._line and self.front.is_read:
                call_later(0, self.front.has_come.happen)


class Turn:
    """One page's turn to be judged; that it is being read, and was, may be said from any thread."""

    def __init__(self, turns: Turns) -> None:
        self.has_come = Event()
        self.is_read = False
        self._turns = turns
        self._begun: float | None = None
        self._stays = False

    def begin(self) -> None:
        """From now on the page is being read."""
        self._begun = monotonic()
        self.is_read = False

    def end(self) -> None:
        """The page has been read."""
        self.is_read = True

    def leave(self) -> None:
        """The page is judged, or cannot be, or others need not wait for it any more."""
        if not self._stays:
            self._turns.remove(self)

    def stay_until(self, when: Callable[[Callable[[], None]], None]) -> None:
        """Leave once ``when`` calls, which is told by what, or soon.

        An item that no later pipeline holds comes through in less than a millisecond, and its page counts from then on.
        A crawl that reads its pages itself takes longer for the next one, which waits here, to be judged by the same.
        """
        if len(self._turns) > 1 and self in self._turns:
            self._stays = True
            when(self._go)
            call_later(_SOON, self._go)

    def _go(self) -> None:
        self._stays = False
        self.leave()

    async def comes(self) -> None:
        """Wait until those before have left, or hold up the others for too long."""
        self.is_read = True
        while self in self._turns and (front := self._turns.front) is not self:
            left = front.patience()
            if left > 0:
                await self.has_come.wait(left)
            else:
                front.leave()

    def patience(self) -> float:
        """For how many seconds those behind are to wait at least before they look again."""
        if self.is_read or self._begun is None:
            return PATIENCE
        return self._begun + PATIENCE - monotonic()


# ----------------------------------------------------------------------------------------------------------------------
# Pages are read elsewhere, and the crawl goes on in the meantime: those that may take long, and with workers all.


#: Seconds that nobody waits in vain: what is waited for is bounded itself, and so are those before it.
_FOR_GOOD = 3600.0
IsUnchanged = Callable[[str, int], Awaitable[bool]]
_Made = TypeVar("_Made", Page, Page | ReadTask)
_A = TypeVar("_A")
#: Seconds of reading before workers that nobody asked for are started: each takes one to start, and some 150 MB.
_BEGINNING = 3.0


class AsyncPageReader:
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

    async def read(self, draft: ReadTask, turn: Turn) -> ReadPage:
        """The page of a draft; raises ExtractionError if there is none. Others need not wait for what may take long."""
        made, prepared = await self._made(draft, turn)
        if isinstance(made, Page):
            return ReadPage(made, prepared)
        if self._is_unchanged is not None:
            mark = self._source.hash_html(made)
            if await self._is_unchanged(made.content.url, mark):
                return ReadPage(self._source.skip(made, mark, "too_slow"))
        await turn.comes()  # so that such pages are read in the order in which they came
        turn.leave()
        if self._apart is None:
            return ReadPage(self._timed(self._source.read, made))
        self._notes.count(stats.APART)
        answer = await self._asked(self._apart, made.content)
        assert not isinstance(answer, MayTakeLong)
        return ReadPage(self._source.finish(made, answer))

    def close(self) -> None:
        """End the processes; pages that are still to be read are too slow."""
        for close in self._close:
            close()

    async def _made(self, draft: ReadTask, turn: Turn) -> tuple[Page | ReadTask, Prepared | None]:
        """The page, or the draft of one that may take long; of one that a worker has read, with its fingerprint."""
        pool = self._workers
        if pool is None or self.spent < self._after:
            return self._timed(self._source.read_here, draft), None
        answer = await self._asked(pool, draft.content, turn)
        self._tell(pool)
        if isinstance(answer, ReadPage):
            return self._source.accept(draft, answer.page), answer.prepared
        if not isinstance(answer, NoReader):
            return self._source.accept(draft, answer), None
        self._workers = None
        self._notes.warn_once(
            "workers",
            "NEARDUP_WORKERS is off from here on, because %s. If other processes cannot import NEARDUP_EXTRACTOR or "
            "NEARDUP_METHOD, move it to a module that they can import.",
            str(answer).rstrip("."),
        )
        return self._timed(self._source.read_here, draft), None

    def _timed(self, read: Callable[[ReadTask], _Made], draft: ReadTask) -> _Made:
        begun = perf_counter()
        try:
            return read(draft)
        finally:
            self.spent += perf_counter() - begun

    async def _asked(
        self, pool: Pool[PageContent, _A], raw: PageContent, turn: Turn | None = None
    ) -> _A | ExtractionError:
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


def make_page_reader(
    source: PageSource,
    config: Config,
    notes: Notes,
    *,
    hashes: Keyed | None = None,
    is_unchanged: IsUnchanged | None = None,
) -> AsyncPageReader:
    """What reads the pages of a crawl with these settings, to be closed by whoever asked.

    ``hashes``: of the state, if fingerprints can be made ahead. The rest is as for ``AsyncPageReader``.
    """
    if not config.terms.can_be_sent:
        if config.many_workers:
            notes.warn_once(
                "workers",
                "NEARDUP_WORKERS is off, because NEARDUP_EXTRACTOR is a function of the started script, which workers "
                "cannot import. Move it to a module of its own.",
            )
        return AsyncPageReader(source, notes, apart=None, is_unchanged=is_unchanged)
    return AsyncPageReader(
        source,
        notes,
        apart=Pool(config.terms, 1, "neardup-apart"),
        workers=config.make_readers(hashes),
        after=_BEGINNING if config.workers == AUTO else 0.0,
        is_unchanged=is_unchanged,
    )
