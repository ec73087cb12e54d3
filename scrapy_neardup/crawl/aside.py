"""Pages that may take long are read elsewhere, and the crawl goes on in the meantime."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Thread
from typing import Any

from scrapy.utils.asyncio import is_asyncio_available

from scrapy_neardup.crawl.waiting import Event
from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.model import Page
from scrapy_neardup.page.apart import Apart
from scrapy_neardup.page.source import Draft

#: Seconds that nobody waits in vain: what is waited for is bounded itself, and so are those before it.
_FOR_GOOD = 3600.0


class Aside:
    """``Apart`` for a loop that must not be held up.

    A thread waits for the child; it parses nothing, as two threads in lxml bring the process down. It is a daemon, so
    that a crawl that is made to stop at once does not wait for pages that are still in the queue.
    """

    def __init__(self, apart: Apart) -> None:
        self._apart = apart

    async def read(self, draft: Draft) -> Page:
        """The page of a draft; raises ExtractionError if there is none."""
        done, found, wake = Event(), list[Page | Exception](), _waker()

        def wait() -> None:
            try:
                found.append(self._apart.read(draft.html, draft.url))
            except Exception as error:  # for whoever waits to raise
                found.append(error)
            wake(done.happen)

        Thread(target=wait, name="neardup-apart", daemon=True).start()
        await done.wait(_FOR_GOOD)
        answer = found[0]
        if isinstance(answer, (Page, ExtractionError)):
            return draft.finished(answer)
        raise answer

    def close(self) -> None:
        """End the child; pages that are still to be read are too slow."""
        self._apart.close()


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
