"""Wait for an event with a timeout, on any event loop that Scrapy supports."""

from __future__ import annotations

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred


class Event:
    """Happens once; any number of tasks may wait for it."""

    def __init__(self) -> None:
        self._happened = False
        self._waiting: list[Deferred[None]] = []

    def happen(self) -> None:
        """Wake all tasks that wait."""
        self._happened = True
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.called:
                one.callback(None)

    async def wait(self, seconds: float) -> bool:
        """Wait at most so long; returns whether it has happened."""
        if self._happened:
            return True
        arrived: Deferred[None] = Deferred()
        self._waiting.append(arrived)

        def give_up() -> None:
            if not arrived.called:
                arrived.callback(None)

        timer = call_later(seconds, give_up)
        try:
            await maybe_deferred_to_future(arrived)
        finally:
            timer.cancel()
        return self._happened
