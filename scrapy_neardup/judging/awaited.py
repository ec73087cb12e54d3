"""Pages of other crawlers for which pages of this one wait: the server is asked for all of them at once.

What was asked for each of them alone would go in as many pieces, and where many crawlers meet the same articles at one
time, that would be most of what the server is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from scrapy_neardup.errors import StoreError
from scrapy_neardup.judging.reservations import Reservation
from scrapy_neardup.stores.pending import PendingPlace, ask
from scrapy_neardup.stores.redis_async import AsyncLink

#: Seconds between two looks at what others do with the pages that are waited for: the first, and at most.
_SOON, _LATE = 0.01, 0.2


class _Wait(NamedTuple):
    by: Reservation
    #: Whether nobody waits any more.
    is_left: Callable[[], bool]


class Awaited:
    """``later``: does what nobody waits for."""

    def __init__(self, link: AsyncLink, later: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        self._link = link
        self._later = later
        self._waits: dict[PendingPlace, list[_Wait]] = {}
        self._pause = _SOON
        self._is_looking = False

    def wait(self, place: PendingPlace, by: Reservation, is_left: Callable[[], bool]) -> None:
        """Settle ``by`` once the page at that place is no more on its way, unless nobody waits by then."""
        self._waits.setdefault(place, []).append(_Wait(by, is_left))
        self._pause = _SOON
        if not self._is_looking:
            self._is_looking = True
            self._later(self._look())

    async def _look(self) -> None:
        try:
            while self._waits:  # nothing is cancelled: an answer may be on its way
                await asyncio.sleep(self._pause)
                self._pause = min(2 * self._pause, _LATE)
                await self._look_once()
        finally:
            self._is_looking = False

    async def _look_once(self) -> None:
        for place, waits in list(self._waits.items()):
            if all(wait.is_left() for wait in waits):
                del self._waits[place]
        places, program = list(self._waits), self._link.program()
        if not places:
            return
        for place in places:
            ask(program, place)
        try:
            answers = iter((await self._link.run(program))[1:])
        except StoreError:  # whoever asks again meets it
            answers = iter([None, -1] * len(places))
        for place in places:
            packed, lasts = next(answers), next(answers)
            if packed is None or lasts < 0:
                for wait in self._waits.pop(place):
                    wait.by.settle()
