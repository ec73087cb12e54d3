"""What is told while a crawl runs: stats counted, and each kind of trouble logged once."""

from __future__ import annotations

from scrapy.statscollectors import StatsCollector

from scrapy_neardup.oneline import line_logger

logger = line_logger(__name__)


class Notes:
    """The stats of one crawl, and what its log has heard already."""

    def __init__(self, stats: StatsCollector) -> None:
        self.stats = stats
        self._told: set[str] = set()

    def count(self, stat: str, count: int = 1) -> None:
        """Add to a stat."""
        self.stats.inc_value(stat, count)

    def is_new(self, what: str) -> bool:
        """Whether this kind of thing has not been told yet; from now on it has."""
        new = what not in self._told
        self._told.add(what)
        return new

    def warn_once(self, what: str, message: str, *arguments: object, exc_info: bool = False) -> bool:
        """Log the first of a kind; whether it was."""
        if not self.is_new(what):
            return False
        logger.warning(message + " (Further cases of %r are only counted.)", *arguments, what, exc_info=exc_info)
        return True
