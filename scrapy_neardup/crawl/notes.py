"""The stats and warnings of a crawl, and the record that the state has failed."""

from __future__ import annotations

from collections.abc import Callable

from scrapy.statscollectors import StatsCollector

from scrapy_neardup.crawl import stats
from scrapy_neardup.errors import StoreError
from scrapy_neardup.untrusted import line_logger

logger = line_logger(__name__)


class Notes:
    """Counts in the stats of one crawl, and logs each kind of trouble once."""

    def __init__(self, stats: StatsCollector) -> None:
        self.stats = stats
        self._logged: set[str] = set()

    def count(self, stat: str, count: int = 1) -> None:
        """Add to a stat."""
        self.stats.inc_value(stat, count)

    def mark_logged(self, topic: str) -> bool:
        """Mark a topic as logged; returns whether it is new."""
        is_new = topic not in self._logged
        self._logged.add(topic)
        return is_new

    def warn_once(self, topic: str, message: str, *arguments: object, exc_info: bool = False) -> bool:
        """Log the first warning of a topic; returns whether this was it."""
        if not self.mark_logged(topic):
            return False
        logger.warning(message + " (Further cases of %r are only counted.)", *arguments, topic, exc_info=exc_info)
        return True


class Outage:
    """Whether the state has failed. From then on every item passes unjudged."""

    def __init__(self, notes: Notes, close_crawl: Callable[[str], None] | None, on_store_error: str = "pass") -> None:
        """``close_crawl`` gets the reason. Without it the crawl goes on, as NEARDUP_ON_STORE_ERROR says."""
        self.happened = False
        self._notes = notes
        self._close_crawl = close_crawl
        self._on_store_error = on_store_error

    def report(self, error: StoreError) -> None:
        """Record an error of the state; the first one is logged and closes the crawl."""
        if not self._is_first():
            return
        logger.error(
            "%s From here on every item passes unjudged. %s",
            error,
            "The crawl is closed. To let it go on, set NEARDUP_ON_STORE_ERROR = 'pass'."
            if self._close_crawl
            else f"The crawl goes on, because NEARDUP_ON_STORE_ERROR is {self._on_store_error!r}.",
        )
        if self._close_crawl:
            self._close_crawl("neardup_store_failed")

    def report_at_end(self, error: StoreError) -> None:
        """Record an error while the crawl ends; there is nothing to close any more."""
        if self._is_first():
            logger.error("%s", error)

    def _is_first(self) -> bool:
        self.happened = True
        self._notes.count(stats.ERRORS)
        return self._notes.mark_logged("store")
