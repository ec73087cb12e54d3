"""Waiting for something that somebody else does, for a limited time, on whatever loop Scrapy runs."""

from __future__ import annotations

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred


class Event:
    """Happens once; any number may wait for it."""

    def __init__(self) -> None:
        self._happened = False
        self._waiting: list[Deferred[None]] = []

    def happen(self) -> None:
        """Wake everybody who waits."""
        self._happened = True
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.called:
                one.callback(None)

    async def wait(self, seconds: float) -> bool:
        """Whether it happened within that time."""
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
