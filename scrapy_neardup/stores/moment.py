"""As of when a store tells of a state, and what of it does not count for good yet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pending:
    """Pages that are not sealed, and the crawls that they are of."""

    pages: int = 0
    crawls: tuple[str, ...] = ()


class Moment:
    """A store that holds its state: that is as it is now, and what was not sealed was taken back at the opening.

    An ``Overlay`` tells otherwise.
    """

    #: Whether another crawl, or whoever else, is at work on the state.
    is_held: bool = False
    #: When it was as it is here, in seconds since 1970.
    as_of: float = 0.0

    def pending(self) -> Pending:
        """What is not sealed of crawls of others: at work, killed, or their feed was not stored."""
        return Pending()

    def is_pending(self, id: int) -> bool:
        """Whether a page is one of these."""
        return False
