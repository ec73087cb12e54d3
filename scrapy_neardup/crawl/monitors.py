"""A monitor for Spidermon (extra ``spidermon``), which fails a crawl that dropped too much, lost pages or met errors.

Add the suite to the monitors of SPIDERMON_ENGINE_STOP_MONITORS, as the state is closed after the feeds are stored:

    SPIDERMON_ENGINE_STOP_MONITORS = ["scrapy_neardup.crawl.monitors.NearDupMonitors"]
"""

from __future__ import annotations

from typing import Any, ClassVar

from scrapy_neardup.crawl import stats

try:
    from spidermon import MonitorSuite, monitors
    from spidermon.contrib.scrapy.monitors import BaseScrapyMonitor
except ImportError:
    raise ImportError("Monitors need Spidermon. Run: pip install 'scrapy-neardup[spidermon]'") from None


@monitors.name("Near-duplicates")
class NearDupMonitor(BaseScrapyMonitor):  # type: ignore[misc]  # Spidermon has no types
    """Compares stats of a crawl with limits. Each limit is a setting, and 0 unless it is set."""

    def test_duplicate_rate(self) -> None:
        """Fails if the share of duplicates is outside SPIDERMON_NEARDUP_DUPLICATE_RATE, such as (0.05, 0.5).

        Unless that is set, every share passes.
        """
        bounds = self.crawler.settings.getlist("SPIDERMON_NEARDUP_DUPLICATE_RATE", (0, 1))
        least, most = (float(bound) for bound in bounds)
        pages = self.stats.get(stats.PAGES, 0)
        if not pages:
            self.skipTest("No page was judged.")
        rate = self.stats.get(stats.verdict("duplicate"), 0) / pages
        if not least <= rate <= most:
            wanted = f"SPIDERMON_NEARDUP_DUPLICATE_RATE wants {least:.1%} to {most:.1%}"
            self.fail(f"{rate:.1%} of {pages} pages are duplicates, but {wanted}.")

    def test_suspicious_drops(self) -> None:
        """Fails after warnings that a site lost unusually many pages: up to four for each site."""
        alarms = (stats.SUSPICIOUS_TITLES, stats.SUSPICIOUS_JUMP, stats.SUSPICIOUS_DELIVERED)
        self._limit("SUSPICIOUS_DROPS", *alarms, stats.SUSPICIOUS_MINOR_UPDATES)

    def test_rolled_back(self) -> None:
        """Fails if a pipeline, a feed or a callback lost items, so their pages were rolled back."""
        self._limit("ROLLED_BACK", stats.ROLLED_BACK)

    def test_unsealed(self) -> None:
        """Fails if a feed was not stored, so its pages will not be remembered."""
        self._limit("UNSEALED", stats.UNSEALED)

    def test_server_gone(self) -> None:
        """Fails if waits for the server of the state and pages that it lost exceed the limit."""
        self._limit("SERVER_GONE", stats.SERVER_GONE, stats.LOST_BY_SERVER)

    def test_errors(self) -> None:
        """Fails after errors that the crawl survived, such as a state on a full disk."""
        self._limit("ERRORS", stats.ERRORS)

    def _limit(self, what: str, *names: str) -> None:
        """Fail if the sum of stats exceeds a setting."""
        setting = f"SPIDERMON_NEARDUP_MAX_{what}"
        found = {name: self.stats[name] for name in names if self.stats.get(name)}
        limit = self.crawler.settings.getint(setting, 0)
        if sum(found.values()) > limit:
            counts = ", ".join(f"{name} = {count}" for name, count in found.items())
            self.fail(f"{counts}, but {setting} allows {limit}.")


class NearDupMonitors(MonitorSuite):  # type: ignore[misc]  # Spidermon has no types
    """The monitor as a suite. To act on a failure, derive a suite with ``monitors_failed_actions``."""

    monitors: ClassVar[list[Any]] = [NearDupMonitor]
