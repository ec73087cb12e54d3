"""What follows when the state fails: nothing is judged any more, and the crawl is closed unless asked otherwise."""

from __future__ import annotations

from collections.abc import Callable

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.errors import StoreError
from scrapy_neardup.oneline import line_logger

logger = line_logger(__name__)


class Outage:
    """Whether the state has failed; whoever meets an error of it reports it here, whoever uses it looks here first."""

    def __init__(self, notes: Notes, close_crawl: Callable[[str], None] | None, asked: str = "pass") -> None:
        """``close_crawl`` takes the reason; without it the crawl goes on, as ``asked`` by NEARDUP_ON_STORE_ERROR."""
        self.happened = False
        self._notes = notes
        self._close_crawl = close_crawl
        self._asked = asked

    def report(self, error: StoreError) -> None:
        """The state has failed; the first time, say so and close the crawl."""
        self.happened = True
        self._notes.count(stats.ERRORS)
        if not self._notes.is_new("store"):
            return
        logger.error(
            "%s From here on every item passes unjudged. %s",
            error,
            "The crawl is closed. To let it go on, set NEARDUP_ON_STORE_ERROR = 'pass'."
            if self._close_crawl
            else f"The crawl goes on, because NEARDUP_ON_STORE_ERROR is {self._asked!r}.",
        )
        if self._close_crawl:
            self._close_crawl("neardup_store_failed")

    def report_at_the_end(self, error: StoreError) -> None:
        """The state has failed while the crawl ends; unless it failed before, say so. There is nothing to close."""
        self.happened = True
        self._notes.count(stats.ERRORS)
        if self._notes.is_new("store"):
            logger.error("%s", error)
