"""A crawl forgets what a state is no longer to know, a step with each page that is judged."""

from __future__ import annotations

from collections.abc import Callable

from scrapy_neardup.stores import Bounds, Store

#: Steps in a row without a page that can go, after which no more are tried.
_IDLE = 1000


class Ageing:
    """``bounds``: how long and how many pages a state is to know; ``on_expired`` is told how many were forgotten."""

    def __init__(self, store: Store, bounds: Bounds | None, on_expired: Callable[[int], None]) -> None:
        self._store = store
        self._bounds = bounds
        self._on_expired = on_expired
        self._judged = 0
        #: Whether anything is ever forgotten.
        self.has_bounds = bounds is not None

    def judged(self) -> None:
        """A page is judged: take a step. Raises StoreError."""
        self._judged += 1
        self._step()

    def trim(self) -> None:
        """As many steps as pages were judged, as far as there are too many: what this crawl added may be sealed by now.

        Whatever else is too much in the state takes its time.
        """
        idle = 0
        while self._judged and idle < _IDLE and self._bounds and self._bounds.exceeded(self._store.pages):
            self._judged -= 1
            idle = 0 if self._step() else idle + 1

    def _step(self) -> int:
        gone = self._store.expire(self._bounds) if self._bounds is not None else 0
        if gone:
            self._on_expired(gone)
        return gone
