"""A clock that a test moves, from which a store takes times and ids."""

from __future__ import annotations

from dataclasses import dataclass

from scrapy_neardup.state.pages import PageStore

HOUR = 3600


@dataclass
class Clock:
    """Seconds since 1970; ``last``: the id that was given last."""

    now: float = 1_750_000_000.0
    last: int = 0

    def new_id(self) -> int:
        self.last = max(self.last + 1, int(self.now * 1e9))
        return self.last

    def govern(self, store: PageStore) -> PageStore:
        """The store goes by this clock from now on."""
        self.last = max(self.last, store.clock.newest)
        store.clock.now = lambda: self.now  # type: ignore[method-assign]
        store.clock.new_id = self.new_id  # type: ignore[method-assign]
        return store
