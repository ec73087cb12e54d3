"""Whether more items of a response are to come: a page that they share does not count for good before.

Else a page would be sealed with the first of its items, and a kill would take the others from it for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(eq=False)
class ResponseItems:
    """The items of one response: how many were ``announced``, how many have ended; ``is_read``: there are no more."""

    announced: int = 0
    ended: int = 0
    is_read: bool = True
    _waiting: list[Callable[[], None]] = field(default_factory=list)

    @property
    def is_last(self) -> bool:
        """Whether the item that ends now is the last one."""
        return self.is_read and self.ended + 1 >= self.announced

    def when_over(self, call: Callable[[], None]) -> None:
        """Have ``call`` called when all have ended; if the callback breaks off, that may never be."""
        self._waiting.append(call)

    def no_more(self) -> None:
        """The callback has yielded all."""
        self.is_read = True
        self._look()

    def item_ended(self) -> None:
        """One item has reached its end, and all that this means was done."""
        self.ended += 1
        self._look()

    def _look(self) -> None:
        if self.is_read and self.ended >= self.announced:
            waiting, self._waiting = self._waiting, []
            for call in waiting:
                call()
