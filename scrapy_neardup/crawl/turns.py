"""Pages are judged in the order in which they came, though some are read sooner than those before them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

from scrapy.utils.asyncio import call_later

from scrapy_neardup.crawl.waiting import Event

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
